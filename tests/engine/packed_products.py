"""Compares Triton's packed products with plain ones. Run it with TRITON_INTERPRET=1, or on a GPU."""

import torch
from torch import Tensor
from torch.nn import functional as F

from engine.library.precision_names import Precision
from engine.models.quantization.experts import StackedExperts
from engine.models.quantization.matrix import Int4Matrix, Matrix
from engine.models.quantization.packed_product import Blocks, packed_product, serves
from engine.models.quantization.quantizer import quantized

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
PRECISIONS: tuple[Precision, ...] = ("bf16", "int8", "int4", "fp8")
NEAR = 0.02
"""The largest relative RMS error from rounding to bf16, some times over. A wrong row or a wrong matrix gives 1."""


def main() -> None:
    torch.manual_seed(5)
    for precision in PRECISIONS:
        compare_matrices(precision)
        compare_experts(precision)
    count_blocks()
    assert not serves(Int4Matrix.of(gaussian(32, 16)))  # its groups are too short for the kernel


def held(weights: Tensor, precision: Precision) -> Matrix:
    """As on a GPU: a processor's own order of int4 is not for Triton."""
    return Int4Matrix.of(weights) if precision == "int4" else quantized(weights, precision)


def gaussian(*shape: int) -> Tensor:
    return torch.randn(*shape, device=DEVICE) * 0.1


def assert_near(found: Tensor, exact: Tensor, what: str) -> None:
    error = float((found.float() - exact.float()).norm() / exact.float().norm())
    assert error < NEAR, f"{what}: an error of {error:.3f}"


def compare_matrices(precision: Precision) -> None:
    for outputs, inputs in ((48, 64), (80, 160), (64, 96)):
        matrix = held(gaussian(outputs, inputs), precision)
        for count in (1, 16, 37):
            rows = gaussian(count, inputs).bfloat16()
            exact = rows.float() @ matrix.dense(torch.float32).t()
            assert_near(packed_product(rows, matrix), exact, f"{precision}, {outputs} x {inputs}, {count} rows")


def compare_experts(precision: Precision) -> None:
    experts, width, inner, choices = 7, 128, 64, 3
    layer = StackedExperts(F.gelu)
    layer.gate_up_proj = held(gaussian(experts, 2 * inner, width), precision)
    layer.down_proj = held(gaussian(experts, width, inner), precision)
    for count in (1, 5, 90):
        hidden = gaussian(count, width).bfloat16()
        # No row chooses the last expert, and nearly all choose the first.
        chosen = torch.stack([torch.randperm(experts - 1, device=DEVICE)[:choices] for _ in range(count)])
        if count > 50:
            chosen[:, 0], chosen[:, 1:] = 0, 1 + chosen[:, 1:] % 2 + torch.tensor([0, 2], device=DEVICE)
        shares = torch.rand(count, choices, device=DEVICE)
        layer.way = "padded"
        exact = layer(hidden.float(), chosen, shares)
        layer.way = "packed"
        assert_near(layer(hidden, chosen, shares), exact, f"{precision}, {count} rows of experts")
    # As between two attentions of a layer on a GPU: the whole is one graph.
    compiled = torch.compile(layer, backend="eager", fullgraph=True)
    assert_near(compiled(hidden, chosen, shares), exact, f"{precision}, compiled experts")


def count_blocks() -> None:
    """Every row is in one block of its own matrix, however the choices fall."""
    for chosen in ([0] * 70, [6] * 5, [0, 1, 2, 3, 4, 5, 6], sorted([3] * 33 + [1] * 2 + [6] * 17)):
        wanted = torch.tensor(chosen, device=DEVICE)
        blocks = Blocks.of_stack(wanted, 7)
        covered = [
            (row, matrix)
            for matrix, start, stop in zip(
                blocks.matrices.tolist(), blocks.starts.tolist(), blocks.stops.tolist(), strict=True
            )
            for row in range(start, stop)
        ]
        assert covered == list(enumerate(chosen)), (chosen, covered)


if __name__ == "__main__":
    main()
