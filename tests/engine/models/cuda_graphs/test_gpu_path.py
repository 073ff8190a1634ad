"""Steps that a GPU replays as captured graphs equal the plain path. Here they run uncaptured over the same memory."""

import asyncio

import attrs
import numpy as np
import pytest
import torch
from scheduler_client import answer
from support.embedded_models import torch_runner_of
from support.masked_canvases import begin
from tiny_gemma import CANVAS, VOCABULARY

from engine.fill.stream import StreamPass
from engine.models.cuda_graphs.slots import SHARE, LayerShape, Sight, SlotAttention, Slots, slots_within
from engine.models.diffusion_gemma.canvas import Canvas, CanvasPass, CanvasState, SeededNoise, by_entropy
from engine.models.diffusion_gemma.cuda_graph import CapturedCanvases
from engine.models.diffusion_gemma.model import Denoiser, DiffusionGemmaModel
from engine.models.embedded.model import EmbeddedModel
from engine.models.embedded.torch_runner import CapturedStreams
from engine.models.masked.model import MaskedModel
from engine.models.masked.network import CapturedMiddles, MaskedNetwork
from engine.models.masked.rows import MaskedPass
from engine.models.stock.attention import KeyValues
from engine.protocol.messages import Fill, RuleName
from engine.schedule.scheduler import Scheduler

CPU = torch.device("cpu")
PREFIX = "import os\n\n\ndef width_of(name, parts):\n    total = 0\n    for part in parts:\n        total += "
HOLE = Fill(
    id=1, prefix=PREFIX, suffix="\n    return total\n", path="a/b.py", extent="lines", max_tokens=20, budget_ms=6e5
)
CONTEXTS = ([7, 8, 9, 10, 11, 12, 13], [7, 8, 9, 40, 41], [*range(20, 90)])


def holes(count: int, rule: RuleName) -> list[Fill]:
    return [
        attrs.evolve(HOLE, prefix=f"name_{at} = {at * 7}\n" * at + PREFIX, rule=rule, seed=at) for at in range(count)
    ]


async def fills(family: EmbeddedModel | MaskedModel | DiffusionGemmaModel, asked: list[Fill]) -> list[list[str]]:
    """Fill holes together and then one by one; return all texts."""
    scheduler = Scheduler(family)
    await scheduler.start()
    together = await asyncio.gather(*(answer(scheduler, hole) for hole in asked))
    alone = [await answer(scheduler, hole) for hole in asked]
    await scheduler.stop()
    return [[one.text for one in filled.candidates] for filled in (*together, *alone)]


def stream_passes(family: EmbeddedModel) -> list[StreamPass]:
    """Return passes over contexts of several lengths, with and without appended rows and a canvas."""
    passes = []
    for number, tokens in enumerate(CONTEXTS):
        context = family.new_context()
        family.logits([StreamPass(context, tokens, [], [])])
        append, canvas = (
            [[50, 51, 52], [53], []][number],
            [[family.mask] * 4, [], [family.mask, 60, family.mask]][number],
        )
        passes.append(StreamPass(context, append, canvas, range(len(append) + len(canvas))))
    return passes


@torch.inference_mode()
def test_the_embedded_step_in_fixed_memory_gives_the_plain_logits_and_keys(embedded: EmbeddedModel) -> None:
    plain, fixed = stream_passes(embedded), stream_passes(embedded)
    expected = embedded.logits(plain)
    runner = torch_runner_of(embedded)
    runner.captured = CapturedStreams(runner.network, CPU)
    try:
        found = embedded.logits(fixed)
        more = [StreamPass(item.context, [70, 71], [embedded.mask], [0, 1, 2]) for item in fixed]
        second = embedded.logits(more[::-1])[::-1]
    finally:
        runner.captured = None
    for one, other in zip(found, expected, strict=True):
        assert np.allclose(one, other, atol=1e-4)
    again = embedded.logits([StreamPass(item.context, [70, 71], [embedded.mask], [0, 1, 2]) for item in plain])
    for one, other in zip(second, again, strict=True):
        assert np.allclose(one, other, atol=1e-4)
    for one_pass, other_pass in zip(fixed, plain, strict=True):
        length = len(one_pass.context.tokens)
        assert one_pass.context.tokens == other_pass.context.tokens
        assert isinstance(one_pass.context, KeyValues)
        assert isinstance(other_pass.context, KeyValues)
        keys, others = one_pass.context.buffer[..., :length, :], other_pass.context.buffer[..., :length, :]
        assert torch.allclose(keys, others, atol=1e-4)


