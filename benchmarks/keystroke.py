"""Keys typed in a real editor: when each was pressed, what it asked of the server, when its ghost text was there."""

import shlex
import sys
from pathlib import Path

import attrs
from lsp_relay import Passage, read_notes

TIMEOUT_MS = 1500  # So long a key is waited for; then the next one is typed.
ROOT = Path(__file__).resolve().parent.parent


@attrs.frozen
class Keystroke:
    """One key that brought ghost text to the screen; all in Unix milliseconds.

    The editor had it ready at `drawn`, and it was in sight at `shown`. `passage` is the request behind it; None where
    the editor drew anew what it had, as typed along.
    """

    pressed: float
    drawn: float
    shown: float
    passage: Passage | None = None


def write_relay(folder: Path) -> Path:
    """Write into `folder` the program that an editor there starts as its server."""
    program = folder / "midspan-lsp"
    _notes(folder).touch()
    command = [
        sys.executable,
        str(ROOT / "benchmarks" / "lsp_relay.py"),
        str(_notes(folder)),
        sys.executable,
        "-m",
        "lsp_server",
    ]
    program.write_text(f"#!/bin/sh\nexec {shlex.join(command)}\n", "utf-8")
    program.chmod(0o755)
    return program


def with_passages(keys: list[Keystroke], folder: Path) -> list[Keystroke]:
    """Return the keys, each with the last request that the relay of `folder` noted between `pressed` and `drawn`."""
    passages = read_notes(_notes(folder))
    return [attrs.evolve(key, passage=_behind(passages, key)) for key in keys]


def _behind(passages: list[Passage], key: Keystroke) -> Passage | None:
    between = [one for one in passages if key.pressed <= one.asked and one.answered <= key.drawn]
    return between[-1] if between else None


def _notes(folder: Path) -> Path:
    return folder / "notes"
