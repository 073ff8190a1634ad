"""The engine's core with a tiny random model of the real family: equality, cancellation, deadlines, batching."""

import asyncio
import gc
import itertools
import math
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import attrs
import pytest
from scheduler_client import HOLE, PREFIX, SUFFIX, answer, prefixes
from support.embedded_models import RUNNERS, load_embedded

from engine.fill.draft_planner import DraftPlanner
from engine.fill.interface import Model, Pass
from engine.fill.sampler import PassResult
from engine.heap import give_back
from engine.models.embedded.model import EmbeddedModel
from engine.protocol.messages import Progress, RuleName
from engine.schedule import scheduler as scheduling
from engine.schedule.backend import CancelledFill
from engine.schedule.fill_queue import MAX_BATCH
from engine.schedule.job import FillJob
from engine.schedule.scheduler import CROWDED_TOKENS, Scheduler
from engine.schedule.warm_up import time_passes


@pytest.fixture(scope="module", params=RUNNERS)
def family(tiny_model: Path, request: pytest.FixtureRequest) -> Model:
    return load_embedded(tiny_model, str(request.param))


@pytest.mark.parametrize("number", range(8))
async def test_draft_and_verify_answers_what_left_to_right_answers(scheduler: Scheduler, number: int) -> None:
    hole = prefixes(8)[number]
    left = await answer(scheduler, attrs.evolve(hole, rule="left-to-right"))
    verified = await answer(scheduler, attrs.evolve(hole, rule="verify"))
    assert verified.candidates[0].tokens == left.candidates[0].tokens
    assert verified.steps <= left.steps + 1


async def test_draft_and_verify_draws_what_left_to_right_draws(scheduler: Scheduler) -> None:
    hole = attrs.evolve(HOLE, candidates=3, temperature=1.0, seed=3)
    left = await answer(scheduler, attrs.evolve(hole, rule="left-to-right"))
    verified = await answer(scheduler, attrs.evolve(hole, rule="verify"))
    assert [one.text for one in left.candidates] == [one.text for one in verified.candidates]
    assert len(left.candidates) > 1


async def test_the_greedy_candidate_stays_the_first_when_the_same_text_is_drawn_again(scheduler: Scheduler) -> None:
    greedy = (await answer(scheduler, attrs.evolve(HOLE, max_tokens=1))).candidates[0]
    drawn = await answer(scheduler, attrs.evolve(HOLE, candidates=8, temperature=1.0, max_tokens=1, seed=1))
    assert 1 < len(drawn.candidates) < 8, "the draws are no mix of the greedy text and others"
    assert drawn.candidates[0].text == greedy.text


@pytest.mark.parametrize("rule", ["threshold", "entropy", "verify", "left-to-right"])
async def test_a_hole_in_a_batch_is_filled_as_it_is_alone(scheduler: Scheduler, rule: RuleName) -> None:
    holes = [attrs.evolve(hole, rule=rule) for hole in prefixes(6)]
    alone = [await answer(scheduler, hole) for hole in holes]
    together = await asyncio.gather(*(scheduler.submit(hole, None).result for hole in holes))
    assert [one.candidates[0].tokens for one in together] == [one.candidates[0].tokens for one in alone]


