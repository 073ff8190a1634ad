"""From a key to the ghost text it brings, on the screen of a real editor: how long, and who takes that time.

Run it as `python benchmarks/editors.py` after `make editors`; `--quick` types a few lines only.
"""

import asyncio
import json
import os
import tempfile
from pathlib import Path
from typing import Annotated

import attrs
import typer
from machine import this_machine
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from sources import typed_lines
from startup import stop_engine
from statistic import Percentiles
from vscode_editor import Keystroke, missing, type_in_vscode

_OUT = Path(__file__).resolve().parent / "out"


@attrs.frozen
class EditorFigures:
    """Milliseconds of the keys that showed ghost text. `total` is all of it, from the key to the screen.

    `before` passes until the request reaches the server: the editor's own debounce and its processes; `server` until
    the answer leaves it; `after` until it is on the screen. These three are of keys with a request of their own;
    `along` is `total` of the others, where the editor drew what it had.
    """

    editor: str
    keys: int
    total: Percentiles
    before: Percentiles
    server: Percentiles
    after: Percentiles
    along: Percentiles


def main(
    quick: Annotated[bool, typer.Option("--quick", help="A few lines only: does it run, not how fast is it.")] = False,
    model: Annotated[str, typer.Option(help='"embedded" or a folder with a model.')] = "embedded",
    out: Annotated[Path, typer.Option(help="The folder for the JSON.")] = _OUT,
) -> None:
    """Measure VS Code; print a table and write JSON."""
    console = Console(highlight=False)
    if (why := missing()) is not None:
        typer.echo(f"editors: {why}", err=True)
        raise typer.Exit(1)
    spans = typed_lines(4 if quick else 30)
    with tempfile.TemporaryDirectory(prefix="midspan-bench-") as folder:
        os.environ["MIDSPAN_RUNTIME_DIR"] = os.environ["MIDSPAN_DATA_DIR"] = folder
        try:
            with console.status(f"typing {len(spans)} lines in VS Code"):
                figures = figures_of("VS Code", type_in_vscode(spans, model, Path(folder)))
        finally:
            asyncio.run(stop_engine(model))
    machine = this_machine()
    console.print(f"{machine.processor}, {machine.cores} cores, {machine.system}", soft_wrap=True)
    console.print(_table([figures]))
    out.mkdir(parents=True, exist_ok=True)
    path = out / "editors.json"
    path.write_text(
        json.dumps({"machine": attrs.asdict(machine), "editors": [attrs.asdict(figures)]}, indent=1), "utf-8"
    )
    console.print(f"wrote {path}", soft_wrap=True)


def figures_of(editor: str, keys: list[Keystroke]) -> EditorFigures:
    """Sum up the keys of one editor."""
    asked = [(key, key.passage) for key in keys if key.passage is not None]
    return EditorFigures(
        editor=editor,
        keys=len(keys),
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
    return table


if __name__ == "__main__":
    typer.run(main)
