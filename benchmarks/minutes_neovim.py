"""Types a day's code into a real Neovim at default settings, and looks at what is on the screen after each key.

Run it as `python benchmarks/minutes_neovim.py`; `--quick` types one piece. The code is in minutes_neovim_texts.py. A key
follows the last one after 0.13 s, and after 0.3 s at the start of a word, where people look at the screen. Each text is
typed three times: by hand; by hand with Neovim's own completion menu (`autocomplete`); and with <Tab> for each
suggestion that is right. The figures:

- ghost: keys after which a suggestion is on the screen when the next key comes
- right: those of them whose text is what the file has there
- flicker: keys that agree with the suggestion and make it vanish or change on the screen, for however short a time
- menu: of the keys that had a suggestion without the menu, those that have one while the menu is open
- next: milliseconds from <Tab> to the next suggestion on the screen, where one came within 0.4 s
"""

import asyncio
import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import attrs
import typer
from machine import this_machine
from minutes_neovim_texts import PIECES, PROJECT, Piece
from neovim_editor import Screen
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from startup import stop_engine
from statistic import Percentiles

from git_folder import repository
from neovim import PROGRAM, Neovim, Setup

_OUT = Path(__file__).resolve().parent / "out"
_KEY_S, _LOOK_S, _TAB_S = 0.13, 0.3, 0.4
_COLUMNS, _ROWS = 160, 50
_WORTH_A_KEY = 2
_PLAIN = """
vim.api.nvim_set_hl(0, 'ComplHint', { fg = 0x123456 })
vim.g.loaded_matchparen = 1
vim.o.laststatus, vim.o.showmode = 0, false
vim.cmd('filetype plugin indent off')
vim.o.autoindent = false
"""
_MENU = "vim.o.autocomplete, vim.o.completeopt = true, 'menuone,noselect'\n"
_FILES_KNOWN = """
local client = vim.lsp.get_clients({ name = 'midspan' })[1]
local report = client:request_sync('workspace/executeCommand', { command = 'midspan.status' }, 10000).result
return type(report.memory) == 'string' and report.memory or ''
"""


class Way(StrEnum):
    """How a text is typed."""

    HAND = "by hand"
    MENU = "with the menu"
    TAB = "with Tab"


@attrs.frozen
class Look:
    """The screen at a moment: the ghost text on it. `ms` is the time since the key."""

    ms: float
    ghost: str


@attrs.frozen
class KeySeen:
    """What followed a key that was typed at `offset` of a piece, until the next key."""

    offset: int
    ghost: str
    is_right: bool
    flickers: bool
    menu_open: bool


@attrs.define
class Typing:
    """What was seen while one piece was typed in one way. `next_ms` are of the <Tab>s after which something came."""

    piece: str
    keys: list[KeySeen] = attrs.field(factory=list)
    tabs: int = 0
    by_tab: int = 0
    next_ms: list[float] = attrs.field(factory=list)


class GhostScreen(Screen):
    """A screen that knows the ghost text's characters."""

    def __init__(self) -> None:
        super().__init__()
        self._texts: dict[tuple[int, int], str] = {}

    @property
    def ghost_text(self) -> str:
        """The ghost text, line by line, without the white space at its lines' ends."""
        rows: dict[int, list[str]] = {}
        for (row, _), text in sorted(self._texts.items()):
            rows.setdefault(row, []).append(text)
        return "\n".join("".join(texts).rstrip() for _, texts in sorted(rows.items()))

    def _grid_clear(self, _grid: int) -> None:
        super()._grid_clear(_grid)
        self._texts.clear()

    def _grid_line(self, _grid: int, row: int, column: int, cells: list[list[Any]], *_: Any) -> None:
        super()._grid_line(_grid, row, column, cells)
        highlight = 0
        for text, *more in cells:
            highlight = more[0] if more else highlight
            for _ in range(more[1] if len(more) > 1 else 1):
                self._texts.pop((row, column), None)
                if highlight in self._ghost_highlights:
                    self._texts[row, column] = text
                column += 1

    def _grid_scroll(self, _grid: int, top: int, bottom: int, left: int, right: int, rows: int, _columns: int) -> None:
        super()._grid_scroll(_grid, top, bottom, left, right, rows, _columns)
        moved = {place: text for place, text in self._texts.items() if top <= place[0] < bottom}
        for place in moved:
            del self._texts[place]
        self._texts |= {(row - rows, column): text for (row, column), text in moved.items() if top <= row - rows < bottom}


