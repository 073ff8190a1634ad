"""Typing simulation: a typist writes lines of real code and takes a suggestion if it is what they want to write.

The caller provides the suggestions. Keys count: one for each character, one for a newline with its indentation, which
an editor writes, and one for taking a suggestion.

A suggestion is right as far as it goes if its first line equals the rest of the line, or a start of it that does not
end inside a name or a number. After a start is taken, the typist goes on typing.

Net keys are the keys saved, minus GLANCE for each offer and WRONG for each wrong one (engine/protocol/confidence.py).
An offer is a ghost text that is not what is left of the one before: a new text, or a longer or another one. It is wrong
if any of its lines is.

Insertions are code that was cut out directly before a word, as when an argument or a call is added to a line. Only a
model of both sides can put it back: what is shown there must end where the word begins.
"""

import random
import re
import statistics
from collections.abc import Awaitable, Callable, Iterator, Sequence
from itertools import islice

import attrs

from benchmarks.quality.obvious import ObviousName, obvious_names
from engine.corpus.corpus import File
from engine.evaluation.keystrokes import is_start, keys, next_key
from engine.protocol.confidence import FEWEST_CHARACTERS, GLANCE, WRONG

_LONGEST_FILE = 40_000
_SHORTEST_LINE = 8
_TRIES = 400
_SHORTEST_SPAN = 5
"""Characters. Shorter code is not worth a suggestion."""
_SPAN = re.compile(
    r"(?<![\w.])(?<!def )(?<!func )(?<!fn )(?<!function )"  # The name of a function is no code to call it.
    r"[^\W\d][\w.]*(?:\(|, )(?=\w)"
)
_CODE = re.compile(r"\s*(?!#|//|/?\*)[^\n]*[()=\[\]{}]")
SHORT = 5
"""Characters. Reading a shorter suggestion costs about as much as typing it."""


@attrs.frozen
class Screen:
    """The ghost text after the cursor; "" if there is none. `best` is what the model would write, shown or not."""

    text: str = ""
    best: str = ""


Suggest = Callable[[int], Awaitable[Screen]]
"""Takes how many characters of the task's text are typed; returns the ghost text on the screen."""


@attrs.frozen
class TypingTask:
    """Consecutive lines to type: `text`, without the first line's indentation, between `above` and `below`."""

    path: str
    language: str
    above: str
    text: str
    below: str


@attrs.frozen
class Offer:
    """A ghost text that was new to the reader: its characters, and whether all of its lines are right."""

    characters: int
    right: bool


@attrs.frozen
class Stroke:
    """One moment and the key pressed then; `gained` counts the keys that this key replaces, itself included.

    `right`: the ghost text is right as far as it goes. `whole`: its first line is the rest of the line. `hopeless`: the
    model would write something, and no start of it is right, so showing nothing is right. `offer`: the ghost text if it
    is new, else None. `names` says of each obvious name whose third character this key passes whether it was shown by
    then.
    """

    shown: bool
    right: bool
    gained: int
    whole: bool = False
    hopeless: bool = False
    offer: Offer | None = None
    names: tuple[bool, ...] = ()


@attrs.frozen
class Typing:
    """`saved` is the share of keys that were not pressed, `shown` the share of moments with ghost text.

    Two are shares of the moments with ghost text: `right` if it is right as far as it goes, `whole` if it is the whole
    rest of the line.

    `quiet` is a share of the moments at which showing nothing was right: of those that showed nothing.

    `net` is the net keys as a share of all keys, `offers` the number of offers and `right_offers` the share of right
    ones. It differs from `right`: a right text is taken at once, while a wrong one may be typed along for many
    moments. `length` is the median of the right offers in characters, `short` their share with fewer than SHORT.

    `named` is the share of the `names` obvious names (obvious.py) shown by their third character.
    """

    places: int
    characters: int
    keys: int
    saved: float
    shown: float
    right: float
    whole: float
    quiet: float
    net: float
    offers: int
    right_offers: float
    length: float
    short: float
    names: int = 0
    named: float = 0.0


