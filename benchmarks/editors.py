"""From a key to the ghost text it brings, on the screen of real editors: how long, and who takes that time.

Run it as `python benchmarks/editors.py` after `make editors`; `--quick` types a few lines only, and `--editor` measures
one editor alone. An editor asks only when it has waited for the next key in vain: Neovim 200 ms, VS Code 50 ms. Where
the screen begins differs: in VS Code a browser's frame is waited for, in Neovim no terminal (neovim_editor.py).
"""

import asyncio
import json
import os
import tempfile
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import attrs
import neovim_editor
import typer
import vscode_editor
from keystroke import Keystroke
from machine import this_machine
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from sources import Span, typed_lines
from startup import stop_engine
from statistic import Percentiles

_OUT = Path(__file__).resolve().parent / "out"


class Choice(StrEnum):
    """What `--editor` takes."""

    NEOVIM = "neovim"
    VSCODE = "vscode"


@attrs.frozen
class Editor:
    """An editor that is measured. `debounce_ms` is how long it waits for another key before it asks the server.

    `missing` says in one line why it cannot be measured here; `type_in` types spans with a model, in a folder of its
    own, and returns the keys that showed ghost text.
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
    """Milliseconds of the keys that showed ghost text. `total` is all of it, from the key to the screen.

    `before` passes until the request reaches the server: the editor's own `debounce` and its processes; `server` until
    the answer leaves it; `after` until it is on the screen. These three are of keys with a request of their own;
    `along` is `total` of the others, where the editor drew what it had.
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
    quick: Annotated[bool, typer.Option("--quick", help="A few lines only: does it run, not how fast is it.")] = False,
    editor: Annotated[Choice | None, typer.Option(help="Measure this editor only; else all that are here.")] = None,
    model: Annotated[str, typer.Option(help='"embedded" or a folder with a model.')] = "embedded",
    out: Annotated[Path, typer.Option(help="The folder for the JSON.")] = _OUT,
) -> None:
    """Measure the editors that are here; print a table and write JSON."""
    console = Console(highlight=False)
    wanted = [_EDITORS[editor]] if editor is not None else list(_EDITORS.values())
    present = []
    for one in wanted:
        if (why := one.missing()) is None:
            present.append(one)
        else:
            typer.echo(f"editors: {why}", err=True)
    if not present:
        raise typer.Exit(1)
    spans = typed_lines(4 if quick else 30)
    figures = []
    for one in present:
        with console.status(f"typing {len(spans)} lines in {one.name}"):
            figures.append(measure(one, spans, model))
    machine = this_machine()
    console.print(f"{machine.processor}, {machine.cores} cores, {machine.system}", soft_wrap=True)
    console.print(_table(figures))
    out.mkdir(parents=True, exist_ok=True)
    path = out / "editors.json"
    document = {"machine": attrs.asdict(machine), "editors": [attrs.asdict(row) for row in figures]}
    path.write_text(json.dumps(document, indent=1), "utf-8")
    console.print(f"wrote {path}", soft_wrap=True)


def measure(editor: Editor, spans: list[Span], model: str) -> EditorFigures:
    """Type the spans in an editor. It has an engine of its own, which knows nothing of what another one typed."""
    with tempfile.TemporaryDirectory(prefix="midspan-bench-") as folder:
        os.environ["MIDSPAN_RUNTIME_DIR"] = os.environ["MIDSPAN_DATA_DIR"] = folder
        try:
            return figures_of(editor, editor.type_in(spans, model, Path(folder)))
        finally:
            asyncio.run(stop_engine(model))


def figures_of(editor: Editor, keys: list[Keystroke]) -> EditorFigures:
    """Sum up the keys of one editor."""
    asked = [(key, key.passage) for key in keys if key.passage is not None]
    return EditorFigures(
        editor=editor.name,
        keys=len(keys),
        debounce=editor.debounce_ms,
        total=Percentiles.of([key.shown - key.pressed for key, _ in asked]),
        before=Percentiles.of([passage.asked - key.pressed for key, passage in asked]),
        server=Percentiles.of([passage.answered - passage.asked for _, passage in asked]),
        after=Percentiles.of([key.shown - passage.answered for key, passage in asked]),
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
