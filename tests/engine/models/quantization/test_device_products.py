"""How experts and packed weights are multiplied on a GPU. Released shapes are counted without memory."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch
from support.counted import Counted
from torch import Tensor, nn
from torch.nn import functional as F

from engine.library.precision_names import Precision
from engine.models.quantization.experts import FEW_ROWS, StackedExperts, Way, has_grouped_products
from engine.models.quantization.quantizer import Quantizer, has_packed_products, quantized

EXPERTS, WIDTH, INNER, CHOICES = 128, 2816, 704, 8
"""Of DiffusionGemma 26B."""
META = torch.device("meta")
has_triton = pytest.mark.skipif(find_spec("triton") is None, reason="Triton comes with torch for NVIDIA GPUs")


def experts_of(precision: Precision, way: Way, device: torch.device, shape: tuple[int, int, int]) -> StackedExperts:
    count, width, inner = shape
    held = StackedExperts(F.gelu, way)
    held.gate_up_proj = quantized(torch.randn(count, 2 * inner, width, device=device, dtype=torch.bfloat16), precision)
    held.down_proj = quantized(torch.randn(count, width, inner, device=device, dtype=torch.bfloat16), precision)
    return held


def counted(precision: Precision, way: Way, rows: int) -> Counted:
    """Count one layer's experts for `rows` rows of a canvas, in the released shape on a GPU that is not there."""
    count = Counted()
    with torch.no_grad():  # inference mode would count a product as one operator
        held = experts_of(precision, way, META, (EXPERTS, WIDTH, INNER))
        hidden = torch.randn(rows, WIDTH, device=META, dtype=torch.bfloat16)
        chosen = torch.zeros(rows, CHOICES, device=META, dtype=torch.long)
        with count:
            held(hidden, chosen, torch.rand(rows, CHOICES, device=META, dtype=torch.bfloat16))
    return count


def test_torch_groups_products_in_one_kernel_on_hopper_and_blackwell_only() -> None:
    native = {
        capability
        for capability in ((8, 0), (8, 6), (8, 9), (9, 0), (10, 0), (12, 0))
        if has_grouped_products(capability)
    }
    assert native == {(9, 0), (10, 0)}


@pytest.mark.parametrize("precision", ["bf16", "int8", "int4", "fp8"])
@pytest.mark.parametrize("rows", [4, 64, FEW_ROWS])
def test_padded_experts_never_wait_for_the_host(precision: Precision, rows: int) -> None:
    assert counted(precision, "padded", rows).waits == []


def test_one_by_one_waits_for_the_host_and_the_count_sees_it() -> None:
    with pytest.raises(RuntimeError):  # the sizes of the groups have no values here
        counted("bf16", "one by one", 4)
    held = experts_of("bf16", "one by one", torch.device("cpu"), (4, 32, 16))
    with Counted() as count:
        held(torch.randn(3, 32).bfloat16(), torch.tensor([[0, 2]] * 3), torch.rand(3, 2))
    assert count.waits == ["bincount"]


def test_padded_experts_unpack_only_as_many_as_the_rows_can_have_chosen() -> None:
    few, all_experts = counted("int4", "padded", 4), counted("int4", "padded", 64)
    assert few.moved < all_experts.moved / 3
    assert all_experts.largest < 200 << 20  # some experts at a time: all of a layer unpacked are 1.5 GB


def test_padded_experts_equal_those_that_are_computed_one_by_one() -> None:
    torch.manual_seed(2)
    for rows in (1, 3, 40):  # fewer choices than experts, and more
        held = experts_of("bf16", "one by one", torch.device("cpu"), (24, 64, 32))
        hidden = torch.randn(rows, 64, dtype=torch.bfloat16)
        chosen = torch.stack([torch.randperm(20)[:3] for _ in range(rows)])
        shares = torch.rand(rows, 3)
        expected = held(hidden, chosen, shares).float()
        held.way = "padded"
        found = held(hidden, chosen, shares).float()
        assert (found - expected).norm() < 0.01 * expected.norm()


@has_triton
@pytest.mark.timeout(300)
def test_triton_multiplies_packed_weights_as_torch_does() -> None:
    """In a process of its own: Triton reads whether it is interpreted when it is imported."""
    script = Path(__file__).parents[2] / "packed_products.py"
    environment = {**os.environ, "TRITON_INTERPRET": "1", "PYTHONPATH": os.pathsep.join([str(Path.cwd()), *sys.path])}
    run = subprocess.run([sys.executable, str(script)], env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr[-2000:]


@has_triton
@pytest.mark.parametrize("precision", ["bf16", "int8", "int4", "fp8"])
def test_packed_experts_move_no_more_bytes_than_their_weights_and_never_wait(precision: Precision) -> None:
    size = {"bf16": 2.0, "int8": 1.0, "int4": 0.5625, "fp8": 1.0}[precision]
    weights = EXPERTS * 3 * WIDTH * INNER * size
    for rows in (4, 64):
        count = counted(precision, "packed", rows)
        assert count.waits == []
        # The operator is opaque: all its experts are counted, though it reads only those that were chosen.
        assert weights <= count.moved < 1.1 * weights


def test_a_device_without_a_working_triton_says_so_once(caplog: pytest.LogCaptureFixture) -> None:
    has_packed_products.cache_clear()
    assert not has_packed_products(torch.device("cpu"), "int4")  # Triton has no kernel for a CPU
    assert not has_packed_products(torch.device("cpu"), "int4")
    assert len(caplog.records) == (0 if find_spec("triton") is None else 1)


def test_experts_in_bf16_are_taken_where_torch_has_no_kernel_for_them() -> None:
    from transformers.models.diffusion_gemma.configuration_diffusion_gemma import DiffusionGemmaTextConfig
    from transformers.models.diffusion_gemma.modeling_diffusion_gemma import DiffusionGemmaTextExperts

    config = DiffusionGemmaTextConfig(hidden_size=64, num_experts=6, top_k_experts=2, moe_intermediate_size=32)
    stock = DiffusionGemmaTextExperts(config).bfloat16()
    layers = nn.ModuleList([nn.ModuleDict({"experts": stock})])
    network = nn.ModuleDict({"model": nn.ModuleDict({"layers": layers})})
    for weight in stock.parameters():
        nn.init.normal_(weight, std=0.2)
    hidden, shares = torch.randn(9, 64, dtype=torch.bfloat16), torch.rand(9, 2)
    chosen = torch.stack([torch.randperm(6)[:2] for _ in range(9)])
    expected: Tensor = stock(hidden, chosen, shares)
    untouched = Quantizer(network, "bf16", torch.device("cpu"))
    assert not any(
        untouched.take(f"model.layers.0.experts.{name}", weight) for name, weight in stock.named_parameters()
    )
    quantizer = Quantizer(network, "bf16", torch.device("cpu"), "padded")
    for name, weight in stock.named_parameters():
        assert quantizer.take(f"model.layers.0.experts.{name}", weight.data)
    assert not quantizer.take("model.layers.0.mlp.down_proj.weight", torch.zeros(32, 32))
    quantizer.place()
    replaced = network.get_submodule("model.layers.0.experts")
    assert isinstance(replaced, StackedExperts)
    assert replaced.way == "padded"
    found: Tensor = replaced(hidden, chosen, shares)
    assert (found.float() - expected.float()).norm() < 0.01 * expected.float().norm()
