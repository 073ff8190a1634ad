"""A person who types in an editor and looks at its screen, for benchmarks/editors/minutes.py.

An editor is measured if it has the members of `Editor`. Times are Unix milliseconds.
"""

import random
import time
from typing import Protocol

import attrs

from benchmarks.editors.minutes_pieces import Piece, keys_of

# Milliseconds between two keys, of a person who types about 60 words a minute: medians of a log-normal distribution.
WITHIN_WORD, _NEW_WORD, _NEW_LINE = 130.0, 220.0, 420.0
_SPREAD = 0.35
_LONGEST_MS = 1200.0
# How long a person who took a suggestion looks for the next one.
_NEXT_MS = 600.0


@attrs.frozen
class Screen:
    """What the user sees from the time `at` on: the ghost text, its lines joined, and whether the menu is open.

    `entry` is what is selected in the menu, "" for nothing.
    """

    at: float
    ghost: str = ""
    menu: bool = False
    entry: str = ""


class Editor(Protocol):
    """An editor with the cursor in a file of the project."""

    def open(self, piece: Piece) -> None:
        """Open the piece's file with `before` and `after` in it, and the cursor between them."""
        ...

    def press(self, key: str) -> float:
        """Press a key as `keys_of` has it, without waiting for the screen; return when.

        The editor indents by itself; after newlines the implementation presses what it takes to have the indentation.
        """
        ...

    def accept(self, text: str) -> float:
        """Press the key that accepts the suggestion, which is `text`; return when."""
        ...

    def look(self, until: float) -> list[Screen]:
        """Wait until then. Return the screens since the last call, the first as it was at that call."""
        ...

    def text(self) -> str:
        """Return the file's text."""
        ...


@attrs.frozen
class Moment:
    """A key and what was on the screen: at the key press first, then each change until the next key.

    `rest` is what the user is going to type after the key, in this piece.
    """

    kind: str
    key: str
    rest: str
    pressed: float
    screens: list[Screen]


@attrs.frozen
class Taken:
    """A suggestion that was taken with a key at `pressed`; the next one was on the screen at `shown`, if any came."""

    kind: str
    pressed: float
    shown: float | None


def type_along(editor: Editor, piece: Piece, pace: float = 1.0) -> list[Moment]:
    """Type a piece at a person's rhythm, whose pauses are `pace` times as long, and take no suggestion."""
    rhythm = random.Random(piece.name)
    editor.open(piece)
    editor.look(_now() + 1000)
    moments, typed = [], ""
    for key in keys_of(piece.typed):
        pressed = editor.press(key)
        typed += key
        screens = editor.look(pressed + pace * pause(key, rhythm))
        moments.append(Moment(piece.kind, key, piece.typed[len(typed) :], pressed, screens))
    check(piece, editor.text())
    return moments


def type_and_take(editor: Editor, piece: Piece, pace: float = 1.0) -> list[Taken]:
    """Type a piece, take each suggestion that is right and longer than a key, and look for the next one then."""
    rhythm = random.Random(piece.name)
    editor.open(piece)
    editor.look(_now() + 1000)
    taken: list[Taken] = []
    typed, ghost = "", ""
    while rest := piece.typed[len(typed) :]:
        if len(ghost) > 1 and rest.startswith(ghost):
            typed += ghost
            pressed = editor.accept(ghost)
            before, screens = ghost, editor.look(pressed + pace * _NEXT_MS)
            # The screen still has the old one until the editor has inserted it.
            fresh = [screen for screen in screens[1:] if screen.ghost and screen.ghost != before]
            if len(typed) < len(piece.typed):
                taken.append(Taken(piece.kind, pressed, fresh[0].at if fresh else None))
        else:
            key = keys_of(rest)[0]
            typed += key
            pressed = editor.press(key)
            screens = editor.look(pressed + pace * pause(key, rhythm))
        # With the menu open, the key would take what the menu has.
        ghost = "" if screens[-1].menu else screens[-1].ghost
    check(piece, editor.text())
    return taken


def check(piece: Piece, text: str) -> None:
    """Raise RuntimeError if the file's text is not what was typed: then the figures are of something else."""
    expected = piece.before + piece.typed + piece.after
    if [line.rstrip() for line in text.split("\n")] != [line.rstrip() for line in expected.split("\n")]:
        raise RuntimeError(f"{piece.name} is not what was typed:\n{text}")


def pause(key: str, rhythm: random.Random) -> float:
    """Return the milliseconds until the next key of a person who types about 60 words a minute."""
    median = _NEW_LINE if key[0] == "\n" else _NEW_WORD if key == " " else WITHIN_WORD
    return min(median * rhythm.lognormvariate(0, _SPREAD), _LONGEST_MS)


def _now() -> float:
    return time.time() * 1000
