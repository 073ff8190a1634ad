"""Matrices with one scale an output channel, symmetric."""

from typing import Self

import attrs
import torch
from torch import Tensor


@attrs.frozen
class ScaledMatrix:
    """What int8 and fp8 share of matrix.Matrix. `weights` [..., out, in] times `scales` [..., out] are the matrix."""

    weights: Tensor
    scales: Tensor

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.weights.shape)

    def dense(self, dtype: torch.dtype) -> Tensor:
        return self.weights.to(dtype).mul_(self.scales.to(dtype)[..., None])

    def part(self, index: int) -> Self:
        return type(self)(self.weights[index], self.scales[index])
