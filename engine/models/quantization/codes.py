"""int4 codes: each weight becomes a number from 0 to 15, in groups that share a scale and a zero point."""

import math

import attrs
import torch
from torch import Tensor

GROUP = 64
LEVELS = 15
MIDDLE = 8
_MIN_SCALE = 1e-12


@attrs.frozen
class Codes:
    """`numbers` uint8 [rows, groups, group]; `scales` and `zeros` bf16 [rows, groups].

    A weight is (number - 8) * scale + zero. Scale and zero are already rounded to bf16 there.
    """

    numbers: Tensor
    scales: Tensor
    zeros: Tensor


def group_of(width: int) -> int:
    """Return the group length for rows of `width` weights: 64, or the largest divisor that both have in common."""
    return math.gcd(width, GROUP)


def codes_of(weights: Tensor) -> Codes:
    """Return the codes of weights [rows, width]. The range of a group goes from its smallest to its largest weight."""
    rows, width = weights.shape
    grouped = weights.float().reshape(rows, -1, group_of(width))
    low, high = grouped.amin(-1), grouped.amax(-1)
    scales = ((high - low) / LEVELS).clamp(min=_MIN_SCALE).bfloat16()
    zeros = (low + MIDDLE * scales.float()).bfloat16()
    numbers = (grouped - zeros.float()[..., None]) / scales.float()[..., None] + MIDDLE
    return Codes(numbers.round_().clamp_(0, LEVELS).to(torch.uint8), scales, zeros)