@pytest.mark.parametrize("rule", ["threshold", "verify"])
async def test_the_embedded_model_fills_the_same_in_fixed_memory(embedded: EmbeddedModel, rule: RuleName) -> None:
    asked = [attrs.evolve(hole, candidates=2, temperature=1.0) for hole in holes(4, rule)]
    expected = await fills(embedded, asked)
    runner = torch_runner_of(embedded)
    runner.captured = captured = CapturedStreams(runner.network, CPU)
    try:
        assert await fills(embedded, asked) == expected
        assert len(captured._graphs) > 1
    finally:
        runner.captured = None


@torch.inference_mode()
def test_the_masked_step_in_fixed_memory_gives_the_plain_logits(masked: MaskedModel) -> None:
    network, mask = masked._network, masked.traits.special.mask
    assert isinstance(network, MaskedNetwork)
    canvases = [begin(masked) for _ in range(3)]
    shown = [[mask, 70, mask], [71] * 9, [mask] * 12]
    for canvas, middle in zip(canvases, shown, strict=True):
        masked.logits([MaskedPass(canvas._surroundings, [middle], [0], True)])
    captured = CapturedMiddles(network)
    for middles in (shown, [middle[:-1] for middle in shown]):  # a shorter middle moves the suffix
        passes = [
            MaskedPass(canvas._surroundings, [middle], range(len(middle)), False)
            for canvas, middle in zip(canvases, middles, strict=True)
        ]
        expected = masked.logits(passes)
        found = captured.run(passes)
        assert found is not None
        for one, other in zip(found, expected, strict=True):
            assert torch.allclose(one, other, atol=1e-4)


async def test_a_masked_model_fills_the_same_in_fixed_memory(masked: MaskedModel) -> None:
    asked = holes(3, "threshold")
    expected = await fills(masked, asked)
    assert isinstance(masked._network, MaskedNetwork)
    masked.captured = CapturedMiddles(masked._network)
    try:
        assert await fills(masked, asked) == expected
        assert len(masked.captured._graphs) > 0
    finally:
        masked.captured = None


def denoised(denoiser: Denoiser, family: DiffusionGemmaModel, turns: int) -> list[CanvasState]:
    """Return the canvases of two holes after `turns` passes of three and two steps; one hole tries two lengths."""
    contexts = [family.new_context() for _ in range(2)]
    family.run([CanvasPass(context, [2, *tokens]) for context, tokens in zip(contexts, CONTEXTS[1:], strict=True)])
    rule = by_entropy(6.0)
    tried = [Canvas(length, [20, 21, 22], rule, seed=length, greedy=length == 5, top_p=0.9) for length in (5, 11)]
    passes = [
        CanvasPass(contexts[0], [], tried, [0.8, 0.6, 0.5]),
        CanvasPass(contexts[1], [], [Canvas(CANVAS, [], rule, first=3, seed=2**62 + 1)], [0.7, 0.6]),
    ]
    lengths = [len(context.tokens) for context in contexts]
    for _ in range(turns):
        for item, states in zip(passes, denoiser.run(passes, lengths), strict=True):
            for canvas, state in zip(item.canvases, states, strict=True):
                canvas.state, canvas.step = state, canvas.step + len(item.temperatures)
    return [canvas.state for item in passes for canvas in item.canvases if canvas.state is not None]


@pytest.mark.parametrize("confident", [0.0, 9.0])
def test_diffusion_gemmas_steps_in_fixed_memory_equal_the_plain_ones(
    gemma: DiffusionGemmaModel, confident: float
) -> None:
    """With the high threshold canvases also become stable and stop in the middle of a pass."""
    noise = SeededNoise(VOCABULARY, CPU)
    captured = CapturedCanvases(gemma._network, noise, confident, gemma.never)
    plain = Denoiser(gemma._network, noise, confident, gemma.never)
    fixed = Denoiser(gemma._network, noise, confident, gemma.never, captured)
    expected, found = denoised(plain, gemma, 3), denoised(fixed, gemma, 3)
    assert len(found) == len(expected) == 3
    for one, other in zip(found, expected, strict=True):
        assert one.tokens.tolist() == other.tokens.tolist()
        assert one.stopped.item() == other.stopped.item()
        assert one.result is not None
        assert other.result is not None
        assert one.result.likeliest.tolist() == other.result.likeliest.tolist()
        assert one.result.accepted.tolist() == other.result.accepted.tolist()
        assert torch.allclose(one.result.entropy, other.result.entropy, atol=1e-3)
        assert torch.allclose(one.result.confidence, other.result.confidence, atol=1e-3)


