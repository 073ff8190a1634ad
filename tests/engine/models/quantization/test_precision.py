"""Quantized matrices stay near the original weights, and all ways to multiply by them agree."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from engine.errors import ModelError
from engine.library.precision_names import check_precision_setting
from engine.library.weights_header import is_image_tensor, is_quantized
from engine.models.quantization.experts import StackedExperts
from engine.models.quantization.matrix import (
    FEW_INT8_ROWS,
    Fp8Matrix,
    Int4KernelMatrix,
    Int4Matrix,
    Int8Matrix,
    Matrix,
    has_kernel_for,
)
from engine.models.quantization.quantizer import QuantizedLinear, count_parameters, quantized

Make = Callable[[Tensor], Matrix]
ROUNDED_TO_BF16 = 0.006
"""The largest relative RMS error from rounding rows and results to bf16."""
has_kernel = pytest.mark.skipif(not has_kernel_for(torch.empty(16, 64)), reason="no int4 kernel on this processor")
FORMATS = [
    pytest.param(Int8Matrix.of, 0.012, id="int8"),
    pytest.param(Int4Matrix.of, 0.11, id="int4"),
    pytest.param(Int4KernelMatrix.of, 0.11, id="int4-kernel", marks=has_kernel),
    pytest.param(Fp8Matrix.of, 0.04, id="fp8"),
]


def gaussian(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(3)) * 0.02


def error(actual: Tensor, exact: Tensor) -> float:
    """Return the relative RMS error."""
    return float((actual.float() - exact.float()).norm() / exact.float().norm())


@pytest.mark.parametrize(("make", "bound"), FORMATS)
def test_gaussian_weights_stay_near_their_original_values(make: Make, bound: float) -> None:
    weights = gaussian(192, 512)
    matrix = make(weights)
    assert matrix.shape == (192, 512)
    assert bound / 3 < error(matrix.dense(torch.float32), weights) < bound


@pytest.mark.parametrize(("make", "bound"), FORMATS)
def test_the_product_equals_the_product_with_dense_weights(make: Make, bound: float) -> None:
    matrix = make(gaussian(192, 512))
    for count in (1, 16, FEW_INT8_ROWS + 1):
        rows = torch.randn(count, 512)
        allowed = bound if isinstance(matrix, Fp8Matrix) else ROUNDED_TO_BF16  # fp8 rounds the rows to fp8 as well
        assert error(matrix.product(rows), rows @ matrix.dense(torch.float32).t()) < allowed
        assert matrix.product(rows.bfloat16()).dtype == torch.bfloat16


@pytest.mark.parametrize(("make", "bound"), FORMATS)
def test_no_rows_give_no_rows(make: Make, bound: float) -> None:
    assert make(gaussian(192, 512)).product(torch.empty(0, 512)).shape == (0, 192)


@pytest.mark.parametrize(("make", "bound"), FORMATS)
def test_a_part_of_a_stack_equals_the_matrix_quantized_alone(make: Make, bound: float) -> None:
    weights = gaussian(3, 32, 64)
    stack = make(weights)
    assert stack.shape == (3, 32, 64)
    for index in range(3):
        alone = make(weights[index]).dense(torch.float32)
        assert torch.equal(stack.part(index).dense(torch.float32), alone)
        assert torch.equal(stack.dense(torch.float32)[index], alone)


@pytest.mark.parametrize(("make", "bound"), FORMATS)
def test_small_rows_beside_large_ones_keep_their_precision(make: Make, bound: float) -> None:
    weights = gaussian(64, 256)
    weights[::2] *= 1000
    weights[3] = 0
    dense = make(weights).dense(torch.float32)
    assert error(dense[5::2], weights[5::2]) < bound
    assert torch.count_nonzero(dense[3]) == 0


@has_kernel
def test_both_orders_of_int4_hold_the_same_weights() -> None:
    weights = gaussian(208, 320)
    portable, kernel = Int4Matrix.of(weights), Int4KernelMatrix.of(weights)
    assert error(kernel.dense(torch.float32), portable.dense(torch.float32)) < ROUNDED_TO_BF16
    assert isinstance(quantized(weights, "int4"), Int4KernelMatrix)


def test_quantizing_in_chunks_changes_no_weight() -> None:
    weights = gaussian(5000, 1024)  # more than a chunk
    whole, part = Int4Matrix.of(weights), Int4Matrix.of(weights[4992:])
    assert torch.equal(whole.packed[4992:], part.packed)
    assert torch.equal(whole.zeros[4992:], part.zeros)


def test_int4_takes_as_many_bytes_as_estimated() -> None:
    matrix = Int4Matrix.of(gaussian(128, 256))
    held = sum(tensor.nbytes for tensor in (matrix.packed, matrix.scales, matrix.zeros))
    assert held == 128 * 256 * 0.5625


@pytest.mark.parametrize("width", [16, 32, 48, 64, 80])
def test_rows_that_are_no_multiple_of_a_group_get_shorter_groups(width: int) -> None:
    weights = gaussian(32, width)
    assert error(quantized(weights, "int4").dense(torch.float32), weights) < 0.11


def test_a_quantized_linear_layer_replaces_a_linear_layer() -> None:
    torch.manual_seed(1)
    layer = nn.Linear(64, 32)
    held = QuantizedLinear(quantized(layer.weight.data, "int8"), layer.bias)
    rows = torch.randn(2, 5, 64)
    assert held(rows).shape == (2, 5, 32)
    assert error(held(rows), layer(rows)) < 0.02
    assert count_parameters(held, held) == 64 * 32 + 32


@pytest.mark.parametrize("precision", ["int8", "int4", "fp8"])
def test_quantized_experts_are_the_stock_ones_with_the_same_weights(precision: str) -> None:
    from transformers.models.diffusion_gemma.configuration_diffusion_gemma import DiffusionGemmaTextConfig
    from transformers.models.diffusion_gemma.modeling_diffusion_gemma import DiffusionGemmaTextExperts

    config = DiffusionGemmaTextConfig(hidden_size=64, num_experts=6, top_k_experts=2, moe_intermediate_size=32)
    stock = DiffusionGemmaTextExperts(config)
    gates, downs = (quantized(gaussian(*weight.shape) * 8, precision) for weight in stock.parameters())  # type: ignore[arg-type]
    stock.gate_up_proj.data, stock.down_proj.data = gates.dense(torch.float32), downs.dense(torch.float32)
    held = StackedExperts(stock.act_fn)
    held.gate_up_proj, held.down_proj = gates, downs
    hidden = torch.randn(9, 64)
    chosen = torch.stack([torch.randperm(5)[:2] for _ in range(9)])  # no row chooses the last expert
    shares = torch.rand(9, 2)
    exact = stock(hidden, chosen, shares)
    assert error(held(hidden, chosen, shares), exact) < (0.08 if precision == "fp8" else 2 * ROUNDED_TO_BF16)
    held.way = "padded"
    assert error(held(hidden, chosen, shares), exact) < (0.08 if precision == "fp8" else 2 * ROUNDED_TO_BF16)
    assert count_parameters(held) == 6 * 3 * 64 * 32


@pytest.mark.parametrize(
    ("name", "shape", "expected"),
    [
        ("model.layers.3.self_attn.q_proj.weight", (3584, 3584), True),
        ("model.transformer.blocks.3.ff_out.weight", (4096, 12288), True),
        ("model.decoder.layers.0.experts.gate_up_proj", (128, 1408, 2816), True),
        ("model.decoder.layers.0.router.proj.weight", (128, 2816), False),
        ("model.layers.3.self_attn.q_proj.bias", (3584,), False),
        ("model.layers.3.mlp.up_proj.weight", (3584, 1000), False),
        ("model.embed_tokens.weight", (152064, 3584), False),
        ("model.transformer.ff_out.weight", (126464, 4096), False),
        ("lm_head.weight", (152064, 3584), False),
    ],
)
def test_the_matrices_of_layers_are_quantized_and_nothing_else(
    name: str, shape: tuple[int, ...], expected: bool
) -> None:
    assert is_quantized(name, shape) is expected
    assert not is_image_tensor(name)


def test_an_unknown_precision_gives_a_one_line_error() -> None:
    assert check_precision_setting("int4") == "int4"
    with pytest.raises(ModelError, match=r"unknown precision 'int5'; use one of auto, bf16, int8, int4, fp8, fp32$"):
        check_precision_setting("int5")