def places(files: Sequence[File], language: str, count: int, lines: int = 3, seed: int = 11) -> list[TypingTask]:
    """Return `count` tasks of `lines` consecutive lines of code, none blank.

    Equal seeds return equal tasks; there are fewer if the files have no more.
    """
    rng = random.Random(f"{seed} {language} typing")
    return list(islice(_drawn(files, language, count, rng, lambda file, line: cut(file, line, lines)), count))


def _drawn(
    files: Sequence[File],
    language: str,
    count: int,
    rng: random.Random,
    cut_at: Callable[[File, int], TypingTask | None],
) -> Iterator[TypingTask]:
    """Yield what `cut_at` finds at lines drawn from the files of a language, in _TRIES draws for each of `count`."""
    chosen = [file for file in files if file.language == language and len(file.text) <= _LONGEST_FILE]
    for _ in range(count * _TRIES if chosen else 0):
        file = rng.choice(chosen)
        task = cut_at(file, rng.randrange(file.text.count("\n") + 1))
        if task is not None:
            yield task


def cut(file: File, line: int, lines: int) -> TypingTask | None:
    """Return the task that starts at line number `line`, or None if one of its lines is too short to type."""
    rows = file.text.split("\n")
    block = rows[line : line + lines]
    if len(block) < lines or any(len(row.strip()) < _SHORTEST_LINE for row in block):
        return None
    indent = len(block[0]) - len(block[0].lstrip())
    above = "".join(row + "\n" for row in rows[:line]) + block[0][:indent]
    text = "\n".join(block)[indent:]
    return TypingTask(file.path, file.language, above, text, file.text[len(above) + len(text) :])


def is_hopeless(first: str, line: str) -> bool:
    """Tell whether no start of `first` that could be shown is right for `line`; "" is not hopeless.

    A fill that the engine ended may end inside a name: it is not hopeless if `line` goes on as it does.
    """
    if line.startswith(first):
        return False
    starts = (first[:length] for length in range(min(FEWEST_CHARACTERS, len(first)), len(first)))
    return not any(is_start(start, line) and is_start(start, first) for start in starts)


def press(rest: str, screen: Screen) -> tuple[Stroke, int]:
    """Return the key pressed, with `rest` left to write and `screen` shown, and how many characters it writes.

    If all lines of a suggestion are right, it is taken whole. If only its first line, or a start of the line, is right,
    it is taken up to there. A right start of fewer than FEWEST_CHARACTERS is not taken.
    """
    suggestion, line = screen.text, rest.partition("\n")[0]
    first = suggestion.partition("\n")[0]
    right, whole = is_start(first, line), bool(first) and first == line
    if whole or (right and len(first) >= FEWEST_CHARACTERS):
        every_line = rest.startswith(suggestion) and rest[len(suggestion) :][:1] in ("", "\n")
        written = suggestion if every_line else first
        gained = keys(written)
    else:
        written, gained = next_key(rest), 1
    hopeless = is_hopeless((screen.best or suggestion).partition("\n")[0], line)
    return Stroke(bool(first), right, gained, whole, hopeless), len(written)


def offered(rest: str, text: str, left: str = "") -> Offer | None:
    """Return the ghost text `text` as an offer, with `rest` left to write; None if it is no more than `left`.

    `left` is what is left of the ghost text before.
    """
    if not text or text == left:
        return None
    first = text.partition("\n")[0]
    right = is_start(first, rest.partition("\n")[0])
    if first != text:
        right = right and rest.startswith(text) and rest[len(text) :][:1] in ("", "\n")
    return Offer(len(text.strip()), right)


