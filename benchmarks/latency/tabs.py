"""How soon is the next suggestion there after one was accepted? Types real code into a real midspan-lsp.

Run it as `python benchmarks/latency/tabs.py`. A suggestion whose first line is right is accepted after the time that a
reader takes; then the request comes that an editor sends after the accepted text.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import asyncio
import os
import tempfile
import time
from typing import Annotated

import attrs
import typer
from rich.console import Console
from rich.table import Table

from benchmarks.common.sources import Span, block_holes
from benchmarks.common.startup import stop_engine
from benchmarks.common.statistic import Percentiles
from engine.cli.cursor import Cursor
from engine.cli.lsp_client import LspSession
from engine.errors import MidspanError
from engine.evaluation.keystrokes import is_start
from engine.protocol.editor_messages import FillOptions


@attrs.define
class Times:
    """Milliseconds from an edit to the answer of the request after it: after an accept with a suggestion in the answer,
    after an accept without one, and after any other key.
    """

    next_shown: list[float] = attrs.field(factory=list)
    next_empty: list[float] = attrs.field(factory=list)
    typed: list[float] = attrs.field(factory=list)


def main(
    model: Annotated[str, typer.Option(help='"embedded", a name or a folder.')] = "embedded",
    count: Annotated[int, typer.Option(help="Blocks to type.")] = 30,
    think: Annotated[float, typer.Option(help="Seconds that a reader takes before Tab.")] = 0.4,
    pause: Annotated[float, typer.Option(help="Seconds from an answer to the next key.")] = 0.03,
) -> None:
    """Type blocks of code, take what is right, and print the times."""
    with tempfile.TemporaryDirectory(prefix="midspan-bench-") as folder:
        os.environ["MIDSPAN_RUNTIME_DIR"] = os.environ["MIDSPAN_DATA_DIR"] = folder
        try:
            times = asyncio.run(_measure(model, count, think, pause))
        except MidspanError as error:
            typer.echo(f"tabs: {error}", err=True)
            raise typer.Exit(1) from None
    table = Table("milliseconds after", "requests", "p50", "p95", "p99")
    for name, values in (
        ("an accept, with a next suggestion", times.next_shown),
        ("an accept, without", times.next_empty),
        ("a typed key", times.typed),
    ):
        each = Percentiles.of(values)
        table.add_row(name, str(each.count), *(f"{value:.1f}" for value in (each.p50, each.p95, each.p99)))
    Console(highlight=False).print(table)


async def _measure(model: str, count: int, think: float, pause: float) -> Times:
    times = Times()
    try:
        async with LspSession(model) as session:
            for span in block_holes(count):
                await session.open(span.path, span.text)
                await session.fill(_cursor(span, 0), FillOptions())
                await _type(session, span, think, pause, times)
                await session.close(span.path)
    finally:
        await stop_engine(model)
    return times


async def _type(session: LspSession, span: Span, think: float, pause: float, times: Times) -> None:
    typed, accepted, insert = 0, False, span.middle[0]
    while typed + len(insert) <= len(span.middle):
        begun = time.perf_counter()
        await session.type_text(_cursor(span, typed), insert)
        typed += len(insert)
        items = await session.suggest(_cursor(span, typed))
        ms = (time.perf_counter() - begun) * 1000
        shown = items[0].insert_text if items else ""
        (times.typed if not accepted else times.next_shown if shown else times.next_empty).append(ms)
        rest = span.middle[typed:]
        if not rest:
            return
        first = shown.partition("\n")[0]
        accepted = is_start(first, rest.partition("\n")[0])
        insert = (shown if rest.startswith(shown) else first) if accepted else rest[0]
        await asyncio.sleep(think if accepted else pause)


def _cursor(span: Span, typed: int) -> Cursor:
    text = span.text[: span.offset] + span.middle[:typed] + span.text[span.offset :]
    return Cursor.at_offset(span.path, text, span.offset + typed)


if __name__ == "__main__":
    typer.run(main)
