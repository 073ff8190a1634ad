"""What capacity.py measures: an engine alone, and simulated editors that type at `midspan serve` with replicas."""

import asyncio
import random
import re
import signal
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import attrs
import psutil

from benchmarks.common.statistic import Percentiles
from benchmarks.editors.minutes_typing import pause
from benchmarks.scale.capacity_simulation import Engine, KeyCost
from benchmarks.scale.scale_editors import files_of, fills_of
from engine.client.connection import EngineClient
from engine.client.launcher import EngineOptions, connect_or_start
from engine.cluster.deployment import core_of
from engine.protocol.framing import pack, unpack_all
from engine.protocol.messages import Fill, Filled

_TOGETHER = (1, 2, 4, 8, 16)
_REPEATS = 12
_BUDGET_MS = 60_000.0
_READY = re.compile(r"midspan serve: http://[\d.]+:(\d+) answers with")


@attrs.frozen
class Typed:
    """What one editor asks: its fills, and the milliseconds after each of them until the next key."""

    fills: list[Fill]
    pauses: list[float]


@attrs.frozen
class RealFigures:
    """Editors that really typed: ms of the answered requests; shares of all; `failed` counts errors.

    `taken` is the share of all cores that went to what is no replica: clients, server, and Ray.
    """

    editors: int
    requests: int
    ms: Percentiles
    answered: float
    failed: int
    taken: float


async def typing_of(client: EngineClient, editors: int, keys: int) -> list[Typed]:
    """Return what so many editors ask, each in a file of its own, at the rhythm of a person."""
    typed = []
    for number, span in enumerate(files_of(editors)):
        fills = fills_of(span, client.welcome.model, keys)
        rhythm = random.Random(number)
        keys_typed = [(span.middle * keys)[index] for index in range(len(fills))]
        typed.append(Typed(fills, [pause(key, rhythm) for key in keys_typed]))
    return typed


async def measured_engine(model: str, threads: int, keys: int) -> tuple[Engine, list[Typed]]:
    """Measure an engine with so many threads, alone: each key of one editor, then many holes at once."""
    client = await connect_or_start(EngineOptions(model=model, threads=threads), "capacity")
    try:
        typed = await typing_of(client, max(_TOGETHER), keys)
        await client.fill(attrs.evolve(typed[1].fills[0], budget_ms=_BUDGET_MS))
        cold = (await client.fill(attrs.evolve(typed[0].fills[0], budget_ms=_BUDGET_MS))).ms.encode
        costs = []
        for fill, wait in zip(typed[0].fills, typed[0].pauses, strict=True):
            filled = await client.fill(fill)
            steps = max(1, filled.steps)
            costs.append(KeyCost(wait, filled.ms.encode, steps, filled.ms.denoise / steps))
        factors = {together: await _step_of(client, typed[:together]) for together in _TOGETHER}
        status = await client.status()
        contexts = max(1.0, len(typed))
        kept = int((core_of(model, 2).cache_megabytes << 20) / max(1.0, status.cache_bytes / contexts))
        name = f"{threads} core{'s' if threads > 1 else ''}"
        engine = Engine(name, costs, {count: step / factors[1] for count, step in factors.items()}, cold, kept)
        return engine, typed
    finally:
        await client.shutdown()
        await client.close()


async def _step_of(client: EngineClient, typed: Sequence[Typed]) -> float:
    """Return the median milliseconds of a step in which so many holes are filled together."""
    steps = []
    for number in range(_REPEATS):
        fills = [attrs.evolve(each.fills[number % len(each.fills)], budget_ms=_BUDGET_MS) for each in typed]
        answers = await asyncio.gather(*(client.fill(fill) for fill in fills))
        steps += [filled.ms.denoise / max(1, filled.steps) for filled in answers]
    return statistics.median(steps)


