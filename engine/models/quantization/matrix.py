"""A matrix or a stack of matrices: not quantized, in 8 bits with one scale per output channel, or in int4.

int4 is in groups with a scale and a zero point each: for any device, and in the order of torch's own kernel on x86.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Protocol, Self, TypeVar

import attrs
import torch
from torch import Tensor

CHUNK_WEIGHTS = 1 << 20
"""Weights that are quantized at once. It limits the fp32 scratch memory to about ten times 4 MB."""
_BLOCK_ROWS = 64
"""The int4 kernel packs rows in blocks of this many."""
_LARGEST_INT8, _LARGEST_FP8 = 127, 448.0
_MIN_SCALE = 1e-12
FEW_INT8_ROWS = 96
"""On a CPU, torch's int8 kernel is faster than a dense product up to about this many rows (benchmarks/latency)."""
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

    def part(self, index: Index) -> Matrix:
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


@attrs.frozen
class Int8Matrix(ScaledMatrix):
    """Implements Matrix, symmetric around zero. `weights` int8 [..., out, in], `scales` bf16 [..., out]."""

    @classmethod
    def of(cls, weights: Tensor) -> Int8Matrix:
        return cls(*by_chunks(weights, _as_int8))

    def product(self, rows: Tensor) -> Tensor:
        """As Matrix.product. On a CPU the rows are rounded to bf16, so that their number does not change the result."""
        dtype = rows.dtype
        if rows.device.type == "cpu":
            rows = rows.bfloat16()
            if len(rows) <= FEW_INT8_ROWS:
                return torch._weight_int8pack_mm(rows, self.weights, self.scales).to(dtype)
        return (rows.to(dtype) @ self.weights.to(dtype).t()) * self.scales.to(dtype)


def _as_int8(weights: Tensor) -> tuple[Tensor, Tensor]:
    wide = weights.float()
    scales = (wide.abs().amax(-1) / _LARGEST_INT8).clamp(min=_MIN_SCALE).bfloat16()
    numbers = (wide / scales.float()[:, None]).round_().clamp_(-_LARGEST_INT8, _LARGEST_INT8)
    return numbers.to(torch.int8), scales


@attrs.frozen
class Fp8Matrix(ScaledMatrix):
    """Implements Matrix, for GPUs that multiply fp8 (e4m3). `weights` e4m3 [..., out, in], `scales` fp32 [..., out]."""

    @classmethod
    def of(cls, weights: Tensor) -> Fp8Matrix:
        return cls(*by_chunks(weights, _as_fp8))

    def product(self, rows: Tensor) -> Tensor:
        """As Matrix.product, but the rows are rounded to fp8 too, each with its own scale."""
        narrow, scales = _as_fp8(rows)
        result: Tensor = torch._scaled_mm(
            narrow, self.weights.t(), scale_a=scales[:, None], scale_b=self.scales[None], out_dtype=torch.bfloat16
        )
        return result.to(rows.dtype)


def _as_fp8(weights: Tensor) -> tuple[Tensor, Tensor]:
    wide = weights.float()
    scales = (wide.abs().amax(-1) / _LARGEST_FP8).clamp(min=_MIN_SCALE)
    return (wide / scales[:, None]).to(torch.float8_e4m3fn), scales


GROUP = 64
LEVELS = 15
MIDDLE = 8
_GROUPS = (32, 64)
"""Those of the kernel."""
_FAST = ("AVX2", "AVX512")
"""On other processors the kernel is a simple loop and slower than unpacking."""


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


@attrs.frozen
class Int4Matrix:
    """Implements Matrix.

    packed: uint8 [..., out, groups, group / 2]; the low four bits of the bytes hold the first half of a group's codes,
        the high four bits the second half
    scales, zeros: bf16 [..., out, groups], as in Codes
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


@attrs.frozen
class Int4KernelMatrix:
    """Implements Matrix in bf16, with torch's own kernel: rows are rounded to it.

    packed: uint8 [..., out, in / 2] in the kernel's order
    points: bf16 [..., groups, out, 2]: scales and zeros
    """

    packed: Tensor
    points: Tensor

    @classmethod
    def of(cls, weights: Tensor) -> Int4KernelMatrix:
        if weights.dim() > 2:
            parts = [cls.of(part) for part in weights]
            return cls(torch.stack([part.packed for part in parts]), torch.stack([part.points for part in parts]))
        return cls(*_in_order(weights))

    @property
    def shape(self) -> tuple[int, ...]:
        return (*self.packed.shape[:-1], 2 * self.packed.shape[-1])

    def product(self, rows: Tensor) -> Tensor:
        group = self.shape[-1] // self.points.shape[-3]
        result: Tensor = torch.ops.aten._weight_int4pack_mm_for_cpu(rows.bfloat16(), self.packed, group, self.points)
        return result.to(rows.dtype)

    def dense(self, dtype: torch.dtype) -> Tensor:
        if len(self.shape) > 2:
            return torch.stack([self.part(index).dense(dtype) for index in range(self.shape[0])])
        return self.product(torch.eye(self.shape[-1], dtype=dtype)).t()

    def part(self, index: Index) -> Int4KernelMatrix:
        return Int4KernelMatrix(self.packed[index], self.points[index])


def has_kernel_for(weights: Tensor) -> bool:
    """Return whether this processor has a fast kernel, and the kernel accepts matrices of this shape."""
    fast = weights.device.type == "cpu" and torch.backends.cpu.get_cpu_capability() in _FAST
    return fast and group_of(weights.shape[-1]) in _GROUPS


def _in_order(weights: Tensor) -> tuple[Tensor, Tensor]:
    def pack(part: Tensor) -> tuple[Tensor, Tensor]:
        codes = codes_of(part)
        order = torch.ops.aten._convert_weight_to_int4pack_for_cpu(codes.numbers.flatten(1).int(), 1)
        return order, torch.stack((codes.scales, codes.zeros), -1)

    packed, points = by_chunks(weights, pack)
    return packed, points.transpose(0, 1).contiguous()