async def type_place(task: TypingTask, suggest: Suggest) -> list[Stroke]:
    """Type a task to its end; ask for the ghost text at every moment."""
    strokes, typed, left = [], 0, ""
    names, seen = obvious_names(task.text, f"{task.above}\n{task.below}"), set[ObviousName]()
    while typed < len(task.text):
        rest, screen = task.text[typed:], await suggest(typed)
        stroke, written = press(rest, screen)
        seen.update(name for name in names if name.is_shown(typed, screen.text))
        # A taken text showed the names in it.
        due = tuple(name in seen or stroke.gained > 1 for name in names if name.is_due(typed, written))
        strokes.append(attrs.evolve(stroke, offer=offered(rest, screen.text, left), names=due))
        left = screen.text[written:] if screen.text.startswith(rest[:written]) else ""
        typed += written
    return strokes


def tally(sessions: Sequence[Sequence[Stroke]]) -> Typing:
    """Sum up the strokes of all tasks."""
    strokes = [stroke for session in sessions for stroke in session]
    characters = sum(stroke.gained for stroke in strokes)
    shown = [stroke for stroke in strokes if stroke.shown]
    hopeless = [stroke for stroke in strokes if stroke.hopeless]
    offers = [stroke.offer for stroke in strokes if stroke.offer is not None]
    lengths = [offer.characters for offer in offers if offer.right]
    names = [shown for stroke in strokes for shown in stroke.names]
    costs = GLANCE * len(offers) + WRONG * (len(offers) - len(lengths))
    return Typing(
        places=len(sessions),
        characters=characters,
        keys=len(strokes),
        saved=round(1 - len(strokes) / characters, 4) if characters else 0.0,
        shown=_share(len(shown), strokes),
        right=_share(sum(stroke.right for stroke in shown), shown),
        whole=_share(sum(stroke.whole for stroke in shown), shown),
        quiet=_share(sum(not stroke.shown for stroke in hopeless), hopeless),
        net=round((characters - len(strokes) - costs) / characters, 4) if characters else 0.0,
        offers=len(offers),
        right_offers=_share(len(lengths), offers),
        length=statistics.median(lengths) if lengths else 0.0,
        short=_share(sum(length < SHORT for length in lengths), lengths),
        names=len(names),
        named=_share(sum(names), names),
    )


def _share(count: int, of: Sequence[object]) -> float:
    return round(count / len(of), 4) if of else 0.0


@attrs.frozen
class Inserted:
    """How many places there were, at how many something was shown, and at how many it was what had been cut out."""

    places: int
    shown: int
    right: int


def insertions(files: Sequence[File], language: str, count: int, seed: int = 11) -> list[TypingTask]:
    """Return `count` tasks, each to write an argument (`name, `) or the start of a call (`foo(`) before a word.

    Equal seeds return equal tasks; there are fewer if the files have no more.
    """
    rng = random.Random(f"{seed} {language} insertions")
    tasks: list[TypingTask] = []
    for task in _drawn(files, language, count, rng, lambda file, line: cut_span(file, line, rng)):
        if task not in tasks:
            tasks.append(task)
        if len(tasks) == count:
            break
    return tasks


def cut_span(file: File, line: int, rng: random.Random) -> TypingTask | None:
    """Return the task of a span in line number `line`, or None if that has no span."""
    rows = file.text.split("\n")
    row = rows[line]
    spans = [span.span() for span in _SPAN.finditer(row) if len(span[0]) >= _SHORTEST_SPAN] if _CODE.match(row) else []
    if not spans:
        return None
    start, end = rng.choice(spans)
    above = "".join(other + "\n" for other in rows[:line])
    below = "\n".join([row[end:], *rows[line + 1 :]])
    return TypingTask(file.path, file.language, above + row[:start], row[start:end], below)


async def insert(tasks: Sequence[TypingTask], suggesters: Sequence[Suggest]) -> Inserted:
    """Ask once at each place."""
    texts = [(await suggest(0)).text for suggest in suggesters]
    right = sum(text == task.text for text, task in zip(texts, tasks, strict=True))
    return Inserted(len(tasks), sum(bool(text) for text in texts), right)
