"""Checks of captured steps without a GPU: they never wait for the device, make no large tensor, and compile whole."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from support.counted import Counted
from support.embedded_models import torch_runner_of
from tiny_gemma import VOCABULARY, save_tiny_gemma, stock_model
from torch import Tensor
from torch._dynamo.testing import CompileCounter
from torch._subclasses.fake_tensor import DataDependentOutputException, DynamicOutputShapeException, FakeTensorMode

from engine.models.cuda_graphs.graphs import Captured, Graphs, RowBucket
from engine.models.cuda_graphs.slots import LayerShape, Slots
from engine.models.diffusion_gemma import layers as gemma_layer
from engine.models.diffusion_gemma.canvas import CHUNK, AcceptRule, SeededNoise, by_entropy, by_threshold
from engine.models.diffusion_gemma.cuda_graph import CanvasBucket, CanvasStep
from engine.models.diffusion_gemma.layers import DiffusionNetwork
from engine.models.diffusion_gemma.model import DiffusionGemmaModel
from engine.models.embedded.model import EmbeddedModel
from engine.models.embedded.torch_runner import StreamStep
from engine.models.masked.model import MaskedModel
from engine.models.masked.network import MaskedNetwork, MiddleStep
from engine.models.stock import attention as masked_layer

CPU = torch.device("cpu")
UNCAPTURABLE = {
    "aten::_local_scalar_dense",
    "aten::nonzero",
    "aten::lift_fresh",
    "aten::masked_select",
    "aten::_unique2",
}


class Watch(Counted):  # type: ignore[no-untyped-call]
    """Counts as Counted does, and keeps the operations that no graph may hold."""

    def __init__(self) -> None:
        super().__init__()
        self.uncapturable: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func._schema.name
        if name in UNCAPTURABLE or (name.startswith("aten::index") and _has_mask(args)):
            self.uncapturable.append(name)
        return super().__torch_dispatch__(func, types, args, kwargs)


def _has_mask(args: Any) -> bool:
    indices = args[1] if len(args) > 1 and isinstance(args[1], list | tuple) else []
    return any(isinstance(index, Tensor) and index.dtype == torch.bool for index in indices)


@pytest.fixture(scope="module")
def half(tmp_path_factory: pytest.TempPathFactory) -> DiffusionNetwork:
    """In bf16, because a CPU computes grouped products in fp32 but traces them only in bf16."""
    return DiffusionNetwork(stock_model(save_tiny_gemma(tmp_path_factory.mktemp("half"))).bfloat16())


def stream_step(embedded: EmbeddedModel) -> Callable[[], Tensor]:
    network = torch_runner_of(embedded).network
    slots = Slots(
        [LayerShape(network.shape.key_heads, network.shape.head_width)] * network.shape.layers,
        2,
        64,
        torch.float32,
        CPU,
    )
    return StreamStep(network, slots, RowBucket(2, 8, 64, 8)).compute


def middle_step(masked: MaskedModel) -> Callable[[], Tensor]:
    assert isinstance(masked._network, MaskedNetwork)
    slots = Slots(masked._network.slot_shapes, 2, 64, torch.float32, CPU)
    return MiddleStep(masked._network, slots, RowBucket(2, 8, 64, 8)).compute


def canvas_step(network: DiffusionNetwork, bucket: CanvasBucket) -> Callable[[], Tensor]:
    slots = Slots(network.shapes, bucket.slots, bucket.capacity, network.dtype, CPU)
    forbidden = torch.tensor([1, 2, 3])
    return CanvasStep(network, slots, SeededNoise(VOCABULARY, CPU), forbidden, 0.005, bucket).compute


def assert_capturable(compute: Callable[[], Tensor]) -> None:
    """Fake tensors refuse a shape that depends on values, and a value that the host reads. They accept a tensor made of
    the host's numbers and indexing by a mask, which no graph may hold: Watch finds those."""
    with torch.inference_mode():
        plain = compute().clone()
        with Watch() as watch:
            compute()
    assert watch.uncapturable == []
    with torch.no_grad(), FakeTensorMode(allow_non_fake_inputs=True):
        assert compute().shape == plain.shape


