"""Products of few rows with packed weights, as a Triton kernel: only what the rows chose is read, and it stays packed.

A plain product unpacks a matrix into memory first. For int4 that moves about seven times the bytes of bf16.
Triton comes with torch for NVIDIA GPUs on Linux. Where it is missing, nothing here is imported.
"""

from __future__ import annotations

import attrs
import torch
import triton
import triton.language as tl
from torch import Tensor

from engine.models.quantization.matrix import Int4Matrix, Matrix, PlainMatrix, ScaledMatrix

LEAST_BLOCK, MOST_BLOCK = 16, 64
"""Rows of a block. Triton's products need 16."""
_OUTPUTS, _INPUTS = 64, 64
_PLAIN, _SCALED, _INT4 = 0, 1, 2
_LEAST_GROUP = 32
"""The halves of a group are multiplied on their own, and Triton's products need 16 inputs."""


@attrs.define  # not frozen: torch.compile does not follow how attrs fills a frozen object
class Blocks:
    """Rows sorted by the matrix of a stack that they go through, in blocks of at most `size` rows of one matrix.

    matrices, starts, stops: int32 [blocks], the matrix of a block, its first row, and the row after its last one; a
    block that is not needed has no rows.
    """

    size: int
    matrices: Tensor
    starts: Tensor
    stops: Tensor

    @classmethod
    def of_stack(cls, chosen: Tensor, count: int) -> Blocks:
        """Return the blocks of rows whose matrices are `chosen` [rows], out of `count`. Never waits for the device:
        their number depends on the shapes alone."""
        rows = len(chosen)
        size = _block_size(rows // count)
        most = (rows + (size - 1) * min(count, rows)) // size
        numbers = torch.arange(count, device=chosen.device)
        sizes = (chosen[None] == numbers[:, None]).sum(1)
        stops, lasts = sizes.cumsum(0), ((sizes + size - 1) // size).cumsum(0)
        index = torch.arange(most, device=chosen.device)
        matrices = torch.searchsorted(lasts, index, right=True).clamp(max=count - 1)
        before = lasts[matrices] - (sizes[matrices] + size - 1) // size
        starts = stops[matrices] - sizes[matrices] + (index - before) * size
        ends = torch.minimum(starts + size, stops[matrices])
        return cls(size, *(part.int() for part in (matrices, starts, ends)))

    @classmethod
    def of_one(cls, rows: int, device: torch.device) -> Blocks:
        """Return the blocks of rows that all go through the same matrix."""
        size = _block_size(rows)
        starts = torch.arange(0, rows, size, device=device, dtype=torch.int32)
        return cls(size, torch.zeros_like(starts), starts, (starts + size).clamp(max=rows))


def _block_size(rows: int) -> int:
    return min(max(1 << max(0, rows - 1).bit_length(), LEAST_BLOCK), MOST_BLOCK)


def serves(matrix: Matrix) -> bool:
    """Tell whether the kernel multiplies by matrices of this format and shape."""
    if isinstance(matrix, Int4Matrix):
        return 2 * matrix.packed.shape[-1] >= _LEAST_GROUP
    return isinstance(matrix, (PlainMatrix, ScaledMatrix))


def stacked_product(rows: Tensor, source: Tensor, matrix: Matrix, blocks: Blocks) -> Tensor:
    """Return the products [len(source), out] of a stack of matrices [count, out, in] with rows [n, in].

    Product i is of row `source[i]` (int64); `blocks` say which matrix it goes through.
    """
    if isinstance(matrix, Int4Matrix):
        kind, group, parts = _INT4, 2 * matrix.packed.shape[-1], (matrix.packed, matrix.scales, matrix.zeros)
    elif isinstance(matrix, ScaledMatrix):
        kind, group, parts = _SCALED, _INPUTS, (matrix.weights, matrix.scales, matrix.scales)
    elif isinstance(matrix, PlainMatrix):
        kind, group, parts = _PLAIN, _INPUTS, (matrix.weights, matrix.weights, matrix.weights)
    else:
        raise TypeError(f"no kernel multiplies by a {type(matrix).__name__}")
    outputs = matrix.shape[-2]
    wanted = [blocks.matrices, blocks.starts, blocks.stops]
    result: Tensor = _product(rows.bfloat16(), source, *parts, *wanted, outputs, kind, group, blocks.size)
    return result.to(rows.dtype)


def packed_product(rows: Tensor, matrix: Matrix) -> Tensor:
    """As Matrix.product. Rows are rounded to bf16."""
    source = torch.arange(len(rows), device=rows.device)
    return stacked_product(rows, source, matrix, Blocks.of_one(len(rows), rows.device))


@torch.library.custom_op("midspan::packed_product", mutates_args=())  # opaque to torch.compile, and to counting tests
def _product(
    rows: Tensor,
    source: Tensor,
    weights: Tensor,
    scales: Tensor,
    zeros: Tensor,
    matrices: Tensor,
    starts: Tensor,
    stops: Tensor,
    outputs: int,
    kind: int,
    group: int,
    size: int,
) -> Tensor:
    inputs = rows.shape[1]
    result = torch.empty(len(source), outputs, dtype=torch.bfloat16, device=rows.device)
    if len(source):
        grid = (len(matrices), triton.cdiv(outputs, _OUTPUTS))
        tensors = (rows.contiguous(), source, weights, scales, zeros, matrices, starts, stops, result)
        # On a CPU Triton is interpreted, and its interpreter has no products of bf16.
        factor = tl.bfloat16 if rows.is_cuda else tl.float32
        _kernel[grid](*tensors, outputs, inputs, kind, group, size, _OUTPUTS, factor)
    return result


@_product.register_fake
def _(
    rows: Tensor,
    source: Tensor,
    weights: Tensor,
    scales: Tensor,
    zeros: Tensor,
    matrices: Tensor,
    starts: Tensor,
    stops: Tensor,
    outputs: int,
    kind: int,
    group: int,
    size: int,
) -> Tensor:
    return rows.new_empty((len(source), outputs), dtype=torch.bfloat16)


@triton.jit  # type: ignore[untyped-decorator]
def _kernel(  # type: ignore[no-untyped-def]
    rows,
    source,
    weights,
    scales,
    zeros,
    matrices,
    starts,
    stops,
    result,
    outputs,
    inputs,
    kind: tl.constexpr,
    group: tl.constexpr,
    size: tl.constexpr,
    columns: tl.constexpr,
    factor: tl.constexpr,
):
    """One block of rows times `columns` outputs of its matrix. `group` inputs are multiplied at once, as `factor`."""
    block = tl.program_id(0)
    start = tl.load(starts + block)
    stop = tl.load(stops + block)
    if start < stop:
        index = start + tl.arange(0, size)
        present = index < stop
        row = tl.load(source + index, mask=present, other=0).to(tl.int64)
        output = tl.program_id(1) * columns + tl.arange(0, columns)
        wanted = output < outputs
        line = tl.load(matrices + block).to(tl.int64) * outputs + output  # of all lines of all matrices
        total = tl.zeros((size, columns), dtype=tl.float32)
        if kind == 2:
            half: tl.constexpr = group // 2
            inner = tl.arange(0, half)
            groups = inputs // group
            for at in range(0, groups):
                place = line[:, None] * (inputs // 2) + at * half + inner[None, :]
                packed = tl.load(weights + place, mask=wanted[:, None], other=0)
                scale = tl.load(scales + line * groups + at, mask=wanted, other=0.0).to(tl.float32)[:, None]
                zero = tl.load(zeros + line * groups + at, mask=wanted, other=0.0).to(tl.float32)[:, None]
                low = ((packed & 15).to(tl.float32) - 8.0) * scale + zero
                high = ((packed >> 4).to(tl.float32) - 8.0) * scale + zero
                value = rows + row[:, None] * inputs + at * group + inner[None, :]
                first = tl.load(value, mask=present[:, None], other=0.0)
                second = tl.load(value + half, mask=present[:, None], other=0.0)
                total = tl.dot(first.to(factor), tl.trans(low.to(tl.bfloat16).to(factor)), total)
                total = tl.dot(second.to(factor), tl.trans(high.to(tl.bfloat16).to(factor)), total)
        else:
            inner = tl.arange(0, group)
            for at in range(0, inputs, group):
                inside = at + inner < inputs
                place = line[:, None] * inputs + at + inner[None, :]
                weight = tl.load(weights + place, mask=wanted[:, None] & inside[None, :], other=0.0)
                value = rows + row[:, None] * inputs + at + inner[None, :]
                first = tl.load(value, mask=present[:, None] & inside[None, :], other=0.0)
                total = tl.dot(first.to(factor), tl.trans(weight.to(tl.float32).to(tl.bfloat16).to(factor)), total)
            if kind == 1:
                total *= tl.load(scales + line, mask=wanted, other=0.0).to(tl.float32)[None, :]
        place = index.to(tl.int64)[:, None] * outputs + output[None, :]
        tl.store(result + place, total.to(tl.bfloat16), mask=present[:, None] & wanted[None, :])
