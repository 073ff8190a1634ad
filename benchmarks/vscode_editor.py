"""Typing in a real VS Code, with a clock at the key, at the language server and at the screen."""

import shlex
import sys
from pathlib import Path

import attrs
from lsp_relay import Passage, read_notes
from sources import Span

sys.path.append(str(Path(__file__).resolve().parent.parent / "tests" / "editors"))

from code_server import ROOT, CodeServer, package_extension, what_is_missing
from workbench import GHOST, Workbench

_TIMEOUT_MS = 1500


@attrs.frozen
class Keystroke:
    """One key that brought ghost text to the screen; all in Unix milliseconds.

    `passage` is the request behind it; None where the editor drew anew what it had, as typed along.
    """

    pressed: float
    shown: float
    passage: Passage | None


def missing() -> str | None:
    """Return why VS Code cannot be measured here, in one line; None when it can."""
    return what_is_missing()


def type_in_vscode(spans: list[Span], model: str, folder: Path) -> list[Keystroke]:
    """Type every span in a window of its own profile; returns the keys that showed ghost text."""
    notes = folder / "notes"
    notes.touch()
    # Without the gate more keys bring ghost text, each in the time that it takes with the gate too.
    settings = {"midspan.server.path": str(_relay(folder, notes)), "midspan.model": model, "midspan.gate": 0}
    server = CodeServer(folder / "vscode", settings)
    workbench = None
    try:
        server.start(package_extension())
        workbench = Workbench(server)
        workbench.open_window("first.py")
        pairs: list[tuple[float, float]] = []
        for number, span in enumerate(spans):
            text = f"{span.text[: span.offset]}{{cursor}}{span.text[span.offset :]}"
            workbench.open(f"span_{number}{span.path.suffix}", text, cursor="{cursor}")
            for key in span.middle:
                times = workbench.ask("keyToGhost", key=key, selector=GHOST, timeoutMs=_TIMEOUT_MS)
                if times["shown"] is not None:
                    pairs.append((times["pressed"], times["shown"]))
            workbench.remove(f"span_{number}{span.path.suffix}")
    finally:
        if workbench is not None:
            workbench.close()
        server.stop()
    passages = read_notes(notes)
    return [Keystroke(pressed, shown, _behind(passages, pressed, shown)) for pressed, shown in pairs]


def _relay(folder: Path, notes: Path) -> Path:
    """Write the program that the extension starts as its server."""
    program = folder / "midspan-lsp"
    command = [
        sys.executable,
        str(ROOT / "benchmarks" / "lsp_relay.py"),
        str(notes),
        sys.executable,
        "-m",
        "lsp_server",
    ]
    program.write_text(f"#!/bin/sh\nexec {shlex.join(command)}\n", "utf-8")
    program.chmod(0o755)
    return program


def _behind(passages: list[Passage], pressed: float, shown: float) -> Passage | None:
    between = [one for one in passages if pressed <= one.asked and one.answered <= shown]
    return between[-1] if between else None
