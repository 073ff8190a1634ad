"""fp8 (e4m3) with one scale per output channel, for GPUs that multiply it."""

from __future__ import annotations

import attrs
import torch
from torch import Tensor

from engine.models.quantization.matrix import ScaledMatrix, by_chunks

_TYPE = torch.float8_e4m3fn
_LARGEST = 448.0
_MIN_SCALE = 1e-12


@attrs.frozen
class Fp8Matrix(ScaledMatrix):
    """Implements matrix.Matrix. `weights` e4m3 [..., out, in], `scales` fp32 [..., out]."""

    @classmethod
    def of(cls, weights: Tensor) -> Fp8Matrix:
        return cls(*by_chunks(weights, _quantized))

    def product(self, rows: Tensor) -> Tensor:
        """As Matrix.product, but the rows are rounded to fp8 too, each with its own scale."""
        narrow, scales = _quantized(rows)
        result: Tensor = torch._scaled_mm(
            narrow, self.weights.t(), scale_a=scales[:, None], scale_b=self.scales[None], out_dtype=torch.bfloat16
        )
        return result.to(rows.dtype)


def _quantized(weights: Tensor) -> tuple[Tensor, Tensor]:
    wide = weights.float()
    scales = (wide.abs().amax(-1) / _LARGEST).clamp(min=_MIN_SCALE)
    return (wide / scales[:, None]).to(_TYPE), scales
