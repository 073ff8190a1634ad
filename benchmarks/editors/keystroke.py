"""Keys typed in a real editor: when each was pressed, which request it caused, and when its ghost text was shown."""

import shlex
import sys
from pathlib import Path

import attrs

from benchmarks.editors.lsp_relay import Passage, read_notes

TIMEOUT_MS = 1500  # The longest wait for a key's ghost text; then the next key is typed.
ROOT = Path(__file__).resolve().parents[2]


@attrs.frozen
class Keystroke:
    """One key that brought ghost text to the screen; all times are Unix milliseconds.

    The editor had the ghost text at `drawn`, and the user could see it at `shown`. `passage` is the request that it
    answers; None if the editor showed what it had already.
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
        str(ROOT / "benchmarks" / "editors" / "lsp_relay.py"),
        str(_notes(folder)),
        sys.executable,
        "-m",
        "lsp_server",
    ]
    program.write_text(f"#!/bin/sh\nexec {shlex.join(command)}\n", "utf-8")
    program.chmod(0o755)
    return program


def with_passages(keys: list[Keystroke], folder: Path) -> list[Keystroke]:
    """Return the keys, each with the last request in the relay's notes between `pressed` and `drawn`."""
    passages = read_notes(_notes(folder))
    return [attrs.evolve(key, passage=_passage_of(passages, key)) for key in keys]


def _passage_of(passages: list[Passage], key: Keystroke) -> Passage | None:
    between = [passage for passage in passages if key.pressed <= passage.asked and passage.answered <= key.drawn]
    return between[-1] if between else None


def _notes(folder: Path) -> Path:
    return folder / "notes"
