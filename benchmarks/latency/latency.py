"""How long does a suggestion take? Types real files into a real midspan-lsp, and compares the commit rules.

Run it as `python benchmarks/latency/latency.py` (or `make bench`); `--quick` uses a tenth of the holes. It starts an
engine of its own in a runtime folder of its own, so the first start is cold and the user's engine is not touched.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import asyncio
import os
import tempfile
from typing import Annotated

import typer
from rich.console import Console

from benchmarks.common.machine import this_machine
from benchmarks.common.sources import block_holes, line_holes, typed_lines
from benchmarks.common.startup import measure_starts, stop_engine
from benchmarks.latency.commit_rules import compare_rules
from benchmarks.latency.report import Report, show, write
from benchmarks.latency.typing_session import replay
from engine.cli.lsp_client import LspSession
from engine.client.launcher import EngineOptions, connect_or_start
from engine.errors import MidspanError

_OUT = Path(__file__).resolve().parents[1] / "out"


def main(
    quick: Annotated[bool, typer.Option("--quick", help="A few holes only: checks that it runs.")] = False,
    model: Annotated[str, typer.Option(help='"embedded" or a folder with a model.')] = "embedded",
    look_s: Annotated[float, typer.Option("--look", help="Seconds at each place before somebody types there.")] = 0.0,
    out: Annotated[Path, typer.Option(help="The folder for JSON and plot.")] = _OUT,
) -> None:
    """Measure starts, typing and the commit rules; print tables, write JSON and a plot."""
    console = Console(highlight=False)
    with tempfile.TemporaryDirectory(prefix="midspan-bench-") as folder:
        os.environ["MIDSPAN_RUNTIME_DIR"] = os.environ["MIDSPAN_DATA_DIR"] = folder
        try:
            report = asyncio.run(_measure(model, 0.1 if quick else 1.0, look_s, console))
        except MidspanError as error:
            typer.echo(f"latency: {error}", err=True)
            raise typer.Exit(1) from None
    show(report, console)
    for path in write(report, out):
        console.print(f"wrote {path}", soft_wrap=True)


async def _measure(model: str, share: float, look_s: float, console: Console) -> Report:
    typed = typed_lines(round(40 * share))
    holes = [*line_holes(round(60 * share)), *block_holes(round(60 * share))]
    try:
        with console.status("starting servers and a cold engine"):
            starts = await measure_starts(model, typed[0], 5 if share == 1 else 1)
        with console.status(f"typing {len(typed)} lines"):
            async with LspSession(model) as session:
                typing = await replay(session, typed, look_s)
        client = await connect_or_start(EngineOptions(model=model), "midspan-bench")
        try:
            with console.status(f"filling {len(holes)} holes by each rule"):
                rules = await compare_rules(client, holes)
        finally:
            await client.close()
    finally:
        await stop_engine(model)
    return Report(this_machine(), client.welcome.model, starts, typing, rules)


if __name__ == "__main__":
    typer.run(main)
