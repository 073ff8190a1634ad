"""int4 for torch's own kernel on x86 processors: the codes of int4.py in another order."""

from __future__ import annotations

import attrs
import torch
from torch import Tensor

from engine.models.quantization.codes import codes_of, group_of
from engine.models.quantization.matrix import Index, by_chunks

_GROUPS = (32, 64)
_FAST = ("AVX2", "AVX512")
"""On other processors the kernel is a simple loop and slower than unpacking."""


@attrs.frozen
class Int4KernelMatrix:
    """Implements matrix.Matrix in bf16: rows are rounded to it. `packed` is uint8 [..., out, in / 2] in the kernel's
    order. `points` is bf16 [..., groups, out, 2]: scales and zeros."""

    packed: Tensor
    points: Tensor

    @classmethod
    def of(cls, weights: Tensor) -> Int4KernelMatrix:
        if weights.dim() > 2:
            parts = [cls.of(part) for part in weights]
            return cls(torch.stack([part.packed for part in parts]), torch.stack([part.points for part in parts]))
        return cls(*_packed(weights))

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


def _packed(weights: Tensor) -> tuple[Tensor, Tensor]:
    def pack(part: Tensor) -> tuple[Tensor, Tensor]:
        codes = codes_of(part)
        order = torch.ops.aten._convert_weight_to_int4pack_for_cpu(codes.numbers.flatten(1).int(), 1)
        return order, torch.stack((codes.scales, codes.zeros), -1)

    packed, points = by_chunks(weights, pack)
    return packed, points.transpose(0, 1).contiguous()
