"""DiffusionGemma's passes equal those of the released class: its forward, its generate(), contexts that roll back."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny_gemma import CANVAS, VOCABULARY, WINDOW, exact_family, save_tiny_gemma, stock_model
from torch import Tensor

from engine.models.diffusion_gemma.canvas import (
    CHUNK,
    AcceptRule,
    Canvas,
    CanvasPass,
    SeededNoise,
    by_entropy,
    by_threshold,
    key_of,
)
from engine.models.diffusion_gemma.layers import ContextSegment, DiffusionNetwork, RollingContext
from engine.models.diffusion_gemma.model import Denoiser, DiffusionGemmaModel

PROMPT = [2, *(6 + number * 37 % 660 for number in range(3 * WINDOW + 5))]
"""Longer than the window of a sliding layer."""
HOTTEST, COOLEST = 0.8, 0.4


class SharedNoise:
    """Draws as generate() does: from torch's own generator, in the same order, and by multinomial."""

    def uniform(self, keys: Tensor) -> Tensor:
        return torch.randint(low=0, high=VOCABULARY, size=(1, len(keys)))[0]

    def draw(self, keys: Tensor, logits: Tensor) -> Tensor:
        return torch.multinomial(logits.softmax(-1), 1)[:, 0]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_gemma(tmp_path_factory.mktemp("gemma"))


@pytest.fixture(scope="module")
def stock(folder: Path) -> Any:
    return stock_model(folder)


@pytest.fixture(scope="module")
def family(folder: Path) -> DiffusionGemmaModel:
    return exact_family(folder)


@pytest.fixture(scope="module")
def network(folder: Path) -> DiffusionNetwork:
    """The network alone, around the released class as transformers loads it."""
    return DiffusionNetwork(stock_model(folder))


def read(network: DiffusionNetwork, context: RollingContext, tokens: list[int]) -> RollingContext:
    """Append tokens to a context, in one forward."""
    start = len(context.tokens)
    context.reserve(start + len(tokens))
    positions = torch.arange(start, start + len(tokens))
    with torch.inference_mode():
        network.read(torch.tensor(tokens), positions, [ContextSegment(context, start, 0, len(tokens))])
    context.tokens += tokens
    return context


def logits_after(network: DiffusionNetwork, context: RollingContext, canvas: list[int]) -> Tensor:
    """Return the logits [canvas, vocabulary] of a first step."""
    start, rows = len(context.tokens), len(canvas)
    with torch.inference_mode():
        signals = torch.zeros(rows, network.width)
        positions = torch.arange(start, start + rows)
        segments = [ContextSegment(context, start, 0, rows)]
        return network.logits(network.denoise(torch.tensor(canvas), signals, positions, segments))


def own_generate(
    network: DiffusionNetwork, length: int, bound: float, confident: float, steps: int, a_pass: int
) -> list[int]:
    """Return the tokens of two canvases after PROMPT, from our loop with generate()'s noise."""
    denoiser = Denoiser(network, SharedNoise(), confident)
    context = read(network, network.new_context(), PROMPT)
    written: list[int] = []
    for _ in range(2):
        canvas = Canvas(length, [], by_entropy(bound), greedy=False)
        left = steps
        while left and not (canvas.state and canvas.state.stopped):
            count = min(a_pass, left)
            temperatures = [COOLEST + (HOTTEST - COOLEST) * (left - done) / steps for done in range(count)]
            ((canvas.state,),) = denoiser.run([CanvasPass(context, [], [canvas], temperatures)], [len(context.tokens)])
            canvas.step += count
            left -= count
        assert canvas.state is not None
        assert canvas.state.result is not None
        tokens = canvas.state.result.likeliest.tolist()
        written += tokens
        read(network, context, tokens)
    return written


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("length", "bound", "confident", "steps", "a_pass"),
    [(CANVAS, 0.1, 0.005, 6, 1), (CANVAS, 8.0, 0.005, 8, 1), (CANVAS, 8.0, 0.005, 8, 3), (2, 60.0, 9.0, 60, 1)],
)
def test_without_a_suffix_the_loop_writes_what_generate_writes(
    network: DiffusionNetwork,
    stock: Any,
    monkeypatch: pytest.MonkeyPatch,
    seed: int,
    length: int,
    bound: float,
    confident: float,
    steps: int,
    a_pass: int,
) -> None:
    """A short canvas becomes stable and takes fewer steps than it may."""
    from transformers.models.diffusion_gemma.generation_diffusion_gemma import EntropyBoundSamplerConfig

    monkeypatch.setattr(stock.config, "canvas_length", length)
    torch.manual_seed(seed)
    expected = stock.generate(
        torch.tensor([PROMPT]),
        max_new_tokens=2 * length,
        max_denoising_steps=steps,
        sampler_config=EntropyBoundSamplerConfig(entropy_bound=bound),
        t_max=HOTTEST,
        t_min=COOLEST,
        confidence_threshold=confident,
        eos_token_id=None,
    )
    torch.manual_seed(seed)
    assert (
        own_generate(network, length, bound, confident, steps, a_pass) == expected.sequences[0, len(PROMPT) :].tolist()
    )
    assert (expected.tokens_per_forward > length / steps).all() == (length < CANVAS)


