"""Matrix products of the training run in int8, for processors where they are several times faster than in fp32.

Both operands get scales along the dimension that is summed over, one for each row of the left one and one for each
column of the right one, so an error stays in its own row and column (as in SwitchBack, arXiv 2304.13013, and Jetfire,
arXiv 2403.12422). Weights, gradients between the layers, and all sums stay in fp32.
"""

from typing import Any

import torch
from torch import Tensor, nn

from engine.models.embedded.network import Network


def quantize(matrix: Tensor, along: int) -> tuple[Tensor, Tensor]:
    """Return a matrix in int8 and its scales, which have size 1 in the dimension `along`."""
    largest = matrix.abs().amax(along, keepdim=True).clamp(min=1e-12)
    return (matrix * (127 / largest)).round().to(torch.int8), largest / 127


def product(left: Tensor, right: Tensor) -> Tensor:
    """Return left [m, k] times right [k, n], fp32 [m, n]."""
    first, rows = quantize(left, 1)
    second, columns = quantize(right, 0)
    return torch._int_mm(first, second).float() * rows * columns


def products_are_exact() -> bool:
    """Return whether int8 products add up without overflow here. On a CPU without VNNI torch's saturate at 16 bits."""
    largest = torch.full((64, 64), 127, dtype=torch.int8)
    return bool((torch._int_mm(largest, largest) == 127 * 127 * 64).all())


class _Product(torch.autograd.Function):
    """rows [m, k] times weight [n, k] transposed."""

    @staticmethod
    def forward(context: Any, rows: Tensor, weight: Tensor) -> Tensor:
        context.save_for_backward(rows, weight)
        return product(rows, weight.t())

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> tuple[Tensor, Tensor]:
        rows, weight = context.saved_tensors
        return product(gradient, weight), product(gradient.t(), rows)


class Int8Linear(nn.Linear):
    """A linear layer without bias whose three products run in int8."""

    def forward(self, rows: Tensor) -> Tensor:
        flat = rows.reshape(-1, rows.shape[-1])
        product: Tensor = _Product.apply(flat, self.weight)  # type: ignore[no-untyped-call]
        return product.view(*rows.shape[:-1], -1)


class Int8Head(nn.Linear):
    """A head whose training losses run in int8 (int8_head.py), compiled or not; its own forward is in fp32."""

    compiled: bool


def use_int8(network: Network, compiled: bool) -> None:
    """Make the linear layers of `network` multiply in int8 from now on; the weights do not change."""
    for module in (*network.blocks.modules(), network.gram_out):
        if type(module) is nn.Linear:
            module.__class__ = Int8Linear
    network.head.__class__ = Int8Head
    network.head.compiled = compiled  # type: ignore[assignment]