@pytest.mark.parametrize("rule", ["entropy", "threshold"])
async def test_diffusion_gemma_fills_the_same_in_fixed_memory(gemma: DiffusionGemmaModel, rule: RuleName) -> None:
    asked = [attrs.evolve(hole, steps=3, candidates=2) for hole in holes(3, rule)]
    expected = await fills(gemma, asked)
    noise, confident = gemma._denoiser._noise, gemma._denoiser._confident
    gemma._denoiser.captured = captured = CapturedCanvases(gemma._network, noise, confident, gemma.never)
    try:
        assert await fills(gemma, asked) == expected
        assert len(captured._graphs) > 1
    finally:
        gemma._denoiser.captured = None


@pytest.mark.parametrize("window", [None, 3])
def test_attention_over_slots_equals_attention_over_the_keys_that_each_row_sees(window: int | None) -> None:
    torch.manual_seed(0)
    slots = Slots([LayerShape(2, 8)], 2, 16, torch.float32, CPU)
    keys, values = torch.randn(2, 2, 2, 16, 8)  # contexts of 5 and 9 tokens
    for slot, length in enumerate((5, 9)):
        slots.load(slot, [*range(length)], [torch.stack((keys[slot], values[slot]))])
    lengths = torch.tensor([5, 9])
    begins = lengths[:, None].expand(2, 3)
    sight = Sight(lengths, begins, begins + torch.tensor([1, 2, 3]), begins)
    query, key, value = torch.randn(6, 4, 8), torch.randn(6, 2, 8), torch.randn(6, 2, 8)
    mixed = SlotAttention(slots, sight, 16).mix(0, query, key, value, None, window)
    for row in range(6):
        slot, number = divmod(row, 3)
        length = int(lengths[slot])
        first = 0 if window is None else max(0, length - window + 1)
        for head in range(4):
            seen = torch.cat([keys[slot, head // 2, first:length], key[slot * 3 : row + 1, head // 2]])
            kept = torch.cat([values[slot, head // 2, first:length], value[slot * 3 : row + 1, head // 2]])
            weights = (seen @ query[row, head] * 8**-0.5).softmax(0)
            assert torch.allclose(mixed[row, head], weights @ kept, atol=1e-5), number


def test_slots_copy_only_what_they_lack_and_forget_what_a_step_overwrote() -> None:
    slots = Slots([LayerShape(1, 2)], 2, 8, torch.float32, CPU)
    first, second = torch.ones(2, 1, 8, 2), torch.full((2, 1, 8, 2), 2.0)
    slots.load(0, [1, 2, 3, 4], [first])
    assert slots.assign([[1, 2, 7], [9]], 2) == [0, 1]
    slots.load(0, [1, 2, 5, 6], [second])
    assert slots.layers[0][0, 0, 0, :5, 0].tolist() == [1, 1, 2, 2, 0]
    slots.forget()
    slots.load(0, [1, 2], [second])
    assert slots.layers[0][0, 0, 0, :2, 0].tolist() == [2, 2]


@pytest.mark.parametrize(
    ("free", "position", "most", "enough", "expected"),
    [
        pytest.param(7 << 30, 225_280, 8, 8192, (1, 8192), id="DiffusionGemma in int4 on 24 GB"),
        pytest.param(20 << 30, 225_280, 8, 8192, (2, 8192), id="in bf16 on 80 GB"),
        pytest.param(100 << 30, 225_280, 8, 8192, (8, 8192), id="on 140 GB"),
        pytest.param(4 << 30, 225_280, 8, 8192, (1, 4608), id="with 4 GB left"),
        pytest.param(12 << 30, 57_344, 16, 4096, (8, 6912), id="a 7B model in int8 on 24 GB"),
        pytest.param(0, 225_280, 8, 8192, (1, 0), id="nothing left"),
    ],
)
def test_short_memory_gives_fewer_slots_rather_than_short_ones(
    free: int, position: int, most: int, enough: int, expected: tuple[int, int]
) -> None:
    assert slots_within(free // SHARE, position, most, enough, 8192) == expected
    assert expected[0] * expected[1] * position <= free // SHARE