def test_a_loaded_model_predicts_what_the_stock_class_predicts(family: DiffusionGemmaModel, stock: Any) -> None:
    context = family.new_context()
    family.run([CanvasPass(context, PROMPT)])
    canvas = [number * 53 % VOCABULARY for number in range(20)]
    with torch.inference_mode():
        expected = stock(input_ids=torch.tensor([PROMPT]), decoder_input_ids=torch.tensor([canvas])).logits[0]
    assert torch.allclose(logits_after(family._network, context, canvas), expected, atol=1e-4)


@pytest.mark.parametrize("kept", [1, WINDOW - 2, WINDOW + 1, len(PROMPT) - 1])
def test_a_context_that_rolled_back_equals_one_that_was_read_at_once(network: DiffusionNetwork, kept: int) -> None:
    """Within 1e-5, because the order of the sums in a row depends on the other rows in the batch."""
    fresh = read(network, network.new_context(), PROMPT)
    rolled = read(network, network.new_context(), [*PROMPT[:kept], *([99] * 40)])
    rolled.truncate(kept)
    read(network, rolled, PROMPT[kept:])
    assert rolled.tokens == fresh.tokens
    for mine, other in zip(rolled.layers, fresh.layers, strict=True):
        assert torch.allclose(mine[:, :, : len(PROMPT)], other[:, :, : len(PROMPT)], atol=1e-5)
    canvas = [7, 8, 9, 10]
    assert torch.allclose(logits_after(network, rolled, canvas), logits_after(network, fresh, canvas), atol=1e-4)


def test_a_fork_and_its_original_are_independent(network: DiffusionNetwork) -> None:
    original = read(network, network.new_context(), PROMPT)
    fork = original.fork(20)
    read(network, fork, [50, 51, 52])
    assert fork.tokens == [*PROMPT[:20], 50, 51, 52]
    alone = read(network, network.new_context(), fork.tokens)
    untouched = read(network, network.new_context(), PROMPT)
    for one, other in ((fork, alone), (original, untouched)):
        assert torch.allclose(logits_after(network, one, [7, 8]), logits_after(network, other, [7, 8]), atol=1e-4)


def test_a_context_read_in_pieces_grows_and_equals_one_read_at_once(network: DiffusionNetwork) -> None:
    tokens = [6 + number * 31 % 600 for number in range(300)]
    pieces = network.new_context()
    for start in range(0, 300, 70):
        read(network, pieces, tokens[start : start + 70])
    whole = read(network, network.new_context(), tokens)
    assert torch.allclose(logits_after(network, pieces, [9] * 5), logits_after(network, whole, [9] * 5), atol=1e-4)
    assert pieces.bytes == whole.bytes > 0


def test_the_suffix_stays_and_is_its_own_signal(network: DiffusionNetwork, stock: Any) -> None:
    """Each step equals the stock forward over [middle | suffix] whose self-conditioning is certain of the suffix."""
    suffix = [300, 301, 302, 303, 304]
    context = read(network, network.new_context(), PROMPT)
    denoiser = Denoiser(network, SeededNoise(VOCABULARY, torch.device("cpu")), 0.005)
    canvas = Canvas(8, suffix, by_entropy(6.0))
    conditioning = None
    for temperature in (0.8, 0.7, 0.6, 0.5):
        shown = canvas.state or denoiser._begin(canvas)
        assert shown.after.tolist() == suffix
        with torch.inference_mode():
            expected = stock(
                input_ids=torch.tensor([PROMPT]),
                decoder_input_ids=torch.cat([shown.tokens, torch.tensor(suffix)])[None],
                self_conditioning_logits=conditioning,
            ).logits[0]
        ((canvas.state,),) = denoiser.run([CanvasPass(context, [], [canvas], [temperature])], [len(PROMPT)])
        canvas.step += 1
        found = canvas.state.result
        assert found is not None
        middle = torch.distributions.Categorical(logits=expected[:8] / temperature)
        assert torch.allclose(found.entropy, middle.entropy(), atol=1e-4)  # type: ignore[no-untyped-call]
        assert found.likeliest.tolist() == expected[:8].argmax(-1).tolist()
        certain = torch.nn.functional.one_hot(torch.tensor(suffix), VOCABULARY) * 1e4
        conditioning = torch.cat([expected[:8] / temperature, certain])[None]


