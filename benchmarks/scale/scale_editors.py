"""Several editors that type at once: one engine process, and a client over the socket for each editor."""

import asyncio
import math
import statistics
import time
from pathlib import Path

import attrs
import psutil
from lsprotocol import types

from benchmarks.common.sources import Span, middle_line
from benchmarks.common.statistic import Percentiles
from engine.client.connection import EngineClient, EngineFailure
from engine.client.launcher import EngineOptions, connect_or_start
from engine.protocol.messages import Fill, ModelInfo, Read
from lsp_server.documents.store import Documents, position_in
from lsp_server.settings import Settings
from lsp_server.suggest.pipeline import plan

KEY_S = 0.15
"""From a key to the next."""
_READ_MS = 10_000.0
_UTF32 = types.PositionEncodingKind.Utf32


@attrs.frozen
class EditorsFigures:
    """So many editors: milliseconds of the answered requests, shares of all requests, cores that the engine used.

    A request is replaced if the next key comes before its answer; `failed` counts those that got an error. `slowest` is
    the 95th percentile of the slowest editor, divided by the median of all editors' 95th percentiles.
    """

    editors: int
    requests: int
    ms: Percentiles
    answered: float
    replaced: float
    failed: int
    cores: float
    slowest: float


@attrs.define
class _Editor:
    """One client and what it asks at each key, and the milliseconds of the answers that it got."""

    client: EngineClient
    fills: list[Fill]
    delay: float
    ms: list[float] = attrs.field(factory=list)
    replaced: int = 0
    failed: int = 0

    async def type(self) -> None:
        """Ask at each key, and cancel what is not answered when the next one comes."""
        await asyncio.sleep(self.delay)
        due = time.perf_counter()
        for fill in self.fills:
            asked = asyncio.create_task(self._ask(fill))
            due += KEY_S
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            if not asked.done():
                self.replaced += 1
                asked.cancel()
            await asyncio.gather(asked, return_exceptions=True)

    async def _ask(self, fill: Fill) -> None:
        started = time.perf_counter()
        try:
            await self.client.fill(fill)
            self.ms.append((time.perf_counter() - started) * 1000)
        except EngineFailure:
            self.failed += 1


async def type_together(model: str, counts: list[int], keys: int) -> list[EditorsFigures]:
    """Let each of `counts` editors type `keys` keys into a file of its own, which it has opened before."""
    options = EngineOptions(model=model)
    first = await connect_or_start(options, "midspan-bench")
    clients = [first]
    try:
        spans = files_of(max(counts))
        fills = [fills_of(span, first.welcome.model, keys) for span in spans]
        while len(clients) < max(counts):
            clients.append(await connect_or_start(options, "midspan-bench"))
        await _together(clients[:1], [fills[0][:5]])  # The first fills warm up and do not count.
        return [await _together(clients[:count], fills[:count]) for count in counts]
    finally:
        for client in clients:
            await client.close()


async def _together(clients: list[EngineClient], fills: list[list[Fill]]) -> EditorsFigures:
    # Keys of different editors do not come at the same moment, and not in turn either.
    editors = [
        _Editor(client, own, KEY_S * (number * 0.618 % 1))
        for number, (client, own) in enumerate(zip(clients, fills, strict=True))
    ]
    for editor in editors:  # As the language server does where the cursor rests, before any key.
        await editor.client.ask(attrs.evolve(Read.of(editor.fills[0]), budget_ms=_READ_MS))
    engine = psutil.Process(clients[0].welcome.pid)
    before, started = engine.cpu_times(), time.perf_counter()
    await asyncio.gather(*(editor.type() for editor in editors))
    after, took = engine.cpu_times(), time.perf_counter() - started
    ms = [value for editor in editors for value in editor.ms]
    requests = sum(len(editor.fills) for editor in editors)
    return EditorsFigures(
        editors=len(editors),
        requests=requests,
        ms=Percentiles.of(ms),
        answered=len(ms) / requests,
        replaced=sum(editor.replaced for editor in editors) / requests,
        failed=sum(editor.failed for editor in editors),
        cores=(after.user + after.system - before.user - before.system) / took,
        slowest=_slowest(editors),
    )


def _slowest(editors: list[_Editor]) -> float:
    """An editor without any answer is infinitely slow."""
    of_each = sorted(Percentiles.of(editor.ms).p95 if editor.ms else math.inf for editor in editors)
    median = of_each[len(of_each) // 2]
    return math.inf if median == math.inf else of_each[-1] / median


def files_of(count: int) -> list[Span]:
    """Return lines of real code to type, in the middle of `count` modules of the standard library."""
    paths = sorted(Path(statistics.__file__).parent.glob("*.py"), key=lambda path: path.stat().st_size)
    spans = [span for path in paths[len(paths) // 3 :] if (span := middle_line(path)) is not None]
    return spans[:: len(spans) // count][:count]


def fills_of(span: Span, model: ModelInfo, keys: int) -> list[Fill]:
    """Return what the language server asks at each key; the text is typed again from its start when it ends."""
    documents, uri, fills = Documents(), span.path.as_uri(), list[Fill]()
    while len(fills) < keys:
        documents.open(uri, "python", 0, span.text)
        for typed, char in enumerate(span.middle[: keys - len(fills)]):
            snapshot = documents.snapshot(uri)
            if snapshot is None:
                raise RuntimeError(f"{uri} is open but has no snapshot")
            cursor = position_in(snapshot.source, span.offset + typed, _UTF32)
            change = types.TextDocumentContentChangePartial(range=types.Range(cursor, cursor), text=char)
            documents.change(uri, typed + 1, [change], _UTF32)
            changed = documents.snapshot(uri)
            if changed is not None:
                fills.append(plan(changed, span.offset + typed + 1, model, Settings(), path=span.path.name).fill)
    return fills