def test_an_embedded_step_never_waits_for_the_device(embedded: EmbeddedModel) -> None:
    assert_capturable(stream_step(embedded))


def test_a_masked_step_never_waits_for_the_device(masked: MaskedModel) -> None:
    assert_capturable(middle_step(masked))


@pytest.mark.parametrize("accept", [by_entropy(0.1), by_threshold])
def test_a_diffusion_gemma_step_never_waits_for_the_device_to_draw_and_accept(
    half: DiffusionNetwork, accept: AcceptRule
) -> None:
    assert_capturable(canvas_step(half, CanvasBucket(2, 16, 64, 2, 8, accept, draws=True, with_top_p=True)))


@pytest.mark.parametrize(
    "wrong",
    [
        lambda numbers: numbers[numbers > 1],
        lambda numbers: numbers * numbers.sum().item(),
        lambda numbers: numbers * torch.tensor([1.0, 2.0, 3.0]),
        lambda numbers: numbers.clone().index_put_((numbers > 1,), numbers.sum()),
    ],
)
def test_an_operation_that_no_graph_may_hold_is_noticed(wrong: Callable[[Tensor], Tensor]) -> None:
    numbers = torch.arange(3.0)
    with pytest.raises((AssertionError, DataDependentOutputException, DynamicOutputShapeException)):
        assert_capturable(lambda: wrong(numbers))


def test_no_tensor_of_a_step_is_larger_than_the_logits_of_one_chunk(gemma: DiffusionGemmaModel) -> None:
    """At full size a chunk is 128 rows of 262,144 numbers: 128 MiB in fp32, and twice that when they are sorted."""
    rows = 8 * 64
    bucket = CanvasBucket(8, 64, 128, 8, 64, by_entropy(0.1), draws=True, with_top_p=True)
    step = canvas_step(gemma._network, bucket)
    with torch.inference_mode(), Watch() as watch:
        step()
    chunk = CHUNK * VOCABULARY * 4
    assert chunk <= watch.largest <= 2 * chunk < rows * VOCABULARY * 4


@pytest.mark.parametrize(
    ("name", "layer_module", "layer_types"), [("masked", masked_layer, 1), ("gemma", gemma_layer, 2)]
)
def test_all_layers_of_a_type_share_what_is_compiled(
    name: str, layer_module: Any, layer_types: int, request: pytest.FixtureRequest
) -> None:
    family = request.getfixturevalue(name)
    network, counters = family._network, (CompileCounter(), CompileCounter())
    kept = network._before, network._after
    torch._dynamo.reset()
    network._before = torch.compile(layer_module.before_attention, backend=counters[0], fullgraph=True)
    network._after = torch.compile(layer_module.after_attention, backend=counters[1], fullgraph=True)
    bucket = CanvasBucket(1, 16, 64, 1, 8, by_threshold, draws=False, with_top_p=False)
    step = middle_step(family) if name == "masked" else canvas_step(network, bucket)
    try:
        with torch.inference_mode():
            step()
    finally:
        network._before, network._after = kept
    assert [counter.frame_count for counter in counters] == [layer_types, layer_types]


class _Counting:
    """A step that counts its runs."""

    def __init__(self) -> None:
        self.runs = 0

    def compute(self) -> Tensor:
        self.runs += 1
        return torch.zeros(1)


def failing() -> _Counting:
    raise RuntimeError("no memory for this graph")


def test_steps_are_kept_by_bucket_and_the_least_recently_used_is_dropped(caplog: pytest.LogCaptureFixture) -> None:
    graphs: Graphs[_Counting] = Graphs(CPU, lambda: None, most=2)

    def of(bucket: int) -> Captured[_Counting]:
        captured = graphs.of(bucket, _Counting)
        assert captured is not None
        return captured

    first, second = of(1), of(2)
    assert of(1) is first
    of(3)
    assert of(1) is first
    assert of(2) is not second
    assert len(graphs) == 2
    assert graphs.of(7, failing) is None
    assert graphs.of(7, _Counting) is None
    assert [record.getMessage() for record in caplog.records] == [
        "no graph for 7 (RuntimeError): such steps run uncaptured"
    ]
