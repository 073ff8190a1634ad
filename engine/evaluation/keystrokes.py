"""Typing simulation: someone writes lines of real code, and takes what is suggested when it is what they would write.

Who suggests is the caller's business. What is counted: a key for each character, one for a newline with the indentation
behind it, which an editor writes, and one for taking a suggestion.
"""

import random
import re
from collections.abc import Awaitable, Callable, Sequence

import attrs

from engine.training.corpus import File

_LONGEST_FILE = 40_000
_SHORTEST_LINE = 8
_KEY = re.compile(r"\n[ \t]*|.", re.DOTALL)
_TRIES = 400

Suggest = Callable[[int], Awaitable[str]]
"""Told how much of the place's text is typed, returns what is on the screen behind the cursor; "" is nothing."""


@attrs.frozen
class Place:
    """Consecutive lines to type, `text`, from the indentation of the first one; `above` and `below` stand there."""

    path: str
    language: str
    above: str
    text: str
    below: str


@attrs.frozen
class Stroke:
    """One moment and its key. `right`: the first line on the screen is the rest of the line; then it is taken.

    `gained` counts the keys that this one stands for.
    """

    shown: bool
    right: bool
    gained: int


@attrs.frozen
class Typing:
    """`saved` is the share of keys not pressed, `shown` of moments with something on the screen, `right` of those."""

    places: int
    characters: int
    keys: int
    saved: float
    shown: float
    right: float


def places(files: Sequence[File], language: str, count: int, lines: int = 3, seed: int = 11) -> list[Place]:
    """Return `count` places of `lines` lines of code in a row, none blank; the same ones for the same seed."""
    chosen = [file for file in files if file.language == language and len(file.text) <= _LONGEST_FILE]
    rng = random.Random(f"{seed} {language} typing")
    found: list[Place] = []
    for _ in range(count * _TRIES if chosen else 0):
        if len(found) == count:
            break
        file = rng.choice(chosen)
        place = cut(file, rng.randrange(file.text.count("\n") + 1), lines)
        if place is not None:
            found.append(place)
    return found


def cut(file: File, line: int, lines: int) -> Place | None:
    """Return the place of `lines` lines from number `line` on, or None when one is too short to be worth typing."""
    rows = file.text.split("\n")
    block = rows[line : line + lines]
    if len(block) < lines or any(len(row.strip()) < _SHORTEST_LINE for row in block):
        return None
    indent = len(block[0]) - len(block[0].lstrip())
    above = "".join(row + "\n" for row in rows[:line]) + block[0][:indent]
    text = "\n".join(block)[indent:]
    return Place(file.path, file.language, above, text, file.text[len(above) + len(text) :])


def keys(text: str) -> int:
    """Return the keys it takes to type `text`."""
    return len(_KEY.findall(text))


def press(rest: str, suggestion: str) -> tuple[Stroke, int]:
    """Return the key that is pressed with `rest` to write and `suggestion` on the screen, and the characters it writes.

    A suggestion of which all is right is taken whole. One of which the first line alone is, is taken up to its end.
    """
    line = rest.partition("\n")[0]
    first = suggestion.partition("\n")[0]
    if first and first == line:
        whole = rest.startswith(suggestion) and rest[len(suggestion) :][:1] in ("", "\n")
        taken = suggestion if whole else first
        return Stroke(shown=True, right=True, gained=keys(taken)), len(taken)
    key = _KEY.match(rest)
    return Stroke(shown=bool(first), right=False, gained=1), len(key[0]) if key else 0


async def type_place(place: Place, suggest: Suggest) -> list[Stroke]:
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
    shown = sum(stroke.shown for stroke in strokes)
    return Typing(
        places=len(sessions),
        characters=characters,
        keys=len(strokes),
        saved=round(1 - len(strokes) / characters, 4) if characters else 0.0,
        shown=round(shown / len(strokes), 4) if strokes else 0.0,
        right=round(sum(stroke.right for stroke in strokes) / shown, 4) if shown else 0.0,
    )