class Person:
    """Types in a Neovim, and looks at its screen."""

    def __init__(self, neovim: Neovim) -> None:
        self._neovim = neovim
        self._nvim = neovim.nvim
        self._screen = GhostScreen()
        self._nvim.ui_attach(_COLUMNS, _ROWS, rgb=True, ext_linegrid=True)

    def open(self, file: Path) -> None:
        """Open a file with the cursor in insert mode at its end."""
        self._nvim.command(f"edit {file}")
        self._nvim.input("GA")
        self._neovim.eventually(lambda: self._nvim.api.get_mode()["mode"] == "i", "insert mode is not on")
        self.wait(1.0)

    def leave(self) -> None:
        """Write the file and close it."""
        self._nvim.input("<Esc>")
        self._neovim.eventually(lambda: self._nvim.api.get_mode()["mode"] == "n", "normal mode is not on")
        self._nvim.command("write | bwipeout")

    @property
    def ghost(self) -> str:
        return self._screen.ghost_text

    @property
    def menu_open(self) -> bool:
        return bool(self._nvim.funcs.pumvisible())

    def press(self, keys: str, seconds: float) -> list[Look]:
        """Press keys and watch for `seconds`: return each complete screen on which the cursor has moved."""
        cursor, pressed = self._screen.cursor, 0.0
        looks: list[Look] = []

        def act() -> None:
            nonlocal pressed
            pressed = time.perf_counter()
            self._nvim.request("nvim_input", keys, async_=True)

        def seen() -> None:
            if looks or self._screen.cursor != cursor:
                looks.append(Look((time.perf_counter() - pressed) * 1000, self.ghost))

        self._watch(act, seen, seconds)
        return looks

    def wait(self, seconds: float) -> None:
        """Watch for `seconds`."""
        self._watch(lambda: None, lambda: None, seconds)

    def _watch(self, act: Callable[[], None], seen: Callable[[], None], seconds: float) -> None:
        def notified(name: str, arguments: list[Any]) -> None:
            if name == "redraw" and self._screen.draw(arguments):
                seen()

        self._nvim.loop.call_soon(act)
        limit = self._nvim.loop.call_later(seconds, self._nvim.stop_loop)
        self._nvim.run_loop(None, notified)
        limit.cancel()


def type_piece(person: Person, piece: Piece, file: Path, way: Way) -> Typing:
    """Type a piece into a new file. Raises RuntimeError if the file has another text then."""
    file.write_text(piece.before, "utf-8")
    person.open(file)
    # The cursor is in the last line, and the file's last newline is not a line.
    person.press("<CR>" if piece.before else "", 0.5)
    done, typing = 0, Typing(piece.name)
    while done < len(piece.text.rstrip()):
        rest = piece.text[done:].rstrip()
        ghost = person.ghost
        if way == Way.TAB and len(ghost) >= _WORTH_A_KEY and rest.startswith(ghost):
            accept(person, typing)
            done += len(ghost)
            continue
        key = _unit(rest)
        done += len(key)
        looks = person.press(_notation(key), _LOOK_S if _is_look(key, rest[len(key) :]) else _KEY_S)
        left = ghost[len(key) :] if ghost.startswith(key) else ""
        now, rest = person.ghost, rest[len(key) :]
        flickers = bool(left) and any(not look.ghost.startswith(left) for look in looks)
        typing.keys.append(KeySeen(done, now, bool(now) and rest.startswith(now), flickers, person.menu_open))
    person.leave()
    text = file.read_text("utf-8")
    if text.rstrip() != (piece.before + piece.text).rstrip():
        raise RuntimeError(f"{piece.path} has another text than the one that was typed:\n{text}")
    return typing


def accept(person: Person, typing: Typing) -> None:
    """Press <Tab>, and note when the next suggestion is on the screen."""
    typing.tabs += 1
    typing.by_tab += len(person.ghost)
    before = person.ghost
    looks = person.press("<Tab>", _TAB_S)
    came = next((look for look in looks if look.ghost and look.ghost != before), None)
    if came is not None:
        typing.next_ms.append(came.ms)


def _unit(rest: str) -> str:
    """Return the next key's text: a character, or a newline together with the indentation below it."""
    if rest[0] != "\n":
        return rest[0]
    return rest[: len(rest) - len(rest.lstrip("\n "))]


def _notation(key: str) -> str:
    return key.replace("<", "<lt>").replace("\n", "<CR>")


def _is_look(key: str, rest: str) -> bool:
    return not key.isalnum() and rest[:1].isalnum()


