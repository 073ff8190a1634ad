"""How far Midspan goes: many editors, large files, large workspaces, long hours.

The engine is a real process with a runtime folder of its own. Editors of the first table are clients over its socket;
those of the others are real language servers. `--full` measures all of docs/benchmarks.md, in an hour and a quarter.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import asyncio
import json
import os
import tempfile
from typing import Annotated

import attrs
import typer
from rich.console import Console
from rich.table import Table

from benchmarks.common.machine import Machine, this_machine
from benchmarks.common.startup import stop_engine
from benchmarks.common.statistic import Percentiles
from benchmarks.scale.scale_editors import KEY_S, EditorsFigures, type_together
from benchmarks.scale.scale_typing import FileFigures, Resident, type_for, type_into_sizes
from benchmarks.scale.scale_workspaces import WorkspaceFigures, learn_workspace
from engine.errors import MidspanError

_OUT = Path(__file__).resolve().parents[1] / "out"
_KILOBYTE = 1000
PARTS = ("editors", "files", "workspaces", "memory")


@attrs.frozen
class Amount:
    """How much to measure: editors, keys of each, sizes of files in bytes, keys into each, and files of workspaces."""

    editors: list[int] = attrs.field(factory=lambda: [1, 2, 10, 50])
    keys: int = 40
    sizes: list[int] = attrs.field(factory=lambda: [_KILOBYTE * size for size in (1, 10, 100, 1000, 10_000)])
    keys_into: int = 20
    workspaces: list[int] = attrs.field(factory=lambda: [100, 2000])
    keys_meanwhile: int = 40
    minutes: float = 0.5


FULL = Amount(keys=400, keys_into=100, workspaces=[100, 2000, 20_000], keys_meanwhile=200, minutes=60.0)


@attrs.define
class Scale:
    """What one run measured."""

    machine: Machine
    editors: list[EditorsFigures] = attrs.field(factory=list)
    files: list[FileFigures] = attrs.field(factory=list)
    workspaces: list[WorkspaceFigures] = attrs.field(factory=list)
    memory: list[Resident] = attrs.field(factory=list)


def main(
    full: Annotated[bool, typer.Option("--full", help="Measure all: longer typing, 20,000 files, an hour.")] = False,
    minutes: Annotated[float | None, typer.Option(help="How long to type for the memory.")] = None,
    keys: Annotated[int | None, typer.Option(help="How many keys each of several editors types.")] = None,
    editors: Annotated[list[int] | None, typer.Option(help="How many editors type at once.")] = None,
    only: Annotated[list[str] | None, typer.Option(help=f"Parts to measure: {', '.join(PARTS)}.")] = None,
    model: Annotated[str, typer.Option(help='"embedded" or a folder with a model.')] = "embedded",
    out: Annotated[Path, typer.Option(help="The folder for scale.json.")] = _OUT,
) -> None:
    """Measure the parts one after the other; print a table for each, write scale.json."""
    console = Console(highlight=False, width=120)
    amount = FULL if full else Amount()
    amount = amount if minutes is None else attrs.evolve(amount, minutes=minutes)
    amount = attrs.evolve(amount, keys=keys or amount.keys, editors=editors or amount.editors)
    if wrong := set(only or []).difference(PARTS):
        typer.echo(f"scale: no part is called {min(wrong)}; use {', '.join(PARTS)}", err=True)
        raise typer.Exit(2)
    with tempfile.TemporaryDirectory(prefix="midspan-bench-") as folder:
        os.environ["MIDSPAN_RUNTIME_DIR"] = os.environ["MIDSPAN_DATA_DIR"] = folder
        try:
            scale = asyncio.run(_measure(model, amount, only or list(PARTS), Path(folder).resolve(), console))
        except MidspanError as error:
            typer.echo(f"scale: {error}", err=True)
            raise typer.Exit(1) from None
    out.mkdir(parents=True, exist_ok=True)
    (out / "scale.json").write_text(json.dumps(attrs.asdict(scale), indent=1) + "\n", "utf-8")


async def _measure(model: str, amount: Amount, parts: list[str], folder: Path, console: Console) -> Scale:
    scale = Scale(this_machine())
    try:
        if "editors" in parts:
            scale.editors = await type_together(model, amount.editors, amount.keys)
            _show_editors(scale.editors, console)
        if "files" in parts:
            (folder / "sizes").mkdir()
            scale.files = await type_into_sizes(model, amount.sizes, amount.keys_into, folder / "sizes")
            _show_files(scale.files, console)
        if "workspaces" in parts:
            for files in amount.workspaces:
                place = folder / f"workspace{files}"
                scale.workspaces.append(await learn_workspace(model, files, amount.keys_meanwhile, place))
            _show_workspaces(scale.workspaces, console)
        if "memory" in parts:
            await stop_engine(model)
            (folder / "hours").mkdir()
            scale.memory = await type_for(model, amount.minutes, folder / "hours")
            _show_memory(scale.memory, console)
    finally:
        await stop_engine(model)
    return scale


def _show_editors(rows: list[EditorsFigures], console: Console) -> None:
    title = f"Editors that type at once, a key every {1000 * KEY_S:.0f} ms"
    table = _table(title, "editors", "requests", "p50, p95 ms", "answered", "replaced", "failed", "cores", "slowest")
    for row in rows:
        shares = (f"{row.answered:.1%}", f"{row.replaced:.1%}", str(row.failed), f"{row.cores:.2f}")
        table.add_row(str(row.editors), str(row.requests), _pair(row.ms), *shares, f"{row.slowest:.2f}")
    console.print(table)


def _show_files(rows: list[FileFigures], console: Console) -> None:
    table = _table("Files, in the language server", "kB", "opened to first fill, ms", "a key, p50, p95 ms", "told")
    for row in rows:
        table.add_row(f"{row.size / _KILOBYTE:,.0f}", f"{row.opened_ms:.0f}", _pair(row.key), row.told)
    console.print(table)


def _show_workspaces(rows: list[WorkspaceFigures], console: Console) -> None:
    columns = ("files, MB of text", "learned after, s", "of it typing", "a key, p50, p95 ms", "known, M tokens", "MB")
    table = _table("Workspaces; keys while they are learned", *columns, "resident MB")
    for row in rows:
        known = f"{row.known:,}, {row.tokens:.1f}"
        seconds = (f"{row.seconds:.1f}", f"{row.typed_s:.1f}")
        size = f"{row.files:,}, {row.text:.0f}"
        table.add_row(size, *seconds, _pair(row.key), known, f"{row.memory:.0f}", f"{row.resident:.0f}")
    console.print(table)


def _show_memory(rows: list[Resident], console: Console) -> None:
    table = _table("Typing without a pause", "minutes", "keys", "language server, MB", "engine, MB")
    for row in rows:
        table.add_row(f"{row.minutes:.2f}", f"{row.keys:,}", f"{row.server:.0f}", f"{row.engine:.0f}")
    console.print(table)


def _table(title: str, *columns: str) -> Table:
    table = Table(*columns, title=title)
    for column in table.columns:
        column.justify = "right"
    return table


def _pair(percentiles: Percentiles) -> str:
    return f"{percentiles.p50:.1f}, {percentiles.p95:.1f}"


if __name__ == "__main__":
    typer.run(main)
