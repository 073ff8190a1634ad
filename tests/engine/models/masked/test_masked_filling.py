"""Tiny random checkpoints of the masked families fill holes through the scheduler."""

import asyncio
from pathlib import Path

import attrs
import pytest
from scheduler_client import answer
from support.masked_checkpoints import FAMILIES, save_checkpoint

from engine.errors import ModelError
from engine.fill.interface import Model
from engine.models.load import load
from engine.protocol.messages import Fill, Progress
from engine.schedule.scheduler import Scheduler

HOLE = Fill(
    id=1,
    prefix="def area(width, height):\n    total = ",
    suffix="\n    return total\n",
    extent="lines",
    max_tokens=12,
    budget_ms=60_000.0,
)


@pytest.fixture(scope="module", params=FAMILIES)
def family(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Model:
    folder = tmp_path_factory.mktemp("released") / str(request.param)
    return load(str(save_checkpoint(str(request.param), folder).folder), threads=1, device="cpu")


async def test_every_rule_fills_a_hole(scheduler: Scheduler) -> None:
    for rule in ("default", "threshold", "entropy", "left-to-right"):
        filled = await answer(scheduler, attrs.evolve(HOLE, rule=rule))
        (candidate,) = filled.candidates
        assert candidate.tokens
        assert len(candidate.tokens) == len(candidate.confidence) <= 12
        assert candidate.text == "".join(candidate.tokens)
        assert candidate.finish in {"complete", "canvas full"}
        assert filled.steps >= 1
        assert filled.context_tokens > 10


async def test_a_rule_that_reads_left_to_right_is_refused_in_one_line(scheduler: Scheduler) -> None:
    with pytest.raises(ModelError, match='"verify" needs a model that also reads left to right'):
        await answer(scheduler, attrs.evolve(HOLE, rule="verify"))
    assert (await answer(scheduler, HOLE)).candidates


async def test_a_fill_takes_no_more_steps_than_it_may(scheduler: Scheduler) -> None:
    for steps in (1, 2, 4):
        filled = await answer(scheduler, attrs.evolve(HOLE, steps=steps))
        assert filled.steps <= steps
        assert filled.candidates[0].finish in {"complete", "canvas full"}


async def test_a_hole_in_one_line_ends_before_a_newline(scheduler: Scheduler) -> None:
    holes = [attrs.evolve(HOLE, extent="line", prefix=f"x = {number}\ny = ", steps=4) for number in range(6)]
    for filled in await asyncio.gather(*(answer(scheduler, hole) for hole in holes)):
        assert "\n" not in filled.candidates[0].text


async def test_a_hole_in_a_batch_is_filled_as_it_is_alone(scheduler: Scheduler) -> None:
    holes = [attrs.evolve(HOLE, prefix=f"name_{number} = {number * 7}\n" * number + HOLE.prefix) for number in range(4)]
    alone = [await answer(scheduler, hole) for hole in holes]
    together = await asyncio.gather(*(answer(scheduler, hole) for hole in holes))
    assert [filled.candidates[0].tokens for filled in together] == [filled.candidates[0].tokens for filled in alone]


async def test_candidates_differ_and_the_first_is_the_greedy_one(scheduler: Scheduler) -> None:
    greedy = await answer(scheduler, HOLE)
    several = await answer(scheduler, attrs.evolve(HOLE, candidates=3, temperature=1.5, seed=4))
    assert several.candidates[0].tokens == greedy.candidates[0].tokens
    assert len(several.candidates) > 1


async def test_progress_shows_what_is_still_masked(scheduler: Scheduler) -> None:
    seen: list[Progress] = []
    filled = await scheduler.submit(attrs.evolve(HOLE, rule="left-to-right", progress=True), seen.append).result
    assert any(None in progress.canvas and progress.canvas[0] is not None for progress in seen)
    assert seen[-1].canvas == filled.candidates[0].tokens


async def test_a_hole_without_time_is_filled_in_one_step(scheduler: Scheduler) -> None:
    filled = await answer(scheduler, attrs.evolve(HOLE, budget_ms=0.0))
    assert filled.steps == 1
    assert filled.candidates[0].finish in {"complete", "canvas full"}


async def test_the_log_says_once_which_budget_a_fill_needs(
    scheduler: Scheduler, caplog: pytest.LogCaptureFixture
) -> None:
    assert (await answer(scheduler, HOLE)).steps > 1
    assert "needs a budget" not in caplog.text
    for _ in range(2):
        assert (await answer(scheduler, attrs.evolve(HOLE, budget_ms=0.0))).steps == 1
    assert caplog.text.count("ms for a fill here, not 0: set midspan.budgetMs") == 1


async def test_a_hole_at_an_edge_of_a_file_is_filled(scheduler: Scheduler) -> None:
    for prefix, suffix in [("", ""), ("", "\nx = 1\n"), ("x = ", "")]:
        filled = await answer(scheduler, attrs.evolve(HOLE, prefix=prefix, suffix=suffix))
        assert filled.candidates[0].finish in {"complete", "canvas full"}


async def test_a_long_file_is_cut_to_the_window(scheduler: Scheduler, family: Model) -> None:
    line = "    total += width * height\n"
    filled = await answer(scheduler, attrs.evolve(HOLE, prefix=line * 400, suffix=line * 400, max_tokens=64))
    assert filled.context_tokens == family.info.context_tokens - 64
    assert filled.candidates[0].tokens


async def test_fills_leave_nothing_in_the_cache(scheduler: Scheduler) -> None:
    for _ in range(3):
        await answer(scheduler, HOLE)
    assert scheduler._cache._idle == []


def test_a_long_file_is_cut_at_both_far_ends(family: Model, tmp_path: Path) -> None:
    numbers = " ".join(str(number) for number in range(2000))
    layout = family.lay_out(attrs.evolve(HOLE, prefix=numbers, suffix=numbers))
    before, after = ("".join(family.texts_of(side)) for side in (layout.before, layout.after))
    assert before.endswith("1998 1999")
    assert after.startswith("0 1 2")
    assert len(layout.before) > 1.5 * len(layout.after)
