"""int8 with one scale per output channel, symmetric around zero."""

from __future__ import annotations

import attrs
import torch
from torch import Tensor

from engine.models.quantization.matrix import ScaledMatrix, by_chunks

_LARGEST = 127
_MIN_SCALE = 1e-12
FEW_ROWS = 96
"""On a CPU, torch's int8 kernel is faster than a dense product up to about this many rows (benchmarks/latency)."""


@attrs.frozen
class Int8Matrix(ScaledMatrix):
    """Implements matrix.Matrix. `weights` int8 [..., out, in], `scales` bf16 [..., out]."""

    @classmethod
    def of(cls, weights: Tensor) -> Int8Matrix:
        return cls(*by_chunks(weights, _quantized))

    def product(self, rows: Tensor) -> Tensor:
        """As Matrix.product. On a CPU the rows are rounded to bf16, so that their number does not change the result."""
        dtype = rows.dtype
        if rows.device.type == "cpu":
            rows = rows.bfloat16()
            if len(rows) <= FEW_ROWS:
                return torch._weight_int8pack_mm(rows, self.weights, self.scales).to(dtype)
        return (rows.to(dtype) @ self.weights.to(dtype).t()) * self.scales.to(dtype)


def _quantized(weights: Tensor) -> tuple[Tensor, Tensor]:
    wide = weights.float()
    scales = (wide.abs().amax(-1) / _LARGEST).clamp(min=_MIN_SCALE).bfloat16()
    numbers = (wide / scales.float()[:, None]).round_().clamp_(-_LARGEST, _LARGEST)
    return numbers.to(torch.int8), scales
