"""Every minute with Midspan: what a person who types sees in a real editor, at default settings.

    python benchmarks/editors/minutes.py --keys 2000

It types code that neither the model nor the workspace has (minutes_pieces.py), at a person's rhythm, and counts: keys
with ghost text, how much of it is right, flicker (ghost text that agreed with the next key and vanished or changed),
and how often it is visible where the editor's completion menu is open and the server alone has a suggestion. Then it
types the same again, takes each right suggestion, and measures the time from that key to the next suggestion on the
screen. It needs `make editors`. A minute for 350 keys, twice.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import asyncio
import json
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Annotated

import attrs
import typer
from rich.console import Console

from benchmarks.common.machine import this_machine
from benchmarks.common.startup import stop_engine
from benchmarks.editors import minutes_neovim, minutes_vscode
from benchmarks.editors.minutes_figures import (
    TypingFigures,
    taking_figures,
    taking_table,
    typing_figures,
    typing_table,
)
from benchmarks.editors.minutes_pieces import Piece, keys_of, pieces, write_project
from benchmarks.editors.minutes_typing import Editor, Moment, type_along, type_and_take
from engine.cli.cursor import Cursor
from engine.cli.lsp_client import LspSession
from engine.protocol.editor_messages import FillOptions

_OUT = Path(__file__).resolve().parents[1] / "out"
_MODEL = "embedded"


@attrs.frozen
class Measured:
    """An editor. `missing` returns one line that says why it cannot be measured here. `started` opens the project."""

    name: str
    missing: Callable[[], str | None]
    started: Callable[[Path], AbstractContextManager[Editor]]


_EDITORS = {
    "vscode": Measured("VS Code", minutes_vscode.missing, minutes_vscode.vscode),
    "vscode-beside": Measured(
        "VS Code, suggestions beside the menu",
        minutes_vscode.missing,
        partial(minutes_vscode.vscode, user=minutes_vscode.BESIDE_MENU),
    ),
    "neovim": Measured("Neovim", minutes_neovim.missing, minutes_neovim.neovim),
    "neovim-menu": Measured("Neovim, autocomplete on", minutes_neovim.missing, minutes_neovim.neovim_with_menu),
}


def main(
    keys: Annotated[int, typer.Option(help="About how many keys to type, twice; all pieces have about 2,000.")] = 400,
    editor: Annotated[list[str] | None, typer.Option(help=f"One of {', '.join(_EDITORS)}; by default all.")] = None,
    pace: Annotated[
        float, typer.Option(help="Pauses between keys, of a person's: 2 for a machine that is busy.")
    ] = 1.0,
    taking: Annotated[bool, typer.Option(help="Whether to type again and take suggestions.")] = True,
    out: Annotated[Path, typer.Option(help="The folder for the JSON.")] = _OUT,
) -> None:
    """Measure the installed editors; print tables and write JSON."""
    console, typed = Console(highlight=False), pieces(keys)
    machine = this_machine()
    console.print(f"{machine.processor}, {machine.cores} cores, {machine.system}", soft_wrap=True)
    alone = _alone(typed)
    out.mkdir(parents=True, exist_ok=True)
    for name in editor or list(_EDITORS):
        measured = _EDITORS[name]
        if (reason := measured.missing()) is not None:
            typer.echo(f"minutes: {reason}", err=True)
            continue
        with _engine() as folder, measured.started(folder) as opened:
            moments = [moment for piece in typed for moment in type_along(opened, piece, pace)]
        rows = _by_kind(moments, alone)
        console.print(typing_table(measured.name, rows))
        document: dict[str, object] = {
            "machine": attrs.asdict(machine),
            "typing": [attrs.asdict(row) for row in rows],
            "moments": [attrs.asdict(moment) for moment in moments],
            "alone": alone,
        }
        path = out / f"minutes-{name}.json"
        path.write_text(json.dumps(document, indent=1), "utf-8")
        if taking:
            with _engine() as folder, measured.started(folder) as opened:
                taken = [each for piece in typed for each in type_and_take(opened, piece, pace)]
            console.print(taking_table(measured.name, taking_figures(taken)))
            document["taking"] = attrs.asdict(taking_figures(taken))
            document["taken"] = [attrs.asdict(each) for each in taken]
            path.write_text(json.dumps(document, indent=1), "utf-8")
        console.print(f"wrote {path}", soft_wrap=True)


def _by_kind(moments: list[Moment], alone: list[str]) -> list[TypingFigures]:
    """Return the figures of each kind of code, and last of all."""
    rows = []
    for kind in dict.fromkeys(moment.kind for moment in moments):
        chosen = [number for number, moment in enumerate(moments) if moment.kind == kind]
        rows.append(typing_figures(kind, [moments[each] for each in chosen], [alone[each] for each in chosen]))
    return [*rows, typing_figures("all", moments, alone)]


def _alone(typed: list[Piece]) -> list[str]:
    """Return for each key what the server alone suggests after it."""
    with _engine() as folder:
        project = folder / "project"
        write_project(project)
        return asyncio.run(alone(project, typed))


@contextmanager
def _engine() -> Iterator[Path]:
    """Return a new folder, with an engine of its own that has learned nothing."""
    # A language server whose editor is gone may still write what it counted.
    with tempfile.TemporaryDirectory(prefix="midspan-bench-", ignore_cleanup_errors=True) as folder:
        os.environ["MIDSPAN_RUNTIME_DIR"] = os.environ["MIDSPAN_DATA_DIR"] = folder
        try:
            yield Path(folder)
        finally:
            asyncio.run(stop_engine(_MODEL))


async def alone(project: Path, pieces: list[Piece]) -> list[str]:
    """Return for each key what the server alone suggests after it, without an editor and its menu; "" for nothing."""
    found: list[str] = []
    async with LspSession("embedded", workspace=project) as session:
        for piece in pieces:
            path, text = project / piece.name, piece.before + piece.after
            await session.open(path, text)
            await session.fill(Cursor.at_offset(path, text, len(piece.before)), FillOptions())
            typed = ""
            for key in keys_of(piece.typed):
                before = Cursor.at_offset(path, piece.before + typed + piece.after, len(piece.before + typed))
                await session.type_text(before, key)
                typed += key
                after = Cursor.at_offset(path, piece.before + typed + piece.after, len(piece.before + typed))
                items = await session.suggest(after)
                found.append(items[0].insert_text if items else "")
            await session.close(path)
    return found


if __name__ == "__main__":
    typer.run(main)
