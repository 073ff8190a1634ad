"""A quantized matrix, or a stack of such matrices."""

from collections.abc import Callable
from typing import Protocol, Self, TypeVar

import attrs
import torch
from torch import Tensor

CHUNK_WEIGHTS = 1 << 20
"""Weights that are quantized at once. It limits the fp32 scratch memory to about ten times 4 MB."""
_BLOCK_ROWS = 64
"""The int4 kernel packs rows in blocks of this many."""
_Part = TypeVar("_Part", bound=tuple[Tensor, ...])


class Matrix(Protocol):
    """Weights of `shape` [out, in] or [stack, out, in]."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    def product(self, rows: Tensor) -> Tensor:
        """Return rows [rows, in] times the transposed matrix: [rows, out], in the dtype of the rows. Not for stacks."""
        ...

    def dense(self, dtype: torch.dtype) -> Tensor:
        """Return the weights unpacked."""
        ...

    def part(self, index: "Index") -> "Matrix":
        """Return one matrix of a stack, or a smaller stack. Only a tensor of indexes copies."""
        ...


Index = int | slice | Tensor


@attrs.frozen
class PlainMatrix:
    """Implements Matrix: `weights` [..., out, in], which are not quantized."""

    weights: Tensor

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.weights.shape)

    def product(self, rows: Tensor) -> Tensor:
        return rows @ self.weights.t()

    def dense(self, dtype: torch.dtype) -> Tensor:
        return self.weights.to(dtype)

    def part(self, index: Index) -> Self:
        return type(self)(self.weights[index])


@attrs.frozen
class ScaledMatrix:
    """The common part of int8 and fp8. The matrix is `weights` [..., out, in] times `scales` [..., out]."""

    weights: Tensor
    scales: Tensor

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.weights.shape)

    def dense(self, dtype: torch.dtype) -> Tensor:
        return self.weights.to(dtype).mul_(self.scales.to(dtype)[..., None])

    def part(self, index: Index) -> Self:
        return type(self)(self.weights[index], self.scales[index])


def by_chunks(weights: Tensor, quantize: Callable[[Tensor], _Part]) -> list[Tensor]:
    """Quantize weights [..., in] some rows at a time, to save memory.

    `quantize` takes [rows, in] and returns tensors whose first size is rows. Each result tensor has the leading sizes
    of `weights` instead.
    """
    flat = weights.reshape(-1, weights.shape[-1])
    results: list[Tensor] = []
    rows = max(1, CHUNK_WEIGHTS // flat.shape[1] // _BLOCK_ROWS) * _BLOCK_ROWS
    for start in range(0, len(flat), rows):
        parts = quantize(flat[start : start + rows])
        if not results:
            results = [part.new_empty(len(flat), *part.shape[1:]) for part in parts]
        for result, part in zip(results, parts, strict=True):
            result[start : start + len(part)] = part
    return [result.view(*weights.shape[:-1], *result.shape[1:]) for result in results]
