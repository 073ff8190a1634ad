"""A fill that is chosen from several: the text whose probability, times that of what follows it, is the largest."""

import asyncio
import itertools
import math
from pathlib import Path

import attrs
import numpy as np
import pytest
from scheduler_client import HOLE, SUFFIX, answer
from support.embedded_models import RUNNERS, load_embedded

from engine.fill.follows import FOLLOWS, FOLLOWS_WEIGHT, likelihood
from engine.fill.sampler import Query
from engine.fill.stream import StreamPass
from engine.models.embedded.model import EmbeddedModel
from engine.protocol.messages import Candidate, Fill, Filled, RuleName
from engine.schedule.fill_queue import MAX_BATCH
from engine.schedule.scheduler import Scheduler

TABBED = HOLE.prefix.removesuffix("        total += ") + "\t\t"
"""No token of the fill writes a part of it again."""
CHOSEN = attrs.evolve(HOLE, prefix=TABBED, rule="verify", choose_from=4, extent="lines", max_tokens=6)


def same(one: Filled, other: Filled) -> bool:
    """Return whether two fills have the same tokens, as sure as rows beside them leave it: sums have another order."""
    pairs = list(zip(one.candidates, other.candidates, strict=True))
    return all(
        first.tokens == second.tokens and first.confidence == pytest.approx(second.confidence, abs=2e-4)
        for first, second in pairs
    )


@pytest.fixture(scope="module", params=RUNNERS)
def family(tiny_model: Path, request: pytest.FixtureRequest) -> EmbeddedModel:
    found = load_embedded(tiny_model, str(request.param))
    found.card = attrs.evolve(found.card, anchor="text")
    return found


def holes(count: int) -> list[Fill]:
    """Return holes at the end of a line whose contexts differ."""
    return [attrs.evolve(CHOSEN, prefix=f"name_{number} = {number * 7}\n" + TABBED) for number in range(count)]


def weight(model: EmbeddedModel, fill: Fill, candidate: Candidate) -> float | None:
    """Return what the candidate is chosen by, from a context of its own; None if a text is that of no single token."""
    layout = model.lay_out(fill)
    texts = dict[str, list[int]]()
    for token in range(model.card.shape.vocabulary):
        texts.setdefault(model.texts_of([token])[0], []).append(token)
    if any(len(texts[text]) > 1 for text in candidate.tokens):
        return None
    middle = [texts[text][0] for text in candidate.tokens]
    follows = model.tokenizer.encode(fill.suffix, add_special_tokens=False).ids[:FOLLOWS]
    context = model.new_context()
    model.run([model.read(context, layout.context)])
    rows = [layout.anchor, *middle, *follows[:-1]]
    wanted = range(len(rows) - len(follows), len(rows))
    (result,) = model.run([StreamPass(context, rows, [], wanted, Query(named=np.array(follows)[:, None]))])
    return likelihood(candidate) + FOLLOWS_WEIGHT * float(np.log(result.predictions.named[:, 0]).sum())


async def test_the_first_is_likely_and_makes_what_follows_likely(scheduler: Scheduler, family: EmbeddedModel) -> None:
    compared, otherwise = 0, 0
    for hole in holes(16):
        fill = attrs.evolve(hole, candidates=4, max_tokens=2)
        filled = await answer(scheduler, fill)
        assert filled.chosen_from == 4
        known = [(found, each) for each in filled.candidates if (found := weight(family, fill, each)) is not None]
        for (one, better), (other, worse) in itertools.pairwise(known):
            assert one >= other - 0.05, (better.text, worse.text)
            compared += 1
            otherwise += likelihood(better) < likelihood(worse)
    assert compared > 4
    assert otherwise, "by their own probabilities the order would be the same"


async def test_the_first_of_four_is_the_answer_when_one_is_asked_for(scheduler: Scheduler) -> None:
    for hole in holes(4):
        several = await answer(scheduler, attrs.evolve(hole, candidates=4))
        one = await answer(scheduler, hole)
        assert [each.text for each in one.candidates] == [several.candidates[0].text]


async def test_it_is_chosen_the_same_in_a_batch(scheduler: Scheduler) -> None:
    alone = [await answer(scheduler, hole) for hole in holes(5)]
    together = await asyncio.gather(*(scheduler.submit(hole, None).result for hole in holes(5)))
    assert [one.candidates[0].tokens for one in together] == [one.candidates[0].tokens for one in alone]


async def test_the_next_fill_finds_the_context_as_if_nothing_was_looked_at(scheduler: Scheduler) -> None:
    plain = attrs.evolve(CHOSEN, choose_from=1)
    before = await answer(scheduler, plain)
    await answer(scheduler, CHOSEN)
    after = await answer(scheduler, plain)
    assert same(after, before)
    assert after.cached_tokens == after.context_tokens


@pytest.mark.parametrize("rule", ["verify", "left-to-right"])
async def test_the_default_rule_chooses_and_others_do_when_asked(scheduler: Scheduler, rule: RuleName) -> None:
    assert (await answer(scheduler, attrs.evolve(CHOSEN, rule="default", choose_from=0))).chosen_from > 1
    assert (await answer(scheduler, attrs.evolve(CHOSEN, rule=rule, choose_from=0))).chosen_from == 1
    assert (await answer(scheduler, attrs.evolve(CHOSEN, rule=rule, choose_from=2))).chosen_from == 2


async def test_a_fill_that_is_watched_answers_what_was_seen(scheduler: Scheduler) -> None:
    watched = attrs.evolve(CHOSEN, rule="default", choose_from=0, progress=True)
    filled = await answer(scheduler, watched)
    assert filled.chosen_from == 1
    assert same(filled, await answer(scheduler, attrs.evolve(watched, rule="verify")))


async def test_while_many_wait_nothing_is_chosen(scheduler: Scheduler) -> None:
    fill = attrs.evolve(CHOSEN, rule="default", choose_from=0, max_tokens=24, budget_ms=600_000.0)
    tickets = [scheduler.submit(fill, None, owner=number) for number in range(2 * MAX_BATCH + 2)]
    assert {(await ticket.result).chosen_from for ticket in tickets} == {1, 4}


async def test_in_the_middle_of_a_line_it_is_the_greedy_text(scheduler: Scheduler) -> None:
    hole = attrs.evolve(CHOSEN, suffix=" + 1)" + SUFFIX)
    filled = await answer(scheduler, hole)
    assert filled.chosen_from == 1
    assert same(filled, await answer(scheduler, attrs.evolve(hole, choose_from=1)))


async def test_at_the_end_of_a_file_the_likeliest_is_chosen(scheduler: Scheduler) -> None:
    for hole in holes(4):
        filled = await answer(scheduler, attrs.evolve(hole, suffix="", candidates=4))
        likely = [likelihood(each) for each in filled.candidates]
        assert filled.chosen_from == 4
        assert likely == sorted(likely, reverse=True)
        assert likely[0] > -math.inf


async def test_a_fill_without_time_for_more_is_the_greedy_one(scheduler: Scheduler) -> None:
    late = await answer(scheduler, attrs.evolve(CHOSEN, budget_ms=1.0))
    assert len(late.candidates) == 1
