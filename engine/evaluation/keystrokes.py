"""Typing simulation: someone writes lines of real code, and takes what is suggested when it is what they would write.

Who suggests is the caller's business. What is counted: a key for each character, one for a newline with the indentation
behind it, which an editor writes, and one for taking a suggestion.

A suggestion is right as far as it goes when its first line is the rest of the line or a start of it that does not end
inside a name or a number. Behind a start that is taken the person goes on typing.
"""

import random
import re
from collections.abc import Awaitable, Callable, Sequence

import attrs

from engine.corpus.corpus import File
from engine.protocol.confidence import FEWEST_CHARACTERS

_LONGEST_FILE = 40_000
_SHORTEST_LINE = 8
_KEY = re.compile(r"\n[ \t]*|.", re.DOTALL)
_INSIDE_WORD = re.compile(r"\w\w|\d\.\d|(?<=\d)\.\d")
_TRIES = 400


@attrs.frozen
class Screen:
    """What is on the screen behind the cursor; "" is nothing. `cut` says that it is the start of a line only."""

    text: str = ""
    cut: bool = False


Suggest = Callable[[int], Awaitable[Screen]]
"""Given how much of the place's text is typed, returns what is on the screen."""


@attrs.frozen
class TypingTask:
    """Consecutive lines to type, `text`, from the indentation of the first one; `above` and `below` stand there."""

    path: str
    language: str
    above: str
    text: str
    below: str


@attrs.frozen
class Stroke:
    """One moment and its key; `gained` counts the keys that this one stands for.

    `right`: what is on the screen is right as far as it goes. `whole`: its first line is the rest of the line. `cut`:
    it was shown as the start of a line, and not as a whole one.
    """

    shown: bool
    right: bool
    gained: int
    whole: bool = False
    cut: bool = False


@attrs.frozen
class Typing:
    """`saved` is the share of keys not pressed, `shown` of moments with something on the screen.

    Of those that show something `right` is the share that is right as far as it goes, `whole` the share of whole rests
    of lines, and `uncut` the share that was shown as a whole line, and not as a start. `whole_of_uncut` is the share of
    whole rests among the uncut, to be held beside `right` of runs that show whole lines only.
    """

    places: int
    characters: int
    keys: int
    saved: float
    shown: float
    right: float
    whole: float
    uncut: float
    whole_of_uncut: float


def places(files: Sequence[File], language: str, count: int, lines: int = 3, seed: int = 11) -> list[TypingTask]:
    """Return `count` places of `lines` lines of code in a row, none blank; the same ones for the same seed."""
    chosen = [file for file in files if file.language == language and len(file.text) <= _LONGEST_FILE]
    rng = random.Random(f"{seed} {language} typing")
    found: list[TypingTask] = []
    for _ in range(count * _TRIES if chosen else 0):
        if len(found) == count:
            break
        file = rng.choice(chosen)
        place = cut(file, rng.randrange(file.text.count("\n") + 1), lines)
        if place is not None:
            found.append(place)
    return found


def cut(file: File, line: int, lines: int) -> TypingTask | None:
    """Return the place of `lines` lines from number `line` on, or None when one is too short to be worth typing."""
    rows = file.text.split("\n")
    block = rows[line : line + lines]
    if len(block) < lines or any(len(row.strip()) < _SHORTEST_LINE for row in block):
        return None
    indent = len(block[0]) - len(block[0].lstrip())
    above = "".join(row + "\n" for row in rows[:line]) + block[0][:indent]
    text = "\n".join(block)[indent:]
    return TypingTask(file.path, file.language, above, text, file.text[len(above) + len(text) :])


def keys(text: str) -> int:
    """Return the keys it takes to type `text`."""
    return len(_KEY.findall(text))


def is_start(first: str, line: str) -> bool:
    """Return whether `first` is `line`, or a start of it that does not end inside a name or a number; "" is none."""
    return bool(first) and line.startswith(first) and not _INSIDE_WORD.match(line, len(first) - 1)


def press(rest: str, screen: Screen) -> tuple[Stroke, int]:
    """Return the key that is pressed with `rest` to write and `screen` to see, and the characters it writes.

    A suggestion of which all is right is taken whole. One of which the first line alone is, or a start of the line, is
    taken up to there; but a start of fewer than FEWEST_CHARACTERS is right, and typed.
    """
    suggestion, line = screen.text, rest.partition("\n")[0]
    first = suggestion.partition("\n")[0]
    right, whole = is_start(first, line), bool(first) and first == line
    if whole or (right and len(first) >= FEWEST_CHARACTERS):
        every_line = rest.startswith(suggestion) and rest[len(suggestion) :][:1] in ("", "\n")
        written = suggestion if every_line else first
        gained = keys(written)
    else:
        key = _KEY.match(rest)
        written, gained = key[0] if key else "", 1
    return Stroke(bool(first), right, gained, whole, bool(first) and screen.cut), len(written)


async def type_place(place: TypingTask, suggest: Suggest) -> list[Stroke]:
    """Type a place to its end; every moment asks what is on the screen."""
    strokes, typed = [], 0
    while typed < len(place.text):
        stroke, written = press(place.text[typed:], await suggest(typed))
        strokes.append(stroke)
        typed += written
    return strokes


def tally(sessions: Sequence[Sequence[Stroke]]) -> Typing:
    """Add up the strokes of all places."""
    strokes = [stroke for session in sessions for stroke in session]
    characters = sum(stroke.gained for stroke in strokes)
    shown = [stroke for stroke in strokes if stroke.shown]
    uncut = [stroke for stroke in shown if not stroke.cut]
    return Typing(
        places=len(sessions),
        characters=characters,
        keys=len(strokes),
        saved=round(1 - len(strokes) / characters, 4) if characters else 0.0,
        shown=_share(len(shown), strokes),
        right=_share(sum(stroke.right for stroke in shown), shown),
        whole=_share(sum(stroke.whole for stroke in shown), shown),
        uncut=_share(len(uncut), shown),
        whole_of_uncut=_share(sum(stroke.whole for stroke in uncut), uncut),
    )


def _share(count: int, of: Sequence[Stroke]) -> float:
    return round(count / len(of), 4) if of else 0.0
