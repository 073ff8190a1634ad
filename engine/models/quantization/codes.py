"""int4 codes: the numbers 0 to 15 that stand for a matrix's weights, in groups with a scale and a zero point each."""

import math

import attrs
import torch
from torch import Tensor

GROUP = 64
LEVELS = 15
MIDDLE = 8
_LEAST_SCALE = 1e-12


@attrs.frozen
class Codes:
    """`numbers` uint8 [rows, groups, group]; `scales` and `zeros` bf16 [rows, groups].

    A weight is (number - 8) * scale + zero, with scale and zero as they are in bf16.
    """

    numbers: Tensor
    scales: Tensor
    zeros: Tensor


def group_of(width: int) -> int:
    """Return the length of a group in rows of `width` weights: 64, or what of it divides a narrow row."""
    return math.gcd(width, GROUP)


def codes_of(weights: Tensor) -> Codes:
    """Return the codes of weights [rows, width]: each group's least and greatest weight are its ends."""
    rows, width = weights.shape
    grouped = weights.float().reshape(rows, -1, group_of(width))
    low, high = grouped.amin(-1), grouped.amax(-1)
    scales = ((high - low) / LEVELS).clamp(min=_LEAST_SCALE).bfloat16()
    zeros = (low + MIDDLE * scales.float()).bfloat16()
    numbers = (grouped - zeros.float()[..., None]) / scales.float()[..., None] + MIDDLE
    return Codes(numbers.round_().clamp_(0, LEVELS).to(torch.uint8), scales, zeros)
