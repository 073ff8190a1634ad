"""Measures starts: of the language server, and of the engine up to its first fill."""

import statistics
import time

import attrs
import psutil

from benchmarks.common.sources import Span
from engine.cli.cursor import Cursor
from engine.cli.lsp_client import LspSession
from engine.client.launcher import EngineOptions, connect_running
from engine.protocol.editor_messages import FillOptions

_MEGABYTE = 1e6
_CLIENT = "midspan-bench"


@attrs.frozen
class StartFigures:
    """Milliseconds and megabytes. `engine_first_fill_ms` is from a request without an engine to its answer."""

    initialize_ms: float
    server_rss_mb: float
    engine_first_fill_ms: float
    engine_second_fill_ms: float
    engine_rss_mb: float


async def measure_starts(model: str, span: Span, repeats: int) -> StartFigures:
    """Start the language server `repeats` times, for the median, and a cold engine once; the engine keeps running."""
    initialize = []
    for _ in range(repeats):
        async with LspSession(model) as session:
            initialize.append(session.initialize_ms)
    await stop_engine(model)
    cursor = Cursor.at_offset(span.path, span.text, span.offset)
    async with LspSession(model) as session:
        await session.open(span.path, span.text)
        fills = []
        for _ in range(2):
            started = time.perf_counter()
            await session.fill(cursor, FillOptions(budget_ms=5000))
            fills.append((time.perf_counter() - started) * 1000)
        server_rss = psutil.Process(session.pid).memory_info().rss
        engine = (await session.status()).engine
    engine_rss = psutil.Process(engine.pid).memory_info().rss if engine else 0
    return StartFigures(
        statistics.median(initialize), server_rss / _MEGABYTE, fills[0], fills[1], engine_rss / _MEGABYTE
    )


async def stop_engine(model: str) -> None:
    """Stop the engine of this model if one runs in this runtime folder."""
    client = await connect_running(EngineOptions(model=model), _CLIENT)
    if client is not None:
        await client.shutdown()
        await client.close()
