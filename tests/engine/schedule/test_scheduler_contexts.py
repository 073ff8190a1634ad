"""Contexts of a scheduler: read ahead, shared out in a batch, kept as long as there is memory."""

import asyncio
import itertools
from collections.abc import Sequence
from pathlib import Path

import attrs
import pytest
import torch
from scheduler_client import HOLE, PREFIX, answer, prefixes
from support.embedded_models import RUNNERS, load_embedded

from engine.fill.interface import Model, Pass
from engine.fill.sampler import PassResult
from engine.fill.stream import StreamPass
from engine.library.device_memory import UNKNOWN, DeviceMemory
from engine.models.embedded.model import EmbeddedModel
from engine.protocol.messages import Read
from engine.schedule.backend import CancelledFill
from engine.schedule.caches import CACHE_BYTES, cache_bytes_on
from engine.schedule.scheduler import Scheduler
from engine.schedule.textless_jobs import SPARED_ROWS


@pytest.fixture(scope="module", params=RUNNERS)
def family(tiny_model: Path, request: pytest.FixtureRequest) -> Model:
    return load_embedded(tiny_model, str(request.param))


async def test_a_context_that_is_read_ahead_is_there_for_the_fill(scheduler: Scheduler) -> None:
    (hole,) = prefixes(1)
    before = scheduler.report()
    read = await answer(scheduler, Read.of(hole))
    assert read.candidates == []
    assert read.cached_tokens < read.context_tokens
    assert scheduler.report().fills == before.fills, "it is no fill"
    passes = scheduler.report().passes
    again = await answer(scheduler, Read.of(hole))
    assert again.cached_tokens == again.context_tokens
    assert scheduler.report().passes == passes, "nothing is read twice"
    filled = await answer(scheduler, hole)
    assert filled.cached_tokens == filled.context_tokens
    assert filled.candidates


async def test_a_context_that_lacks_little_is_not_read_ahead(scheduler: Scheduler) -> None:
    (hole,) = prefixes(1)
    await answer(scheduler, Read.of(hole))
    passes = scheduler.report().passes
    near = await answer(scheduler, Read.of(attrs.evolve(hole, prefix=hole.prefix + "part + ")))
    assert 0 < near.context_tokens - near.cached_tokens <= SPARED_ROWS
    assert scheduler.report().passes == passes


async def test_what_was_read_ahead_until_it_was_cancelled_is_kept(
    scheduler: Scheduler, family: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    (hole,) = prefixes(1)
    run, loop = family.run, asyncio.get_running_loop()

    def run_and_cancel(batch: Sequence[Pass]) -> list[PassResult]:
        loop.call_soon_threadsafe(scheduler.cancel, ahead)
        return run(batch)

    monkeypatch.setattr(scheduler, "_encode_rows", 16)
    monkeypatch.setattr(family, "run", run_and_cancel)
    ahead = scheduler.submit(Read.of(hole), None)
    with pytest.raises(CancelledFill):
        await ahead.result
    monkeypatch.setattr(family, "run", run)
    filled = await answer(scheduler, hole)
    assert filled.cached_tokens == 16 < filled.context_tokens


async def test_a_batch_reads_for_one_hole_and_for_the_one_that_lacks_least_first(
    scheduler: Scheduler, family: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scheduler, "_encode_rows", 32)
    read, run = list[int](), family.run  # a context's id for each token

    def noted(passes: Sequence[Pass]) -> list[PassResult]:
        reading = [each for each in passes if isinstance(each, StreamPass) and not each.wanted]
        read.extend(id(each.context) for each in reading for _ in each.append)
        assert sum(len(each.append) for each in reading) <= 32, "together they would all be late"
        return run(passes)

    monkeypatch.setattr(family, "run", noted)
    short, long = (attrs.evolve(HOLE, prefix="value = 1\n" * lines + PREFIX) for lines in (12, 30))
    await asyncio.gather(answer(scheduler, long), answer(scheduler, short))
    order = [context for context, _ in itertools.groupby(read)]
    assert len(order) == 2, "each is read without a pause"
    assert read.count(order[0]) < read.count(order[1])


async def test_on_a_gpu_idle_contexts_may_take_a_share_of_what_is_free() -> None:
    large, unknown = (
        DeviceMemory("GPU", 80 << 30, 24 << 30, ("bf16",)),
        DeviceMemory("memory", UNKNOWN, UNKNOWN, ("bf16",)),
    )
    assert cache_bytes_on("cuda", large) == 8 << 30
    assert cache_bytes_on("cuda", unknown) == CACHE_BYTES
    assert cache_bytes_on("cpu", DeviceMemory("memory", 8 << 30, 1 << 30, ("bf16",))) == 128 << 20
    assert cache_bytes_on("cpu", large) == CACHE_BYTES


async def test_when_a_device_is_full_idle_contexts_make_room_for_the_fill_under_way(
    embedded: EmbeddedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = Scheduler(embedded)
    await running.start()
    expected = await answer(running, HOLE)
    run = embedded.run

    def run_while_nothing_is_kept(passes: Sequence[Pass]) -> list[PassResult]:
        if running._cache.bytes:
            raise torch.OutOfMemoryError
        return run(passes)

    monkeypatch.setattr(embedded, "run", run_while_nothing_is_kept)
    other = await answer(running, attrs.evolve(HOLE, prefix="y = 1\n"))
    assert other.steps > 0
    assert (await answer(running, HOLE)).candidates[0].text == expected.candidates[0].text
    await running.stop()


async def test_a_context_that_a_fill_had_no_time_for_is_read_on(
    scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    hole = attrs.evolve(HOLE, prefix="".join(f"name_{number} = {number}\n" for number in range(40)) + PREFIX)
    monkeypatch.setattr(scheduler, "_encode_rows", 16)
    late = await answer(scheduler, attrs.evolve(hole, budget_ms=1.0))
    assert late.candidates[0].text == ""
    fills = scheduler.report().fills
    await scheduler._read_on[0].result
    assert scheduler.report().fills == fills, "to read on is no fill"
    filled = await answer(scheduler, hole)
    assert filled.context_tokens - filled.cached_tokens <= SPARED_ROWS
    assert filled.candidates[0].text


async def test_the_next_fill_of_an_owner_takes_over_what_is_read_on_for_him(
    scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    hole = attrs.evolve(HOLE, prefix="".join(f"other_{number} = {number}\n" for number in range(40)) + PREFIX)
    monkeypatch.setattr(scheduler, "_encode_rows", 16)
    await answer(scheduler, attrs.evolve(hole, budget_ms=1.0))
    filled = await answer(scheduler, attrs.evolve(hole, prefix=hole.prefix + "p"))
    assert filled.candidates[0].text
    assert 0 < filled.cached_tokens < filled.context_tokens
    assert scheduler.report().active == scheduler.report().waiting == 0, "nothing is read twice"
