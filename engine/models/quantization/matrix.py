"""A matrix held in few bits, or a stack of such matrices."""

from collections.abc import Callable
from typing import Protocol, TypeVar

import torch
from torch import Tensor

CHUNK_WEIGHTS = 1 << 20
"""Weights that are quantized at once: what that takes besides, in fp32, is then some ten times 4 MB at the most."""
_BLOCK_ROWS = 64
"""The int4 kernel's order is one of blocks of so many rows."""
_Part = TypeVar("_Part", bound=tuple[Tensor, ...])


class Matrix(Protocol):
    """Weights of `shape` [out, in] or [stack, out, in]."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    def product(self, rows: Tensor) -> Tensor:
        """Return rows [rows, in] times the transposed matrix: [rows, out], in the rows' precision. For no stack."""
        ...

    def dense(self, dtype: torch.dtype) -> Tensor:
        """Return the weights themselves, in full."""
        ...

    def part(self, index: int) -> "Matrix":
        """Return one matrix of a stack, without a copy."""
        ...


def by_chunks(weights: Tensor, quantize: Callable[[Tensor], _Part]) -> list[Tensor]:
    """Quantize weights [..., in] some rows at a time; return each kind of result with the leading sizes of `weights`.

    `quantize` takes [rows, in] and returns tensors whose first size is rows.
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
