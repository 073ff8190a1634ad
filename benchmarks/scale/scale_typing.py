"""Typing through a real language server: into files from 1 kB to 10 MB, and for long, weighing its processes."""

import time
from pathlib import Path

import attrs
import psutil

from benchmarks.common.sources import typed_lines
from benchmarks.common.statistic import Percentiles
from benchmarks.latency.extraction import long_text
from engine.cli.cursor import Cursor
from engine.cli.json_rpc import LanguageServerError
from engine.cli.lsp_client import LspSession
from engine.protocol.editor_messages import FillOptions

_QUARTERS = 5
_LONG_LINES = 400
_LINES = 20_000
_TYPED = "    result = compute(first, second)"


@attrs.frozen
class FileFigures:
    """A size in bytes: ms from opening to the first fill, ms from a key to its answer, and what midspan/fill says.

    `told` is empty for a file that is filled.
    """

    size: int
    opened_ms: float
    key: Percentiles
    told: str


async def type_into_sizes(model: str, sizes: list[int], keys: int, folder: Path) -> list[FileFigures]:
    """Type `keys` keys into the middle of a file of each size. All are real Python code, repeated where it is short."""
    code, figures = long_text(_LINES).encode("ascii", "ignore").decode(), []
    async with LspSession(model, workspace=folder) as session:
        for size in sizes:
            text = (code * (1 + size // len(code)))[:size]
            figures.append(await _type_into(session, folder / f"file{size}.py", text, keys))
    return figures


async def _type_into(session: LspSession, path: Path, text: str, keys: int) -> FileFigures:
    middle = Cursor.at_offset(path, text, text.rfind("\n", 0, len(text) // 2) + 1)
    line, told, taken = middle.line, "", []
    started = time.perf_counter()
    await session.open(path, text)
    try:
        await session.fill(middle, FillOptions())
    except LanguageServerError as error:
        told = str(error).rpartition(": ")[2]
    opened_ms = (time.perf_counter() - started) * 1000
    for typed, char in enumerate((_TYPED * keys)[:keys]):
        started = time.perf_counter()
        await session.type_text(Cursor(path, "", line, typed), char)
        await session.suggest(Cursor(path, "", line, typed + 1))
        taken.append((time.perf_counter() - started) * 1000)
    await session.close(path)
    return FileFigures(len(text), opened_ms, Percentiles.of(taken), told)


@attrs.frozen
class Resident:
    """Megabytes of both processes, and the keys typed until then."""

    minutes: float
    keys: int
    server: float
    engine: float


async def type_for(model: str, minutes: float, folder: Path) -> list[Resident]:
    """Type lines of real code for so long, one key after the answer to the other; weigh at each quarter."""
    spans, weighed, keys = typed_lines(_LONG_LINES), list[Resident](), 0
    async with LspSession(model, workspace=folder) as session:
        await session.open(spans[0].path, spans[0].text)
        await session.fill(Cursor.at_offset(spans[0].path, spans[0].text, spans[0].offset), FillOptions())
        await session.close(spans[0].path)
        engine = (await session.status()).engine
        if engine is None:
            return []
        server_process, engine_process = psutil.Process(session.pid), psutil.Process(engine.pid)
        began = time.perf_counter()
        while len(weighed) < _QUARTERS:
            for span in spans:
                after = (time.perf_counter() - began) / 60
                if after >= minutes * len(weighed) / (_QUARTERS - 1):
                    server, of_engine = (each.memory_info().rss / 1e6 for each in (server_process, engine_process))
                    weighed.append(Resident(after, keys, server, of_engine))
                if len(weighed) == _QUARTERS:
                    break
                await session.open(span.path, span.text)
                first = Cursor.at_offset(span.path, span.text, span.offset)
                for typed, char in enumerate(span.middle):
                    place = attrs.evolve(first, character=first.character + typed)
                    await session.type_text(place, char)
                    await session.suggest(attrs.evolve(place, character=place.character + 1))
                    keys += 1
                await session.close(span.path)
    return weighed