@contextmanager
def _neovim(folder: Path, way: Way) -> Iterator[Person]:
    project = repository(folder / "project", PROJECT)
    options = {"settings": {"model": "embedded"}, "keymaps": {"accept": "<Tab>"}}
    neovim = Neovim(
        folder / "neovim", project / "shop/models.py", Setup(options, extra=_PLAIN + (_MENU if way == Way.MENU else ""))
    )
    try:
        neovim.until_ready()
        # The server reads the workspace when it is first asked for a suggestion.
        neovim.keys("i")
        neovim.after_answer(lambda: neovim.type("x"))
        neovim.eventually(lambda: "files" in neovim.lua(_FILES_KNOWN), "the workspace is not read")
        neovim.keys("<Esc>")
        neovim.nvim.command("edit!")
        yield Person(neovim)
    finally:
        neovim.close()


def type_all(pieces: tuple[Piece, ...], way: Way) -> list[Typing]:
    """Type all pieces in one way, in a Neovim and with an engine of their own."""
    with tempfile.TemporaryDirectory(prefix="midspan-minutes-") as name:
        folder = Path(name)
        os.environ["MIDSPAN_RUNTIME_DIR"] = os.environ["MIDSPAN_DATA_DIR"] = name
        try:
            with _neovim(folder, way) as person:
                return [type_piece(person, piece, folder / "project" / piece.path, way) for piece in pieces]
        finally:
            asyncio.run(stop_engine("embedded"))


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.0%}" if whole else "-"


def _row(name: str, hand: list[Typing], menu: list[Typing], tab: list[Typing]) -> list[str]:
    keys = [key for typing in hand for key in typing.keys]
    shown = [key for key in keys if key.ghost]
    had = {(typing.piece, key.offset) for typing in hand for key in typing.keys if key.ghost}
    in_menu = [
        key for typing in menu for key in typing.keys if key.menu_open and (typing.piece, key.offset) in had
    ]
    after_tab = [ms for typing in tab for ms in typing.next_ms]
    times = Percentiles.of(after_tab) if after_tab else None
    typed = sum(len(typing.keys) for typing in tab)
    by_tab = sum(typing.by_tab for typing in tab)
    return [
        name,
        str(len(keys)),
        _share(len(shown), len(keys)),
        _share(sum(key.is_right for key in shown), len(shown)),
        str(sum(key.flickers for key in keys)),
        f"{sum(bool(key.ghost) for key in in_menu)} of {len(in_menu)}",
        _share(by_tab, by_tab + typed),
        f"{len(after_tab)} of {sum(typing.tabs for typing in tab)}",
        f"{times.p50:.0f} / {times.p95:.0f}" if times else "-",
    ]


def main(
    quick: Annotated[bool, typer.Option("--quick", help="One piece only: checks that it runs.")] = False,
    out: Annotated[Path, typer.Option(help="The folder for the JSON.")] = _OUT,
) -> None:
    """Type all pieces in all ways; print a table and write JSON."""
    if not PROGRAM.exists():
        typer.echo("minutes_neovim: Neovim is not here; `make editors` fetches it", err=True)
        raise typer.Exit(1)
    console = Console(highlight=False, width=130)
    pieces = PIECES[2:3] if quick else PIECES
    seen = {}
    for way in Way:
        with console.status(f"typing {way}"):
            seen[way] = type_all(pieces, way)
    columns = ("", "keys", "ghost", "right", "flicker", "menu", "written by Tab", "next after Tab", "p50 / p95 ms")
    table = Table(*columns, title="Neovim, default settings", box=SIMPLE_HEAD)
    of_piece = {piece.name: {way: [t for t in seen[way] if t.piece == piece.name] for way in Way} for piece in pieces}
    for name, ways in [*of_piece.items(), ("all", seen)]:
        table.add_row(*_row(name, ways[Way.HAND], ways[Way.MENU], ways[Way.TAB]))
    machine = this_machine()
    console.print(f"{machine.processor}, {machine.cores} cores, {machine.system}", soft_wrap=True)
    console.print(table)
    out.mkdir(parents=True, exist_ok=True)
    path = out / "minutes_neovim.json"
    typings = {way.value: [attrs.asdict(typing) for typing in seen[way]] for way in Way}
    path.write_text(json.dumps({"machine": attrs.asdict(machine), "typings": typings}, indent=1), "utf-8")
    console.print(f"wrote {path}", soft_wrap=True)


if __name__ == "__main__":
    typer.run(main)