def test_other_canvases_in_the_pass_and_chunks_of_rows_change_nothing(network: DiffusionNetwork) -> None:
    contexts = [read(network, network.new_context(), PROMPT[: 10 + 9 * number]) for number in range(5)]
    denoiser = Denoiser(network, SeededNoise(VOCABULARY, torch.device("cpu")), 0.005)

    def canvases() -> list[Canvas]:
        return [
            Canvas(CANVAS, [20, 21], by_entropy(6.0), seed=number, greedy=number % 2 == 0, top_p=0.9)
            for number in range(5)
        ]

    temperatures = [0.8, 0.6, 0.4]
    passes = [CanvasPass(context, [], [one], temperatures) for context, one in zip(contexts, canvases(), strict=True)]
    lengths = [len(context.tokens) for context in contexts]
    assert sum(len(item.wanted) for item in passes) > CHUNK
    together = [state.tokens.tolist() for (state,) in denoiser.run(passes, lengths)]
    alone = [denoiser.run([item], [length])[0][0].tokens.tolist() for item, length in zip(passes, lengths, strict=True)]
    assert together == alone
    assert len({tuple(tokens) for tokens in together}) == 5


def test_a_stopped_canvas_does_not_change_in_the_rest_of_a_pass(network: DiffusionNetwork) -> None:
    context = read(network, network.new_context(), PROMPT)
    denoiser = Denoiser(network, SeededNoise(VOCABULARY, torch.device("cpu")), confident=9.0)

    def after(steps: int) -> Canvas:
        canvas = Canvas(4, [20, 21], by_entropy(60.0))
        ((canvas.state,),) = denoiser.run([CanvasPass(context, [], [canvas], [0.5] * steps)], [len(PROMPT)])
        return canvas

    stopped = next(steps for steps in range(1, 40) if (state := after(steps).state) and state.stopped)
    first, later = after(stopped).state, after(stopped + 4).state
    assert first is not None
    assert later is not None
    assert first.result is not None
    assert later.result is not None
    assert first.result.likeliest.tolist() == later.result.likeliest.tolist()
    assert first.tokens.tolist() == later.tokens.tolist()


def keys(count: int) -> Tensor:
    return key_of(7, 2, torch.arange(count))


def test_draws_follow_the_probabilities_and_depend_on_the_key_alone() -> None:
    noise = SeededNoise(5, torch.device("cpu"))
    wanted = torch.tensor([0.5, 0.25, 0.15, 0.1, 0.0])
    draws = noise.draw(keys(20_000), wanted.log().clamp_min(-1e9).expand(20_000, 5))
    assert torch.allclose(draws.bincount(minlength=5) / 20_000, wanted, atol=0.015)
    even = noise.uniform(keys(20_000)).bincount(minlength=5) / 20_000
    assert torch.allclose(even, torch.full((5,), 0.2), atol=0.015)
    assert noise.uniform(keys(20_000))[77:99].equal(noise.uniform(keys(200)[77:99]))


@pytest.mark.parametrize("change", [lambda: key_of(8, 2, torch.arange(9)), lambda: key_of(7, 3, torch.arange(9))])
def test_another_seed_or_step_gives_other_noise(change: Callable[[], Tensor]) -> None:
    assert not torch.isin(change(), keys(9)).any()
    assert key_of(2**63 - 1 + 7, 2, torch.arange(9)).min() >= 0


@pytest.mark.parametrize(
    ("rule", "accepted"),
    [
        (by_entropy(1.0), [False, True, True, False]),
        (by_entropy(0.01), [False, True, False, False]),
        (by_threshold, [False, True, False, True]),
    ],
)
def test_rules_accept_the_most_certain_positions(rule: AcceptRule, accepted: list[bool]) -> None:
    entropy, confidence = torch.tensor([1.5, 0.2, 0.9, 1.2]), torch.tensor([0.2, 0.95, 0.5, 0.9])
    assert rule(entropy, confidence).tolist() == accepted


def test_the_threshold_accepts_the_most_confident_position_if_none_reaches_it() -> None:
    assert by_threshold(torch.ones(3), torch.tensor([0.1, 0.3, 0.2])).tolist() == [False, True, False]
