"""Which waiting fill is next: no owner starves the others, and under overload the newest texts are answered."""

import asyncio
from collections.abc import Sequence

import attrs
import pytest
from raw_client import HOLE

from engine.models.embedded.model import EmbeddedModel
from engine.protocol.messages import Read
from engine.schedule.fill_queue import (
    HURRIED_MS,
    HURRIED_ON_CPU,
    MAX_BATCH,
    NEARLY_S,
    OWNER_BATCH,
    PATIENCE_S,
    FillQueue,
    ScheduledTicket,
)
from engine.schedule.scheduler import Scheduler

LONG = attrs.evolve(HOLE, rule="left-to-right", max_tokens=64, extent="lines", budget_ms=6e5)


def ticket(owner: int, submitted: float) -> ScheduledTicket:
    return ScheduledTicket(HOLE, asyncio.Future(), None, submitted, owner)


def taken(queue: FillQueue, active: Sequence[ScheduledTicket], now: float) -> list[tuple[int, float]]:
    """Return the owners and times of the fills that join, one after the other."""
    joined = list(active)
    while (one := queue.take(joined, now)) is not None:
        joined.append(one)
    return [(one.owner, one.submitted) for one in joined[len(active) :]]


@pytest.fixture
async def queue() -> FillQueue:
    return FillQueue()


async def test_owners_take_turns_and_the_newest_text_comes_first(queue: FillQueue) -> None:
    for owner, submitted in ((1, 0.1), (1, 0.2), (2, 0.3), (3, 0.4), (2, 0.5)):
        queue.put(ticket(owner, submitted))
    assert taken(queue, [], 0.6) == [(2, 0.5), (3, 0.4), (1, 0.2), (2, 0.3), (1, 0.1)]


async def test_whose_keys_come_shortly_before_anothers_gets_a_turn_too(queue: FillQueue) -> None:
    first = []
    for key in range(6):
        now = key * 0.15
        for each in (early := ticket(1, now)), (late := ticket(2, now + NEARLY_S / 2)), ticket(3, now - 2 * NEARLY_S):
            queue.put(each)
        chosen = queue.take([], now + NEARLY_S)
        assert chosen in (early, late), "a text that is older by far goes last, however long its owner has waited"
        first.append(chosen.owner)
        for left in list(queue):
            queue.remove(left)
    assert first == [2, 1, 2, 1, 2, 1]


async def test_what_has_waited_long_goes_first(queue: FillQueue) -> None:
    for owner, submitted in ((1, 0.0), (2, PATIENCE_S), (3, PATIENCE_S + 0.2)):
        queue.put(ticket(owner, submitted))
    assert taken(queue, [], PATIENCE_S + 0.3)[0] == (1, 0.0)


async def test_one_owner_never_takes_all_places(queue: FillQueue) -> None:
    for number in range(40):
        queue.put(ticket(1, number / 1000))
    joined = [ticket(1, 0) for _ in range(OWNER_BATCH - 2)]
    assert len(taken(queue, joined, 0.1)) == 2
    queue.put(ticket(2, 0.2))
    assert taken(queue, [*joined, ticket(1, 0), ticket(1, 0)], 0.3) == [(2, 0.2)]


async def test_of_hurried_fills_only_so_many_are_under_way() -> None:
    def hurried(owner: int) -> ScheduledTicket:
        fill = attrs.evolve(HOLE, budget_ms=HURRIED_MS / 2)
        return ScheduledTicket(fill, asyncio.Future(), None, owner / 1000, owner)

    queue = FillQueue(HURRIED_ON_CPU)
    for owner in range(HURRIED_ON_CPU):
        queue.put(hurried(owner))
    under_way = [hurried(90 + number) for number in range(HURRIED_ON_CPU - 1)]
    assert taken(queue, under_way, 0.1) == [(HURRIED_ON_CPU - 1, (HURRIED_ON_CPU - 1) / 1000)]
    queue.put(ScheduledTicket(LONG, asyncio.Future(), None, 0.05, 50))
    assert taken(queue, [*under_way, hurried(80)], 0.1) == [(50, 0.05)], "what has time does not wait for them"
    assert len(queue) == HURRIED_ON_CPU - 1


async def test_who_types_does_not_wait_for_long_fills_of_his_own(queue: FillQueue) -> None:
    many = [ScheduledTicket(LONG, asyncio.Future(), None, number / 1000, 1) for number in range(40)]
    for one in many[OWNER_BATCH:]:
        queue.put(one)
    queue.put(ticket(1, 0.2))
    queue.put(ScheduledTicket(LONG, asyncio.Future(), None, 0.3, 2))
    assert taken(queue, many[:OWNER_BATCH], 0.4)[:2] == [(1, 0.2), (2, 0.3)]


async def test_there_are_never_more_than_a_batch(queue: FillQueue) -> None:
    for owner in range(2 * MAX_BATCH):
        queue.put(ticket(owner, 0.0))
    assert len(taken(queue, [], 0.1)) == MAX_BATCH
    assert len(queue) == MAX_BATCH


async def test_a_fill_of_another_client_does_not_wait_for_sixty_long_ones(embedded: EmbeddedModel) -> None:
    scheduler = Scheduler(embedded)
    await scheduler.start()
    many = [scheduler.submit(LONG, None, owner=1).result for _ in range(60)]
    one = scheduler.submit(attrs.evolve(HOLE, max_tokens=4), None, owner=2).result
    await one
    assert sum(each.done() for each in many) <= OWNER_BATCH
    await asyncio.gather(*many)
    await scheduler.stop()


async def test_a_fill_ahead_of_the_user_waits_until_nobody_waits(queue: FillQueue) -> None:
    ahead = ScheduledTicket(attrs.evolve(HOLE, ahead=True), asyncio.Future(), None, 0.0, 1)
    queue.put(ahead)
    queue.put(ticket(2, PATIENCE_S))
    assert taken(queue, [], PATIENCE_S + 0.5) == [(2, PATIENCE_S)], "however long it has waited"
    assert taken(queue, [ticket(2, 0.0)], 9.0) == []
    assert taken(queue, [], 9.0) == [(1, 0.0)]


async def test_fills_ahead_take_no_place_of_the_others(queue: FillQueue) -> None:
    ahead = [ScheduledTicket(attrs.evolve(HOLE, ahead=True), asyncio.Future(), None, 0.0, 1) for _ in range(MAX_BATCH)]
    queue.put(ticket(1, 0.1))
    assert taken(queue, ahead, 0.2) == [(1, 0.1)]


async def test_what_is_only_read_joins_nothing(queue: FillQueue) -> None:
    reads = [ScheduledTicket(Read.of(HOLE), asyncio.Future(), None, at, 1) for at in (0.0, 0.1)]
    for one in reads:
        queue.put(one)
    ahead = ScheduledTicket(attrs.evolve(HOLE, ahead=True), asyncio.Future(), None, 0.0, 1)
    assert queue.take([ahead], 0.2) is None
    assert queue.take([ticket(2, 0.1)], 0.2) is None
    assert taken(queue, [], 0.2) == [(1, 0.1)], "one at a time"