@contextmanager
def team_server(model: str, replicas: int, people: int, folder: Path) -> Iterator[int]:
    """Run `midspan serve` with one-thread replicas and a token for each person. Yields its port."""
    tokens = folder / "tokens"
    tokens.write_text("".join(f"p{number} {token_of(number)}\n" for number in range(people)))
    tokens.chmod(0o600)
    command = [sys.executable, "-P", "-m", "engine.cli", "serve", "--port", "0", "--model", model, "--rate", "0"]
    command += ["--token-file", str(tokens)]
    if replicas:
        command += ["--replicas", str(replicas), "--threads", "1"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        port, line = 0, ""
        for line in process.stderr:
            if (found := _READY.search(line)) is not None:
                port = int(found[1])
                break
        if not port:
            raise RuntimeError(f"midspan serve did not start: {line.strip()}")
        threading.Thread(target=process.stderr.read, daemon=True).start()  # a full pipe would stop the server
        yield port
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(120)


def token_of(person: int) -> str:
    return f"{person:032d}"


async def type_together(port: int, typed: Sequence[Typed], keys: int) -> RealFigures:
    """Let all editors type: at each key they ask, and what is not answered by the next key is cancelled."""
    editors = [_Editor(port, number, each) for number, each in enumerate(typed)]
    for editor in editors:
        await editor.ask(editor.typed.fills[0])  # reads the context, and does not count
        editor.ms.clear()
    before, begun = _beside_replicas_s(), time.perf_counter()
    await asyncio.gather(*(editor.type(keys) for editor in editors))
    taken = (_beside_replicas_s() - before) / ((time.perf_counter() - begun) * psutil.cpu_count())
    ms = [value for editor in editors for value in editor.ms]
    requests = sum(editor.asked for editor in editors)
    failed = sum(editor.failed for editor in editors)
    return RealFigures(len(editors), requests, Percentiles.of(ms), len(ms) / max(1, requests), failed, taken)


def _beside_replicas_s() -> float:
    """Return the processor's seconds so far of everything but Ray's replicas."""
    all_times = psutil.cpu_times()
    replicas = [process for process in psutil.process_iter(["cmdline"]) if _is_replica(process)]
    of_replicas = sum(sum(process.cpu_times()[:2]) for process in replicas)
    return float(all_times.user + all_times.nice + all_times.system - of_replicas)


def _is_replica(process: psutil.Process) -> bool:
    return bool(process.info["cmdline"]) and process.info["cmdline"][0].startswith("ray::ServeReplica")


class _Editor:
    """A client with one connection, which it closes to cancel, as Midspan's own does."""

    def __init__(self, port: int, person: int, typed: Typed) -> None:
        self._port, self._person, self.typed = port, person, typed
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self.ms: list[float] = []
        self.asked = self.failed = 0

    async def type(self, keys: int) -> None:
        due = time.perf_counter() + random.Random(self._person).random() * 0.5
        for fill, wait in list(zip(self.typed.fills, self.typed.pauses, strict=True))[:keys]:
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            due += wait / 1000
            asking = asyncio.create_task(self.ask(fill))
            self.asked += 1
            await asyncio.wait({asking}, timeout=max(0.0, due - time.perf_counter()))
            if not asking.done():
                asking.cancel()
                await asyncio.gather(asking, return_exceptions=True)
        self._close()

    async def ask(self, fill: Fill) -> None:
        begun = time.perf_counter()
        try:
            await self._exchange(pack(fill))
            self.ms.append((time.perf_counter() - begun) * 1000)
        except asyncio.CancelledError:
            self._close()
            raise
        except (OSError, ValueError, asyncio.IncompleteReadError):
            self._close()
            self.failed += 1

    async def _exchange(self, body: bytes) -> None:
        if self._streams is None:
            self._streams = await asyncio.open_connection("127.0.0.1", self._port)
        reader, writer = self._streams
        bearer = f"Authorization: Bearer {token_of(self._person)}\r\n"
        head = f"POST /midspan/fill HTTP/1.1\r\nHost: 127.0.0.1\r\n{bearer}Content-Length: {len(body)}\r\n\r\n"
        writer.write(head.encode() + body)
        answer = await reader.readuntil(b"\r\n\r\n")
        length = re.search(rb"content-length: (\d+)", answer, re.IGNORECASE)
        content = await reader.readexactly(int(length[1]) if length else 0)
        if not answer.startswith(b"HTTP/1.1 200") or not isinstance(unpack_all(content)[0], Filled):
            raise ValueError(answer[:20])

    def _close(self) -> None:
        if self._streams is not None:
            with suppress(OSError):
                self._streams[1].transport.abort()
            self._streams = None
