"""DiffusionGemma through the engine: scheduler, cache, prompts, and a real engine process."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest
import torch
from scheduler_client import answer
from support.engine_process import end
from support.fill_tasks import started
from tiny_gemma import CANVAS, CONTEXT, exact_family, save_tiny_gemma

from engine.client.address import runtime_paths_of
from engine.client.launcher import EngineOptions, connect_or_start
from engine.errors import ModelError
from engine.fill.interface import FillStrategy
from engine.fill.sampler import PassResult
from engine.models.diffusion_gemma.canvas import Canvas, CanvasState, StepResult, results_of
from engine.models.diffusion_gemma.filling import CanvasFilling
from engine.models.diffusion_gemma.model import DiffusionGemmaModel
from engine.models.diffusion_gemma.prompt import SUFFIX_TOKENS, Prompt, TurnTokens
from engine.protocol.messages import Fill, Progress, RuleName, Snippet
from engine.schedule.backend import CancelledFill
from engine.schedule.scheduler import Scheduler

PREFIX = "import os\n\n\ndef width_of(name, parts):\n    total = 0\n    for part in parts:\n        total += "
SUFFIX = "\n    return total\n"
HOLE = Fill(id=1, prefix=PREFIX, suffix=SUFFIX, path="a/b.py", extent="lines", max_tokens=24, budget_ms=600_000.0)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_gemma(tmp_path_factory.mktemp("gemma"))


@pytest.fixture(scope="module")
def family(folder: Path) -> DiffusionGemmaModel:
    return exact_family(folder)


def holes(count: int) -> list[Fill]:
    return [attrs.evolve(HOLE, prefix=f"name_{number} = {number * 7}\n" + PREFIX) for number in range(count)]


async def test_a_hole_is_filled_in_at_most_eight_steps(scheduler: Scheduler) -> None:
    for hole in holes(4):
        filled = await answer(scheduler, hole)
        (one,) = filled.candidates
        assert filled.rule == "entropy"
        assert 1 <= filled.steps <= 8
        assert "".join(one.tokens) == one.text
        assert len(one.tokens) == len(one.confidence) <= 24
        assert all(0.0 <= sure <= 1.0 for sure in one.confidence)
        assert one.finish in ("complete", "canvas full")


@pytest.mark.parametrize("rule", ["entropy", "threshold"])
async def test_a_hole_in_a_batch_is_filled_as_it_is_alone(scheduler: Scheduler, rule: RuleName) -> None:
    asked = [attrs.evolve(hole, rule=rule, steps=3, candidates=2, seed=number) for number, hole in enumerate(holes(5))]
    alone = [(await answer(scheduler, hole)).candidates for hole in asked]
    together = await asyncio.gather(*(answer(scheduler, hole) for hole in asked))
    assert [filled.candidates for filled in together] == alone
    assert len({candidates[0].text for candidates in alone}) > 1


async def test_candidates_differ_and_the_first_is_the_single_one(scheduler: Scheduler) -> None:
    single = (await answer(scheduler, HOLE)).candidates[0].text
    several = (await answer(scheduler, attrs.evolve(HOLE, candidates=3, temperature=1.5))).candidates
    assert several[0].text == single
    assert len(several) > 1


@pytest.mark.parametrize("rule", ["verify", "left-to-right"])
async def test_a_rule_that_the_model_lacks_gives_a_one_line_error(scheduler: Scheduler, rule: RuleName) -> None:
    long = attrs.evolve(HOLE, prefix="value = 1\n" * 90, rule=rule, budget_ms=1.0)
    for hole in (long, attrs.evolve(HOLE, rule=rule)):
        with pytest.raises(ModelError, match=f'cannot fill by "{rule}"; use "entropy", "threshold" or "default"'):
            await answer(scheduler, hole)
    assert (await answer(scheduler, HOLE)).candidates


@pytest.mark.slow
async def test_typing_on_reads_only_what_is_new_and_changes_no_answer(
    scheduler: Scheduler, family: DiffusionGemmaModel
) -> None:
    """Also if the text changes further back than the window of a sliding layer."""
    await answer(scheduler, HOLE)
    typed = [PREFIX + "part", PREFIX + "part.width", PREFIX[:-60], PREFIX[:-60] + "    return 1\n"]
    for prefix in typed:
        hole = attrs.evolve(HOLE, prefix=prefix)
        warm = await answer(scheduler, hole)
        fresh = Scheduler(family)
        await fresh.start()
        cold = await answer(fresh, hole)
        await fresh.stop()
        assert warm.cached_tokens > 10 > cold.cached_tokens
        (one,), (other,) = warm.candidates, cold.candidates
        assert one.tokens == other.tokens
        assert one.confidence == pytest.approx(other.confidence, abs=1e-3)


async def test_a_deadline_closes_a_hole_between_two_passes(scheduler: Scheduler) -> None:
    late = await answer(scheduler, attrs.evolve(HOLE, budget_ms=0.001))
    assert late.candidates[0].finish == "deadline"
    assert late.candidates[0].text == ""
    long = attrs.evolve(HOLE, suffix="", max_tokens=2000, steps=2000, budget_ms=400.0)
    rushed = await answer(scheduler, attrs.evolve(long, prefix="x = "))
    # At the deadline the canvas is committed as it is, and it may contain an end.
    assert rushed.candidates[0].finish in ("deadline", "complete")
    assert len(rushed.candidates[0].tokens) < 2000


async def test_a_cancelled_hole_leaves_between_two_passes(scheduler: Scheduler) -> None:
    begun = asyncio.Event()
    long = attrs.evolve(HOLE, suffix="", max_tokens=200, steps=2000)
    ticket = scheduler.submit(long, lambda _: begun.set())
    await begun.wait()
    scheduler.cancel(ticket)
    with pytest.raises(CancelledFill):
        await ticket.result
    assert (await answer(scheduler, HOLE)).candidates


async def test_a_long_hole_is_filled_canvas_by_canvas(scheduler: Scheduler) -> None:
    passes_of = []
    for max_tokens in (CANVAS, 3 * CANVAS):
        filled = await answer(scheduler, attrs.evolve(HOLE, suffix="", max_tokens=max_tokens, steps=2))
        assert len(filled.candidates[0].tokens) <= max_tokens
        passes_of.append(filled.steps)
    ended = [answer(scheduler, attrs.evolve(hole, suffix="", max_tokens=3 * CANVAS, steps=2)) for hole in holes(6)]
    longest = max(len(filled.candidates[0].tokens) for filled in await asyncio.gather(*ended))
    assert passes_of[0] == 2
    assert longest > CANVAS


def filling_of(family: DiffusionGemmaModel, max_tokens: int) -> CanvasFilling:
    filling = started(family, attrs.evolve(HOLE, max_tokens=max_tokens), FillStrategy("entropy", 2))
    assert isinstance(filling, CanvasFilling)
    return filling


def result_where_one_is_decided(canvases: list[Canvas], decided: int, entropy: float = 0.1) -> PassResult:
    """Return what a pass might give: every token is 100, and the middle of one of the canvases is decided."""
    states = []
    for number, canvas in enumerate(canvases):
        shape = (canvas.length,)
        found = StepResult(
            torch.full(shape, 100),
            torch.full(shape, 0.9),
            torch.full(shape, entropy if number == decided else 3.0),
            torch.ones(shape, dtype=torch.bool),
        )
        nothing = torch.zeros(shape, dtype=torch.long)
        states.append(CanvasState(nothing, nothing[:0], None, found, torch.tensor(False)))
    (result,) = results_of([states])
    return result


@pytest.mark.parametrize(("decided", "length"), [(0, 4), (1, 8), (2, 16)])
def test_the_length_with_the_lowest_entropy_goes_on(family: DiffusionGemmaModel, decided: int, length: int) -> None:
    filling = filling_of(family, 24)
    tried = filling.next_pass().canvases
    assert [canvas.length for canvas in tried] == [4, 8, 16, 24]
    filling.absorb(result_where_one_is_decided(tried, decided), steps_left=9)
    assert filling.next_pass().canvases == [tried[decided]]
    filling.absorb(result_where_one_is_decided([tried[decided]], 0), steps_left=8)
    assert (filling.tokens, filling.finish, filling.steps) == ([100] * length, "complete", 2)


def test_after_the_longest_length_wins_a_longer_one_is_tried_and_another_canvas_follows(
    family: DiffusionGemmaModel,
) -> None:
    filling = filling_of(family, 200)
    tried = filling.next_pass().canvases
    filling.absorb(result_where_one_is_decided(tried, len(tried) - 1), steps_left=99)
    (longer,) = filling.next_pass().canvases
    assert (longer.length, longer.after) == (CANVAS, [])
    sure = result_where_one_is_decided([longer], 0, entropy=0.01)
    for steps_left in (98, 97):
        filling.absorb(sure, steps_left)
    assert (len(filling.tokens), filling.finish) == (CANVAS, None)
    following = filling.next_pass()
    assert following.append[-CANVAS:] == [100] * CANVAS
    assert [canvas.first for canvas in following.canvases] == [CANVAS] * 4


def test_without_time_left_the_canvas_is_committed_as_it_is(family: DiffusionGemmaModel) -> None:
    filling = filling_of(family, 200)
    tried = filling.next_pass().canvases
    filling.absorb(result_where_one_is_decided(tried, len(tried) - 1), steps_left=1)
    assert (len(filling.tokens), filling.finish) == (tried[-1].length, "complete")


async def test_a_fill_in_one_line_holds_no_newline(scheduler: Scheduler) -> None:
    for hole in holes(4):
        filled = await answer(scheduler, attrs.evolve(hole, extent="line", suffix=""))
        assert "\n" not in filled.candidates[0].text


async def test_progress_shows_what_is_accepted(scheduler: Scheduler) -> None:
    seen: list[Progress] = []
    filled = await scheduler.submit(HOLE, seen.append).result
    assert len(seen) > 2
    assert None in seen[1].canvas
    assert "".join(part or "" for part in seen[-1].canvas) == filled.candidates[0].text


async def test_a_long_file_is_cut_to_the_window_of_the_checkpoint(
    scheduler: Scheduler, family: DiffusionGemmaModel
) -> None:
    assert family.info.context_tokens == CONTEXT
    long = attrs.evolve(HOLE, prefix="value = 1\n" * 3000 + PREFIX, suffix=SUFFIX * 500)
    filled = await answer(scheduler, long)
    assert filled.candidates
    assert CONTEXT * 0.6 < filled.context_tokens <= CONTEXT - HOLE.max_tokens


def prompt_of(family: DiffusionGemmaModel, window: int = 600) -> Prompt:
    return attrs.evolve(family.prompt, window=window, turns=TurnTokens(4, 5))


def test_a_plain_prompt_is_the_code_above_and_the_suffix_is_on_the_canvas(family: DiffusionGemmaModel) -> None:
    layout = family.lay_out(attrs.evolve(HOLE, snippets=[Snippet("r.py", "S = 1")]))
    assert layout.context[0] == 2
    assert "".join(family.texts_of(layout.context)) == "File r.py:\nS = 1\nFile a/b.py:\n" + PREFIX
    assert SUFFIX.startswith("".join(family.texts_of(layout.after)))
    assert 0 < len(layout.after) <= min(SUFFIX_TOKENS, CANVAS // 4)


def test_an_instructed_prompt_asks_for_the_task_and_the_answer_begins_with_the_code_above(
    family: DiffusionGemmaModel,
) -> None:
    layout = prompt_of(family).lay_out(attrs.evolve(HOLE, suffix="rest)" + SUFFIX))
    opening, closing, answering = (at for at, token in enumerate(layout.context) if token in (4, 5))
    asked = "".join(family.texts_of(layout.context[opening:closing]))
    assert asked.startswith("user\nContinue")
    assert asked.endswith("File a/b.py:\nThe code that follows:\n" + SUFFIX)
    assert "".join(family.texts_of(layout.context[answering:])) == "model\n```\n" + PREFIX
    assert "".join(family.texts_of(layout.after)).startswith("rest)")


def test_text_after_the_cursor_on_its_line_changes_no_instructed_prompt(
    family: DiffusionGemmaModel,
) -> None:
    prompt = prompt_of(family)
    one, other = (prompt.lay_out(attrs.evolve(HOLE, suffix=rest + SUFFIX)) for rest in (")", '"))'))
    assert one.context == other.context
    assert one.after != other.after


def test_an_instructed_prompt_fits_the_window(family: DiffusionGemmaModel) -> None:
    hole = attrs.evolve(HOLE, prefix=PREFIX * 40, suffix=SUFFIX * 200, snippets=[Snippet("r.py", PREFIX)] * 9)
    layout = prompt_of(family).lay_out(hole)
    assert 300 < len(layout.context) <= 600 - CANVAS - HOLE.max_tokens
    assert PREFIX.endswith("".join(family.texts_of(layout.context[-20:])))


def test_tokens_give_back_the_text_even_if_they_split_characters(family: DiffusionGemmaModel) -> None:
    text = "naïve = '日本語 🙂'\n\n\treturn <eos> <unused3>\n"
    assert "".join(family.texts_of(family.prompt.encode(text))) == text


@pytest.fixture(scope="module")
def running(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[EngineOptions]:
    options = EngineOptions(model=str(folder), threads=1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MIDSPAN_RUNTIME_DIR", str(tmp_path_factory.mktemp("runtime")))
        yield options
        end(runtime_paths_of(options.model))


async def test_an_engine_process_fills_holes_with_diffusion_gemma(running: EngineOptions) -> None:
    client = await connect_or_start(running, "test")
    try:
        model = client.welcome.model
        assert (model.family, model.noise, model.context_tokens) == ("diffusion-gemma", "uniform", CONTEXT)
        steps: list[Progress] = []
        first = await client.fill(HOLE, steps.append)
        assert first.candidates[0].tokens
        assert steps
        again = await client.fill(attrs.evolve(HOLE, prefix=PREFIX + "part"))
        assert again.cached_tokens > 10
    finally:
        await client.close()
