"""Neovim for benchmarks/editors/minutes.py: our plugin at default settings, its keys and its screen.

Neovim opens no completion menu by itself. With `autocomplete` it does, so it is measured with that too.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.editors import neovim_editor
from benchmarks.editors.minutes_pieces import Piece, write_project
from benchmarks.editors.minutes_typing import Screen
from benchmarks.editors.neovim_editor import Neovim, Setup
from benchmarks.editors.neovim_editor import missing as missing

_COLUMNS, _ROWS = 160, 50
_PLAIN = """
vim.api.nvim_set_hl(0, 'ComplHint', { fg = 0x123456 })
vim.g.loaded_matchparen = 1
vim.o.laststatus, vim.o.showmode = 0, false
vim.opt.shortmess:append('I')
vim.cmd('filetype plugin indent off')
vim.o.autoindent = false
"""
_MENU = "vim.o.autocomplete, vim.o.completeopt = true, 'menuone,noselect'\n"


@contextmanager
def started(folder: Path, project: Path, options: dict[str, Any], extra: str = "") -> Iterator[Neovim]:
    """Start a Neovim in a project; `folder` keeps its files."""
    (project / ".git").mkdir(parents=True, exist_ok=True)
    first = project / "first.py"
    first.touch()
    opened = Neovim(folder / "neovim", first, Setup(options, extra=_PLAIN + extra))
    try:
        opened.until_ready()
        yield opened
    finally:
        opened.close()


@contextmanager
def neovim(folder: Path, extra: str = "") -> Iterator["NeovimEditor"]:
    """Open the project; `folder` keeps it."""
    project = folder / "project"
    write_project(project)
    with started(folder, project, {"keymaps": {"accept": "<Tab>"}}, extra) as opened:
        yield NeovimEditor(opened, project)


neovim_with_menu = partial(neovim, extra=_MENU)


class _Screen(neovim_editor.Screen):
    """What Neovim has drawn: the ghost text, and whether the menu is open."""

    def __init__(self) -> None:
        super().__init__()
        self.menu = False
        self._texts: dict[tuple[int, int], str] = {}

    @property
    def ghost_text(self) -> str:
        """The ghost text, its lines joined, without the white space at their ends."""
        rows: dict[int, list[str]] = {}
        for (row, _), text in sorted(self._texts.items()):
            rows.setdefault(row, []).append(text)
        return "\n".join("".join(texts).rstrip() for _, texts in sorted(rows.items()))

    def _popupmenu_show(self, *_: Any) -> None:
        self.menu = True

    def _popupmenu_hide(self, *_: Any) -> None:
        self.menu = False

    def _grid_clear(self, grid: int) -> None:
        super()._grid_clear(grid)
        self._texts.clear()

    def _grid_line(self, grid: int, row: int, column: int, cells: list[list[Any]], *more: Any) -> None:
        super()._grid_line(grid, row, column, cells, *more)
        highlight = 0
        for text, *attributes in cells:
            highlight = attributes[0] if attributes else highlight
            for _ in range(attributes[1] if len(attributes) > 1 else 1):
                self._texts.pop((row, column), None)
                if highlight in self._ghost_highlights:
                    self._texts[row, column] = text
                column += 1

    def _grid_scroll(self, grid: int, top: int, bottom: int, left: int, right: int, rows: int, columns: int) -> None:
        super()._grid_scroll(grid, top, bottom, left, right, rows, columns)
        moved = {place: text for place, text in self._texts.items() if top <= place[0] < bottom}
        for place in moved:
            del self._texts[place]
        self._texts |= {
            (row - rows, column): text for (row, column), text in moved.items() if top <= row - rows < bottom
        }


class NeovimFile:
    """Neovim, with one file of the project open at a time."""

    def __init__(self, opened: Neovim, project: Path) -> None:
        self._neovim = opened
        self._nvim = opened.nvim
        self._project = project
        self._path = project

    def open(self, piece: Piece) -> None:
        """Open the piece's file, in insert mode at the place; close the one that was open."""
        self._nvim.input("<Esc>")
        self._neovim.eventually(lambda: self._nvim.api.get_mode()["mode"] == "n", "normal mode is not on")
        self._nvim.command("silent! write")
        self._nvim.command("silent! %bwipeout!")
        self._path = self._project / piece.name
        self._path.write_text(piece.before + piece.after, "utf-8")
        self._nvim.command(f"silent edit {self._path}")
        row, column = piece.before.count("\n") + 1, len(piece.before.rpartition("\n")[2].encode())
        # A file may end without a line there.
        self._nvim.command(f"if line('$') < {row} | call append('$', '') | endif")
        self._nvim.funcs.cursor(row, column + 1)
        self._nvim.input("i" if self._nvim.funcs.col("$") > column + 1 else "A")
        self._neovim.eventually(lambda: self._nvim.api.get_mode()["mode"].startswith("i"), "insert mode is not on")

    def press(self, key: str) -> float:
        """Press a key; a newline together with its indentation."""
        return self._press(key.replace("<", "<lt>").replace("\n", "<CR>"))

    def accept(self, text: str) -> float:
        """Press <Tab>."""
        return self._press("<Tab>")

    def text(self) -> str:
        """Save the file and return what is on the disk."""
        self._nvim.command("silent write")
        return self._path.read_text("utf-8")

    def _press(self, keys: str) -> float:
        pressed = time.time() * 1000
        self._nvim.request("nvim_input", keys, async_=True)
        return pressed


class NeovimEditor(NeovimFile):
    """The same, with what it has drawn."""

    def __init__(self, opened: Neovim, project: Path) -> None:
        super().__init__(opened, project)
        self._screen = _Screen()
        self._nvim.ui_attach(_COLUMNS, _ROWS, rgb=True, ext_linegrid=True, ext_popupmenu=True)

    def look(self, until: float) -> list[Screen]:
        """Wait until then; return the screens since the last call."""
        screens = [self._seen()]

        def notified(name: str, arguments: list[Any]) -> None:
            if name == "redraw" and self._screen.draw(arguments):
                screens.append(self._seen())

        limit = self._nvim.loop.call_later(max(until / 1000 - time.time(), 0), self._nvim.stop_loop)
        self._nvim.run_loop(None, notified)
        limit.cancel()
        return screens

    def _seen(self) -> Screen:
        return Screen(time.time() * 1000, self._screen.ghost_text, self._screen.menu)
