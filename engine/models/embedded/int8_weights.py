"""Weights on disk, from torch and for torch: int8 with one scale a row, without a measurable loss."""

from collections.abc import Mapping

import torch
from torch import Tensor

from engine.models.embedded.weights import SCALE

SMALL = 1 << 16
"""Smaller matrices stay fp32: int8 would save nothing, and lose precision in rows of unlike columns."""


def pack(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return each large matrix [out, in] as int8 with its scales [out], and the rest in fp32."""
    packed: dict[str, Tensor] = {}
    for name, weight in weights.items():
        if weight.ndim != 2 or weight.numel() < SMALL:
            packed[name] = weight.float().contiguous()
            continue
        scale = weight.float().abs().amax(1).clamp(min=1e-12) / 127
        packed[name] = (weight.float() / scale[:, None]).round().to(torch.int8)
        packed[name + SCALE] = scale
    return packed


def unpack(packed: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the fp32 weights that `pack` was given, but for rounding."""
    weights: dict[str, Tensor] = {}
    for name, stored in packed.items():
        if not name.endswith(SCALE):
            scale = packed.get(name + SCALE)
            weights[name] = stored.float() if scale is None else stored.float() * scale[:, None]
    return weights
