"""Time from a key press to its ghost text on the screen of real editors, and which part takes how long.

Run it as `python benchmarks/editors/editors.py` after `make editors`; `--quick` types only a few lines, and `--editor`
measures one editor alone. An editor asks the server only if no other key follows for a while: our plugin for Neovim
waits as long as an answer takes, 5 ms at least, VS Code 50 ms. The screen is not the same in both: for VS Code a
browser frame is awaited, for Neovim no terminal (neovim_editor.py).
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import asyncio
import json
import os
import tempfile
from collections.abc import Callable
from enum import StrEnum
from typing import Annotated

import attrs
import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from benchmarks.common.machine import this_machine
from benchmarks.common.sources import Span, typed_lines
from benchmarks.common.startup import stop_engine
from benchmarks.common.statistic import Percentiles
from benchmarks.editors import neovim_editor, vscode_editor
from benchmarks.editors.keystroke import Keystroke

_OUT = Path(__file__).resolve().parents[1] / "out"


class Choice(StrEnum):
    """The values of `--editor`."""

    NEOVIM = "neovim"
    VSCODE = "vscode"


@attrs.frozen
class Editor:
    """An editor to measure. `debounce_ms` is how long it waits for another key before it asks the server.

    `missing` returns one line that says why it cannot be measured here. `type_in` types spans with a model, in a folder
    of its own, and returns the keys that showed ghost text.
    """

    name: str
    debounce_ms: float
    missing: Callable[[], str | None]
    type_in: Callable[[list[Span], str, Path], list[Keystroke]]


_EDITORS = {
    Choice.NEOVIM: Editor("Neovim", neovim_editor.DEBOUNCE_MS, neovim_editor.missing, neovim_editor.type_in_neovim),
    Choice.VSCODE: Editor("VS Code", vscode_editor.DEBOUNCE_MS, vscode_editor.missing, vscode_editor.type_in_vscode),
}


@attrs.frozen
class EditorFigures:
    """Milliseconds of the keys that showed ghost text. `total` is the time from the key to the screen.

    `before` ends when the request reaches the server: the editor's own `debounce` and its processes. `server` ends when
    the answer leaves the server, `after` when it is on the screen. These three are of keys with a request of their own;
    `along` is `total` of the others, for which the editor had the ghost text already.
    """

    editor: str
    keys: int
    debounce: float
    total: Percentiles
    before: Percentiles
    server: Percentiles
    after: Percentiles
    along: Percentiles


def main(
    quick: Annotated[bool, typer.Option("--quick", help="A few lines only: checks that it runs.")] = False,
    editor: Annotated[
        Choice | None, typer.Option(help="Measure only this editor; by default all installed ones.")
    ] = None,
    model: Annotated[str, typer.Option(help='"embedded" or a folder with a model.')] = "embedded",
    out: Annotated[Path, typer.Option(help="The folder for the JSON.")] = _OUT,
) -> None:
    """Measure the installed editors; print a table and write JSON."""
    console = Console(highlight=False)
    wanted = [_EDITORS[editor]] if editor is not None else list(_EDITORS.values())
    present = []
    for candidate in wanted:
        if (reason := candidate.missing()) is None:
            present.append(candidate)
        else:
            typer.echo(f"editors: {reason}", err=True)
    if not present:
        raise typer.Exit(1)
    spans = typed_lines(4 if quick else 30)
    figures = []
    for candidate in present:
        with console.status(f"typing {len(spans)} lines in {candidate.name}"):
            figures.append(measure(candidate, spans, model))
    machine = this_machine()
    console.print(f"{machine.processor}, {machine.cores} cores, {machine.system}", soft_wrap=True)
    console.print(_table(figures))
    out.mkdir(parents=True, exist_ok=True)
    path = out / "editors.json"
    document = {"machine": attrs.asdict(machine), "editors": [attrs.asdict(row) for row in figures]}
    path.write_text(json.dumps(document, indent=1), "utf-8")
    console.print(f"wrote {path}", soft_wrap=True)


def measure(editor: Editor, spans: list[Span], model: str) -> EditorFigures:
    """Type the spans in an editor, with an engine of its own that has not seen what another editor typed."""
    with tempfile.TemporaryDirectory(prefix="midspan-bench-") as folder:
        os.environ["MIDSPAN_RUNTIME_DIR"] = os.environ["MIDSPAN_DATA_DIR"] = folder
        try:
            return figures_of(editor, editor.type_in(spans, model, Path(folder)))
        finally:
            asyncio.run(stop_engine(model))


def figures_of(editor: Editor, keys: list[Keystroke]) -> EditorFigures:
    """Sum up the keys of one editor."""
    requested = [(key, key.passage) for key in keys if key.passage is not None]
    return EditorFigures(
        editor=editor.name,
        keys=len(keys),
        debounce=editor.debounce_ms,
        total=Percentiles.of([key.shown - key.pressed for key, _ in requested]),
        before=Percentiles.of([passage.asked - key.pressed for key, passage in requested]),
        server=Percentiles.of([passage.answered - passage.asked for _, passage in requested]),
        after=Percentiles.of([key.shown - passage.answered for key, passage in requested]),
        along=Percentiles.of([key.shown - key.pressed for key in keys if key.passage is None]),
    )


def _table(rows: list[EditorFigures]) -> Table:
    table = Table("editor", "", "keys", "p50 ms", "p95 ms", title="From a key to its ghost text", box=SIMPLE_HEAD)
    for column in table.columns[2:]:
        column.justify = "right"
    for row in rows:
        parts = {
            "key to screen": row.total,
            "  until the server is asked": row.before,
            "  server and engine": row.server,
            "  until it is drawn": row.after,
            "typed along": row.along,
        }
        for name, figures in parts.items():
            table.add_row(row.editor, name, str(figures.count), f"{figures.p50:.0f}", f"{figures.p95:.0f}")
            if figures is row.before:
                table.add_row(row.editor, "    of that its debounce", "", *[f"{row.debounce:.0f}"] * 2)
    return table


if __name__ == "__main__":
    typer.run(main)
