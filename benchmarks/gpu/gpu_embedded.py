"""The embedded model on a GPU: one editor that types, and fifty at once on a real engine."""

import asyncio
import os
import statistics
import tempfile
import time

import attrs
import torch

from benchmarks.common.statistic import Percentiles
from benchmarks.gpu.gpu_run import Figure, Run
from engine.client.connection import EngineClient
from engine.client.launcher import EngineOptions, connect_or_start, connect_running
from engine.models.embedded.model import EmbeddedModel
from engine.models.embedded.torch_runner import TorchRunner
from engine.models.load import load
from engine.protocol.messages import Fill
from engine.schedule.scheduler import Scheduler

EDITORS, TINY_EDITORS = 50, 4
FILLS, TINY_FILLS = 20, 3
PAUSE_S = 0.25
"""Between an answer and the same editor's next request, as editors wait for a pause in typing."""
_BODY = "".join(f"    value_{number} = compute(value_{number - 1}, {number})\n" for number in range(40))
_TYPED = "    result = combine(value_3, val"


def _fill(number: int, editor: int) -> Fill:
    """Return the hole of one key press."""
    prefix = f"def work_{editor}(value_0):\n{_BODY}{_TYPED[: 8 + number % (len(_TYPED) - 8)]}"
    return Fill(id=number + 1, prefix=prefix, suffix=")\n    return result\n", budget_ms=5000.0, max_tokens=16)


def alone(run: Run) -> None:
    """Measure key after key in one editor, without a socket."""
    model = load(run.model, device=run.device.type)
    assert isinstance(model, EmbeddedModel)
    assert isinstance(model.runner, TorchRunner)
    milliseconds, passes = asyncio.run(_type(model, FILLS if run.full else TINY_FILLS))
    size = sum(weight.nbytes for weight in model.runner.network.parameters())
    floor = passes * size / run.speeds().bytes
    note = f"{passes:.1f} passes a fill; the floor is reading all weights in each"
    Figure("embedded fill, one editor", statistics.median(milliseconds), floor, note=note).show(run)


async def _type(model: EmbeddedModel, count: int) -> tuple[list[float], float]:
    """Return the milliseconds of each fill, and the mean number of passes."""
    scheduler = Scheduler(model)
    await scheduler.start()
    for number in range(3):
        await scheduler.submit(_fill(number, 0), None).result
    filled = [await scheduler.submit(_fill(number, 0), None).result for number in range(count)]
    await scheduler.stop()
    return [answer.ms.total for answer in filled], statistics.mean(answer.steps for answer in filled)


def fifty(run: Run) -> None:
    """Measure editors that all use one engine, each asking PAUSE_S after its last answer."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["MIDSPAN_RUNTIME_DIR"] = folder  # do not touch the user's own engine
        options = EngineOptions(model=run.model, device=run.device.type, threads=torch.get_num_threads())
        editors, fills = (EDITORS, FILLS) if run.full else (TINY_EDITORS, TINY_FILLS)
        milliseconds = asyncio.run(_all_at_once(options, editors, fills))
    percentiles = Percentiles.of(milliseconds)
    note = f"p95; p50 {percentiles.p50:.1f} ms; {percentiles.count} fills; over the socket"
    Figure(f"embedded fill, {editors} editors at once", percentiles.p95, note=note).show(run)


async def _all_at_once(options: EngineOptions, editors: int, fills: int) -> list[float]:
    first = await connect_or_start(options, "benchmark")
    others = [await connect_running(options, "benchmark") for _ in range(editors - 1)]
    clients = [first, *(client for client in others if client is not None)]
    assert len(clients) == editors, f"only {len(clients)} of {editors} editors could connect"
    await asyncio.gather(*(_edit(client, number, 2) for number, client in enumerate(clients)))  # contexts are read
    milliseconds = await asyncio.gather(*(_edit(client, number, fills) for number, client in enumerate(clients)))
    await first.shutdown()
    for client in clients:
        await client.close()
    return [value for of_editor in milliseconds for value in of_editor]


async def _edit(client: EngineClient, editor: int, fills: int) -> list[float]:
    milliseconds = []
    await asyncio.sleep(PAUSE_S * editor / EDITORS)
    for number in range(fills):
        started = time.perf_counter()
        await client.fill(attrs.evolve(_fill(number, editor), seed=editor))
        milliseconds.append((time.perf_counter() - started) * 1000)
        await asyncio.sleep(PAUSE_S)
    return milliseconds
