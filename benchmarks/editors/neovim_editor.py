"""Types in a real Neovim, with a clock at the key, at the language server and at the screen.

The screen is ours: this module attaches as a user interface (`:help ui-linegrid`), as Neovim's own does in the
terminal. A key is pressed when it is written to Neovim. Its ghost text is shown at the `flush` of the redraw after
which the cursor has moved and cells of the grid hold ghost text. The loop that receives the redraw reads the clock, so
no polling adds to the time. The time a terminal needs to paint its cells is not included. Ghost text is recognised by
its colour; it is missed in the few places where Neovim gives it another one: inline, right after a bracket that Neovim
marks as matching.
"""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.common.sources import Span
from benchmarks.editors.keystroke import ROOT, TIMEOUT_MS, Keystroke, with_passages, write_relay

# First, because pynvim also has a package named neovim; the root before tests, which has a folder named engine.
sys.path.insert(0, str(ROOT / "tests"))
sys.path.insert(0, str(ROOT / "tests" / "editors"))
sys.path.insert(0, str(ROOT))

from neovim import PROGRAM
from neovim import Neovim as Neovim
from neovim import Setup as Setup

# SHORTEST_PAUSE_MS of editors/neovim/lua/midspan/ask.lua. Where answers take longer, it waits as long as they take.
DEBOUNCE_MS = 5

_COLUMNS, _ROWS = 160, 50
_PATIENCE_MS = 30_000
_GHOST_COLOUR = 0x123456
_HIGHLIGHT = f"vim.api.nvim_set_hl(0, 'ComplHint', {{ fg = {_GHOST_COLOUR} }})"


def missing() -> str | None:
    """Return one line that says why Neovim cannot be measured here; None if it can."""
    return None if PROGRAM.exists() else "Neovim is not here; `make editors` fetches it"


def type_in_neovim(spans: list[Span], model: str, folder: Path) -> list[Keystroke]:
    """Type every span in one Neovim with our plugin; return the keys that showed ghost text."""
    first = folder / "first.py"
    first.write_text("\n", "utf-8")
    # Without the gate more keys show ghost text; each takes as long as with it.
    options = {"cmd": [str(write_relay(folder))], "settings": {"model": model, "gate": 0}}
    keys: list[Keystroke] = []
    with _started(folder / "neovim", first, Setup(options, extra=_HIGHLIGHT)) as neovim:
        typist = Typist(neovim)
        for number, span in enumerate(spans):
            file = folder / f"span_{number}{span.path.suffix}"
            file.write_text(span.text, "utf-8")
            typist.open(file, span)
            pressed = (typist.press(key) for key in span.middle)
            keys.extend(keystroke for keystroke in pressed if keystroke is not None)
            typist.remove()
    return with_passages(keys, folder)


@contextmanager
def _started(home: Path, file: Path, setup: Setup) -> Iterator[Neovim]:
    neovim = Neovim(home, file, setup)
    try:
        neovim.until_ready()
        yield neovim
    finally:
        neovim.close()


class Screen:
    """What Neovim has drawn: the mode, the cursor's cell, and the cells (row, column) with ghost text."""

    def __init__(self) -> None:
        self.mode = ""
        self.cursor = (0, 0)
        self.ghost: set[tuple[int, int]] = set()
        self._ghost_highlights: set[int] = set()

    def draw(self, events: list[Any]) -> bool:
        """Apply the events of a redraw; return whether the screen is complete, as the user sees it."""
        complete = False
        for name, *calls in events:
            complete = complete or name == "flush"
            draw = getattr(self, f"_{name}", None)
            if draw is not None:
                for arguments in calls:
                    draw(*arguments)
        return complete

    def _mode_change(self, mode: str, _index: int) -> None:
        self.mode = mode

    def _hl_attr_define(self, number: int, colours: dict[str, Any], *_: Any) -> None:
        if colours.get("foreground") == _GHOST_COLOUR:
            self._ghost_highlights.add(number)
        else:
            self._ghost_highlights.discard(number)

    def _grid_cursor_goto(self, _grid: int, row: int, column: int) -> None:
        self.cursor = (row, column)

    def _grid_clear(self, _grid: int) -> None:
        self.ghost.clear()

    def _grid_line(self, _grid: int, row: int, column: int, cells: list[list[Any]], *_: Any) -> None:
        highlight = 0
        for text, *more in cells:
            highlight = more[0] if more else highlight
            width = more[1] if len(more) > 1 else 1
            places = {(row, column + number) for number in range(width)}
            self.ghost -= places
            if highlight in self._ghost_highlights and text.strip():
                self.ghost |= places
            column += width

    def _grid_scroll(self, _grid: int, top: int, bottom: int, left: int, right: int, rows: int, _columns: int) -> None:
        moved = {(row, column) for row, column in self.ghost if top <= row < bottom and left <= column < right}
        self.ghost -= moved
        self.ghost |= {(row - rows, column) for row, column in moved if top <= row - rows < bottom}


class Typist:
    """Types in a Neovim and reads its screen."""

    def __init__(self, neovim: Neovim) -> None:
        self._nvim = neovim.nvim
        self._screen = Screen()
        self._nvim.ui_attach(_COLUMNS, _ROWS, rgb=True, ext_linegrid=True)

    def open(self, file: Path, span: Span) -> None:
        """Open the file of a span with the cursor at the missing piece, at the end of a line."""
        self._nvim.command(f"edit {file}")
        self._nvim.current.window.cursor = (span.text.count("\n", 0, span.offset) + 1, 0)
        self._change_mode("A", "insert")

    def remove(self) -> None:
        """Close the file without writing it."""
        self._change_mode("<Esc>", "normal")
        self._nvim.command("bwipeout!")

    def press(self, key: str) -> Keystroke | None:
        """Press a key and wait for its ghost text; return None if it does not come in time."""
        pressed, cursor = 0.0, (0, 0)

        def act() -> None:
            nonlocal pressed, cursor
            cursor = self._screen.cursor
            pressed = time.time() * 1000
            self._input("<lt>" if key == "<" else key)

        # Until the cursor has moved, the ghost text on the screen belongs to the key before.
        shown = self._draw_until(lambda: self._screen.cursor != cursor and bool(self._screen.ghost), TIMEOUT_MS, act)
        return None if shown is None else Keystroke(pressed, shown, shown)

    def _change_mode(self, key: str, mode: str) -> None:
        if self._draw_until(lambda: self._screen.mode == mode, _PATIENCE_MS, lambda: self._input(key)) is None:
            raise RuntimeError(f"Neovim is in mode {self._screen.mode}, not {mode}, after {key}: see what it shows")

    def _input(self, keys: str) -> None:
        self._nvim.request("nvim_input", keys, async_=True)

    def _draw_until(self, seen: Callable[[], bool], limit_ms: float, act: Callable[[], None]) -> float | None:
        """Act, then draw until `seen` is true of a complete screen; return the time of that, None if not in time."""
        seen_at: float | None = None

        def notified(name: str, arguments: list[Any]) -> None:
            nonlocal seen_at
            now = time.time() * 1000
            if name == "redraw" and self._screen.draw(arguments) and seen_at is None and seen():
                seen_at = now
                self._nvim.stop_loop()

        # run_loop() handles older events before it starts the loop, so `act` runs after them.
        self._nvim.loop.call_soon(act)
        limit = self._nvim.loop.call_later(limit_ms / 1000, self._nvim.stop_loop)
        self._nvim.run_loop(None, notified)
        limit.cancel()
        return seen_at