@pytest.mark.parametrize("rule", ["threshold", "verify"])
async def test_a_cached_context_gives_the_same_fill_as_a_fresh_one(family: Model, rule: RuleName) -> None:
    typed = [attrs.evolve(HOLE, prefix=PREFIX[:end], rule=rule) for end in range(len(PREFIX) - 9, len(PREFIX) + 1)]
    warm = Scheduler(family)
    await warm.start()
    cached = [await answer(warm, fill) for fill in typed]
    await warm.stop()
    assert all(one.cached_tokens > one.context_tokens // 2 for one in cached[1:])
    for fill, one in zip(typed, cached, strict=True):
        cold = Scheduler(family, cache_bytes=0)
        await cold.start()
        fresh = await answer(cold, fill)
        await cold.stop()
        assert fresh.cached_tokens == 0
        assert fresh.candidates[0].tokens == one.candidates[0].tokens


async def test_a_cancelled_hole_takes_no_further_pass(scheduler: Scheduler) -> None:
    steps: list[int] = []

    def watch(progress: Progress) -> None:
        steps.append(progress.step)
        if progress.step == 2:
            scheduler.cancel(ticket)

    ticket = scheduler.submit(attrs.evolve(HOLE, rule="left-to-right"), watch)
    before = scheduler.report().passes
    with pytest.raises(CancelledFill):
        await ticket.result
    assert steps == [1, 2]
    assert scheduler.report().passes - before <= 3
    assert scheduler.report().active == 0
    assert (await answer(scheduler, HOLE)).candidates


async def test_a_fill_ahead_of_the_user_makes_no_step_while_a_user_waits(scheduler: Scheduler) -> None:
    events: list[str] = []
    begun = asyncio.Event()

    def note(progress: Progress) -> None:
        events.append("ahead")
        begun.set()

    ahead = scheduler.submit(attrs.evolve(HOLE, rule="left-to-right", ahead=True), note)
    await begun.wait()
    first = len(events)
    user = scheduler.submit(attrs.evolve(HOLE, rule="left-to-right"), lambda _: events.append("user"))
    await user.result
    assert events[first:].count("ahead") <= 1, "the step that was under way"
    assert (await ahead.result).candidates == (await user.result).candidates, "and it goes on after that"


async def test_a_hole_without_any_time_is_answered_with_an_empty_text(scheduler: Scheduler) -> None:
    late = await answer(scheduler, attrs.evolve(HOLE, rule="left-to-right", budget_ms=0.001))
    assert late.candidates[0].finish == "deadline"
    assert late.candidates[0].text == ""


async def test_what_waited_past_its_deadline_is_answered_without_a_pass(scheduler: Scheduler) -> None:
    long = attrs.evolve(HOLE, rule="left-to-right", max_tokens=200, candidates=3, extent="lines", budget_ms=600_000.0)
    many = [scheduler.submit(long, None, owner=number) for number in range(MAX_BATCH)]
    await asyncio.sleep(0)  # they take all places
    late = scheduler.submit(attrs.evolve(HOLE, budget_ms=1.0), None, owner=99)
    answered = await late.result
    assert answered.candidates[0].finish == "deadline"
    assert answered.candidates[0].text == ""
    assert answered.steps == 0
    for ticket in many:
        scheduler.cancel(ticket)
    assert (await answer(scheduler, HOLE)).candidates


@pytest.mark.parametrize("rule", ["left-to-right", "verify"])
async def test_a_fill_is_no_longer_than_the_model_has_positions(scheduler: Scheduler, rule: RuleName) -> None:
    fill = attrs.evolve(HOLE, rule=rule, steps=2000, max_tokens=2000, budget_ms=600_000.0)
    (written,) = (await answer(scheduler, fill)).candidates
    assert written.finish == "canvas full"
    assert len(written.tokens) > 200


def is_character(text: str) -> bool:
    """Return whether the text of a token has no part of a character."""
    return bool(text) and "\ufffd" not in text


async def test_while_many_wait_a_fill_is_shorter(scheduler: Scheduler) -> None:
    fills = [
        attrs.evolve(hole, rule="left-to-right", max_tokens=24, extent="lines", budget_ms=600_000.0)
        for hole in prefixes(8)
    ]
    for fill in fills:  # Where the crowded fill ends inside a character, its last token has another text.
        whole = (await answer(scheduler, fill)).candidates[0].tokens
        if is_character(whole[CROWDED_TOKENS - 1]):
            break
    tickets = [scheduler.submit(fill, None, owner=number) for number in range(2 * MAX_BATCH + 2)]
    filled = [await ticket.result for ticket in tickets]
    assert min(len(one.candidates[0].tokens) for one in filled) <= CROWDED_TOKENS
    for one in filled:
        tokens = one.candidates[0].tokens
        assert tokens == whole[: len(tokens)]


async def test_an_answer_that_fails_stops_no_other_fill(scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(job: FillJob) -> None:
        raise ValueError("no answer")

    with monkeypatch.context() as patch:
        patch.setattr(FillJob, "filled", fail)
        with pytest.raises(ValueError, match="no answer"):
            await answer(scheduler, HOLE)
    assert (await answer(scheduler, HOLE)).candidates


async def test_a_cancelled_fill_that_nobody_waits_for_is_no_lost_error(
    scheduler: Scheduler, caplog: pytest.LogCaptureFixture
) -> None:
    ticket = scheduler.submit(attrs.evolve(HOLE, budget_ms=60_000.0), None)
    scheduler.cancel(ticket)
    await answer(scheduler, HOLE)
    assert ticket.result.done()
    del ticket
    gc.collect()
    assert "never retrieved" not in caplog.text


async def test_an_idle_scheduler_gives_memory_back_once_and_fills_on(
    scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    given, loop = asyncio.Queue[bool](), asyncio.get_running_loop()
    monkeypatch.setattr(scheduling, "CALM_S", 0.01)
    monkeypatch.setattr(scheduling, "give_back", lambda: loop.call_soon_threadsafe(given.put_nowait, give_back()))
    assert (await answer(scheduler, HOLE)).candidates
    async with asyncio.timeout(30):
        await given.get()
    assert given.empty()
    assert (await answer(scheduler, HOLE)).candidates


async def test_a_hole_past_its_deadline_is_closed_with_what_it_has(
    scheduler: Scheduler, family: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill = attrs.evolve(prefixes(7)[5], rule="left-to-right", max_tokens=40, budget_ms=3000.0)
    whole = await answer(scheduler, attrs.evolve(fill, budget_ms=60_000.0))
    run, passes = family.run, itertools.count(1)
    deadline = time.perf_counter() + fill.budget_ms / 1000

    def run_slowly(batch: Sequence[Pass]) -> list[PassResult]:
        if next(passes) == 4:
            time.sleep(max(0.0, deadline - time.perf_counter()))
        return run(batch)

    monkeypatch.setattr(family, "run", run_slowly)
    late = (await answer(scheduler, fill)).candidates[0]
    assert late.finish == "deadline"
    assert 0 < len(late.tokens) < len(whole.candidates[0].tokens)
    assert late.tokens[:-1] == whole.candidates[0].tokens[: len(late.tokens) - 1]
    # Random weights write parts of characters, whose text depends on what follows; so nothing follows here either.
    short = await answer(scheduler, attrs.evolve(fill, max_tokens=len(late.tokens), budget_ms=60_000.0))
    assert late.tokens == short.candidates[0].tokens


async def test_steps_bound_the_passes_of_a_canvas(scheduler: Scheduler) -> None:
    untyped = PREFIX.replace("    ", "\t").removesuffix("total += ")  # the last of spaces belongs to the next word
    short = attrs.evolve(HOLE, prefix=untyped, max_tokens=4, rule="threshold")
    for steps in (1, 2, 4):
        assert (await answer(scheduler, attrs.evolve(short, steps=steps))).steps <= steps


async def test_a_fill_in_one_line_holds_no_newline(scheduler: Scheduler) -> None:
    for hole in prefixes(6):
        filled = await answer(scheduler, attrs.evolve(hole, extent="line", rule="threshold"))
        assert "\n" not in filled.candidates[0].text


async def test_candidates_differ_and_the_first_is_the_greedy_one(scheduler: Scheduler) -> None:
    greedy = (await answer(scheduler, attrs.evolve(HOLE, choose_from=1))).candidates[0].text
    several = (await answer(scheduler, attrs.evolve(HOLE, candidates=3, temperature=1.5))).candidates
    assert several[0].text == greedy
    assert len({one.text for one in several}) == len(several) > 1


@pytest.mark.parametrize("rule", ["verify", "left-to-right"])
async def test_without_a_temperature_the_others_are_the_same_each_time_and_the_likeliest_comes_first(
    scheduler: Scheduler, rule: RuleName
) -> None:
    for hole in prefixes(3):
        asked = attrs.evolve(hole, candidates=3, rule=rule)
        greedy = (await answer(scheduler, attrs.evolve(hole, rule=rule))).candidates[0]
        several = (await answer(scheduler, asked)).candidates
        assert several[0].tokens == greedy.tokens
        assert len({one.text for one in several}) == len(several) > 1
        likely = [math.prod(one.confidence) * one.end_confidence for one in several[1:]]
        assert likely == sorted(likely, reverse=True)
        again = await answer(scheduler, attrs.evolve(asked, seed=9))
        assert [one.text for one in again.candidates] == [one.text for one in several]


async def test_candidates_that_denoise_differ_without_a_temperature(scheduler: Scheduler) -> None:
    several = (await answer(scheduler, attrs.evolve(HOLE, candidates=3, rule="threshold"))).candidates
    assert len(several) > 1


async def test_passes_are_timed_while_nobody_asks(family: Model) -> None:
    assert isinstance(family, EmbeddedModel)
    family.drafts = planner = CountingPlanner()
    scheduler = Scheduler(family)
    await scheduler.start()
    await answer(scheduler, HOLE)
    await until_timed(planner, 1)
    await scheduler.stop()


class CountingPlanner(DraftPlanner):
    """Counts how often it is told what passes take: two timings may well find the same."""

    def __init__(self) -> None:
        self.timings = -1  # its own assumption comes first
        super().__init__()

    def time(self, milliseconds: Mapping[int, float]) -> None:
        super().time(milliseconds)
        self.timings += 1


async def until_timed(planner: CountingPlanner, times: int) -> None:
    begun = time.monotonic()
    while planner.timings < times:
        assert time.monotonic() < begun + 60
        await asyncio.sleep(0.01)


async def test_what_was_timed_at_the_start_is_timed_again_once_it_is_calm(
    family: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert isinstance(family, EmbeddedModel)
    monkeypatch.setattr(scheduling, "CALM_S", 0.5)
    family.drafts = planner = CountingPlanner()
    scheduler = Scheduler(family)
    await scheduler.start()
    await until_timed(planner, 2)
    await scheduler.stop()


def test_timing_gives_way_to_a_fill(embedded: EmbeddedModel) -> None:
    embedded.drafts = DraftPlanner()
    assumed, asked = embedded.drafts.row_cost, itertools.count()
    assert not time_passes(embedded, lambda: next(asked) == 3)
    assert embedded.drafts.row_cost == assumed
    assert time_passes(embedded)
    assert embedded.drafts.row_cost != assumed


async def test_tokens_add_up_to_the_text_and_each_has_a_confidence(scheduler: Scheduler) -> None:
    for hole in prefixes(4):
        one = (await answer(scheduler, hole)).candidates[0]
        assert "".join(one.tokens) == one.text
        assert len(one.tokens) == len(one.confidence)
        assert all(0.0 <= value <= 1.0 for value in one.confidence)


async def test_progress_shows_the_canvas_fill_up(scheduler: Scheduler) -> None:
    seen: list[Progress] = []
    filled = await scheduler.submit(attrs.evolve(HOLE, rule="threshold", steps=4), seen.append).result
    steps = [progress.step for progress in seen]
    assert steps == sorted(set(steps))
    assert len(steps) > 1
    assert None in seen[0].canvas
    assert "".join(part or "" for part in seen[-1].canvas) == filled.candidates[0].text


async def test_each_pass_of_the_first_candidate_is_reported_once(scheduler: Scheduler) -> None:
    seen: list[Progress] = []
    hole = attrs.evolve(HOLE, rule="left-to-right", candidates=3)
    filled = await scheduler.submit(hole, seen.append).result
    assert [progress.step for progress in seen] == list(range(1, filled.steps + 1))


async def test_a_window_longer_than_the_context_is_cut_and_still_filled(scheduler: Scheduler) -> None:
    long = attrs.evolve(HOLE, prefix="value = 1\n" * 3000 + PREFIX, suffix=SUFFIX * 500)
    filled = await answer(scheduler, long)
    assert filled.candidates
    assert filled.context_tokens <= 192


@pytest.mark.parametrize("rule", ["threshold", "verify", "left-to-right"])
async def test_a_fill_ends_behind_the_token_that_makes_its_first_line_unsure(
    scheduler: Scheduler, rule: RuleName
) -> None:
    for hole in [attrs.evolve(hole, rule=rule) for hole in prefixes(8)]:
        whole = await answer(scheduler, hole)
        tokens, sure = whole.candidates[0].tokens, whole.candidates[0].confidence
        first = next(at for at, token in enumerate(tokens) if token.strip())
        if "\n" not in "".join(tokens[first : first + 3]) and all(map(is_character, tokens[: first + 3])):
            break
    assert "\n" not in "".join(tokens[first : first + 3])
    likely = sure[first] * sure[first + 1]
    ended = await answer(scheduler, attrs.evolve(hole, min_line_probability=likely * (1 + sure[first + 2]) / 2))
    assert ended.candidates[0].finish == "unsure"
    assert ended.candidates[0].tokens == tokens[: first + 3]
    assert ended.steps < whole.steps
