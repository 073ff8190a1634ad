"""Idle contexts stay within their bounds, and those who type at once keep what their next key needs."""

import pytest

from engine.fill.stream import StreamPass
from engine.library.device_memory import DeviceMemory
from engine.models.embedded.model import EmbeddedModel
from engine.protocol.messages import Fill
from engine.schedule import caches
from engine.schedule.caches import CACHE_BYTES, CROWDED_BYTES, ContextCache, crowded_bytes_on
from engine.schedule.scheduler import Scheduler

OWNERS = range(1, 6)


def key(cache: ContextCache, model: EmbeddedModel, owner: int, file: int = 0) -> bool:
    """Read what an editor's key needs, and give it back; return whether most of it was there."""
    tokens = [10 * owner + file, 7, 7, 7]
    context = cache.take(tokens)
    known = len(context.tokens)
    model.logits([StreamPass(context, tokens[known:], [], [])])
    cache.give_back(context, owner=owner)
    return known == len(tokens)


def one_context(model: EmbeddedModel) -> int:
    cache = ContextCache(model, 1 << 30)
    key(cache, model, 1)
    return cache.bytes


def test_of_many_who_type_in_turn_each_keeps_its_context(embedded: EmbeddedModel) -> None:
    size = one_context(embedded)
    few, crowd = ContextCache(embedded, 3 * size), ContextCache(embedded, 3 * size, 5 * size)
    for cache in (few, crowd):
        assert not any(key(cache, embedded, owner) for owner in OWNERS)
    assert not any(key(few, embedded, owner) for owner in OWNERS), "what went is just what comes next"
    assert all(key(crowd, embedded, owner) for owner in OWNERS)
    assert crowd.bytes == 5 * size


def test_one_who_opens_many_files_gets_no_more_than_the_bound(embedded: EmbeddedModel) -> None:
    size = one_context(embedded)
    cache = ContextCache(embedded, 3 * size, 5 * size)
    for file in range(5):
        key(cache, embedded, 1, file)
    assert cache.bytes == 3 * size
    key(cache, embedded, 2)
    assert key(cache, embedded, 1, 4), "its newest stays"
    assert cache.bytes == 3 * size


def test_people_behind_one_connection_each_keep_theirs(embedded: EmbeddedModel) -> None:
    size = one_context(embedded)
    cache = ContextCache(embedded, size, 5 * size)
    for person in "abc":
        context = cache.take([5, 7, 7], person)
        embedded.logits([StreamPass(context, [5, 7, 7], [], [])])
        cache.give_back(context, person, owner=1)
    assert [len(cache.take([5, 7, 7], person).tokens) for person in "abc"] == [3, 3, 3]


def test_a_larger_crowd_stays_within_its_bound_too(embedded: EmbeddedModel) -> None:
    size = one_context(embedded)
    cache = ContextCache(embedded, size, 3 * size)
    for owner in OWNERS:
        key(cache, embedded, owner)
    assert cache.bytes == 3 * size
    assert key(cache, embedded, OWNERS[-1])


def test_who_has_gone_keeps_nothing(embedded: EmbeddedModel, monkeypatch: pytest.MonkeyPatch) -> None:
    size = one_context(embedded)
    cache = ContextCache(embedded, 2 * size, 5 * size)
    for owner in OWNERS:
        key(cache, embedded, owner)
    cache.shrink()
    assert cache.bytes == 5 * size
    monkeypatch.setattr(caches, "RECENT_S", 0.0)
    cache.shrink()
    assert cache.bytes == 2 * size


def test_the_bound_of_a_crowd_follows_the_machine() -> None:
    large, small = (DeviceMemory("memory", total << 30, 1 << 30, ("bf16",)) for total in (64, 8))
    assert crowded_bytes_on("cpu", large) == CROWDED_BYTES > CACHE_BYTES
    assert crowded_bytes_on("cpu", small) == 512 << 20
    assert crowded_bytes_on("cuda", large) == 0, "there the cache has its share already"


async def test_the_scheduler_keeps_the_context_of_each_owner(
    embedded: EmbeddedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(caches, "CACHE_BYTES", 1)
    scheduler = Scheduler(embedded)
    await scheduler.start()
    fills = {owner: Fill(id=owner, prefix=f"name_{owner} = {owner}\n" * 9, suffix="", max_tokens=2) for owner in OWNERS}
    for fill in fills.values():
        await scheduler.submit(fill, None, fill.id).result
    answers = [await scheduler.submit(fill, None, owner).result for owner, fill in fills.items()]
    await scheduler.stop()
    assert all(answer.cached_tokens > 0.9 * answer.context_tokens for answer in answers)
