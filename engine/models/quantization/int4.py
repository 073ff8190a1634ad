"""int4 in groups with a scale and a zero point each, two weights per byte, for any device."""

from __future__ import annotations

import attrs
import torch
from torch import Tensor

from engine.models.quantization.codes import MIDDLE, codes_of
from engine.models.quantization.matrix import Index, by_chunks


@attrs.frozen
class Int4Matrix:
    """Implements matrix.Matrix.

    packed: uint8 [..., out, groups, group / 2]; the low four bits of the bytes hold the first half of a group's codes,
        the high four bits the second half
    scales, zeros: bf16 [..., out, groups], as in codes.Codes
    """

    packed: Tensor
    scales: Tensor
    zeros: Tensor

    @classmethod
    def of(cls, weights: Tensor) -> Int4Matrix:
        return cls(*by_chunks(weights, _packed))

    @property
    def shape(self) -> tuple[int, ...]:
        *leading, groups, half = self.packed.shape
        return (*leading, groups * half * 2)

    def product(self, rows: Tensor) -> Tensor:
        return rows @ self.dense(rows.dtype).t()

    def dense(self, dtype: torch.dtype) -> Tensor:
        half = self.packed.shape[-1]
        weights = torch.empty((*self.packed.shape[:-1], 2 * half), dtype=dtype, device=self.packed.device)
        weights[..., :half] = self.packed & 15
        weights[..., half:] = self.packed >> 4
        weights.sub_(MIDDLE).mul_(self.scales.to(dtype)[..., None]).add_(self.zeros.to(dtype)[..., None])
        return weights.flatten(-2)

    def part(self, index: Index) -> Int4Matrix:
        return Int4Matrix(self.packed[index], self.scales[index], self.zeros[index])


def _packed(weights: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    codes = codes_of(weights)
    first, second = codes.numbers.chunk(2, -1)
    return first | (second << 4), codes.scales, codes.zeros
