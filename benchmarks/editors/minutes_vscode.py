"""VS Code for benchmarks/editors/minutes.py: a window at default settings, its keys and its screen."""

import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType

from benchmarks.editors.keystroke import ROOT
from benchmarks.editors.minutes_pieces import Piece, write_project
from benchmarks.editors.minutes_typing import Screen

sys.path.append(str(ROOT / "tests" / "editors"))

from code_server import QUIET, CodeServer, package_extension, what_is_missing
from workbench import GHOST_INLINE, GHOST_LINES, Workbench, eventually, plain

_MENU = ".suggest-widget.visible .monaco-list-row"
_ENTRY = f"{_MENU}.focused .label-name"
# The tests switch the completion menu off; a user has it.
_DEFAULTS = {name: value for name, value in QUIET.items() if not name.startswith("editor.")}
# What the walkthrough offers: the menu opens with nothing selected, and the suggestion is shown beside it.
BESIDE_MENU = {"editor.suggest.selectionMode": "never"}
_USER = {**_DEFAULTS, "editor.minimap.enabled": False}


def missing() -> str | None:
    """Return one line that says why VS Code cannot be measured here; None if it can."""
    return what_is_missing()


@contextmanager
def vscode(folder: Path, user: Mapping[str, object] = MappingProxyType({})) -> Iterator["VSCode"]:
    """Open the project in a window of its own profile; `folder` keeps both. `user` are settings that the user made."""
    settings = {"midspan.server.path": str(Path(sys.executable).parent / "midspan-lsp")}
    server = CodeServer(folder / "vscode", settings, user={**_USER, **user})
    workbench = None
    try:
        write_project(server.folder)
        server.start(package_extension())
        workbench = Workbench(server)
        workbench.open_window("first.py")
        yield VSCode(workbench)
    finally:
        if workbench is not None:
            workbench.close()
        server.stop()


class VSCode:
    """The window, with one file of the project open at a time."""

    def __init__(self, workbench: Workbench) -> None:
        self._workbench = workbench
        self._name = ""
        self._unit = 4
        self._line = ""
        self._menu = False
        workbench.ask("watch", inline=GHOST_INLINE, lines=GHOST_LINES, menu=_MENU, entry=_ENTRY)

    def open(self, piece: Piece) -> None:
        """Open the piece's file with the cursor at the place; close the one that was open."""
        if self._name:
            tab = f'.tab.active[data-resource-name="{self._name}"]'
            self._workbench.saved(self._name)
            self._workbench.ask("click", selector=f"{tab} .tab-actions .action-label")
            eventually(lambda: not self._workbench.texts(tab), f"{self._name} closed")
        self._name, self._unit = piece.name, 2 if piece.name.endswith(".ts") else 4
        self._line = piece.before.rpartition("\n")[2]
        self._workbench.open(piece.name, f"{piece.before}\0{piece.after}", cursor="\0")

    def press(self, key: str) -> float:
        """Press a character, or Enter and what it takes to have the indentation that follows it."""
        if key[0] != "\n":
            self._line += key
            return self._press([key])
        wanted, has = len(key.lstrip("\n")), len(self._line) - len(self._line.lstrip())
        if self._line.endswith(":"):
            has += self._unit
        self._line = " " * wanted
        # VS Code keeps the indentation over blank lines. Backspace deletes one level of it.
        outdents = max(has - wanted, 0) // self._unit
        # With the menu open, Enter would take what the menu has.
        closing = ["Escape"] if self._menu else []
        return self._press(
            [*closing, *["Enter"] * key.count("\n"), *["Backspace"] * outdents, *[" "] * max(wanted - has, 0)]
        )

    def accept(self, text: str) -> float:
        """Press Tab."""
        self._line = (self._line + text).rpartition("\n")[2]
        return self._press(["Tab"])

    def look(self, until: float) -> list[Screen]:
        """Wait until then; return the screens since the last call."""
        time.sleep(max(until / 1000 - time.time(), 0))
        seen = self._workbench.ask("screens")
        self._menu = bool(seen[-1]["menu"])
        return [Screen(each["at"], plain(each["ghost"]), each["menu"], plain(each["entry"])) for each in seen]

    def text(self) -> str:
        """Save the file and return what is on the disk."""
        return self._workbench.saved(self._name)

    def _press(self, keys: list[str]) -> float:
        return float(self._workbench.ask("pressAll", keys=keys))
