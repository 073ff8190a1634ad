"""A person who writes code with a tool that completes it, for benchmarks/editors/net_time.py.

They press keys in the rhythm of minutes_typing.py, pause before words, think before each line, press a wrong key now
and then and take it back, go up to look at what is above, read each text that is new to them, take what is right of it,
and type over or dismiss what is wrong. What they do at a place depends on the seed and the place alone, so that all
tools are used by the same person.

Time is added up and not waited for. What a tool shows later than the pause after a key is not seen.
"""

import random
import re
from typing import Literal, Protocol

import attrs

from benchmarks.editors.minutes_typing import WITHIN_WORD, pause
from benchmarks.quality.typing_tasks import Screen, TypingTask, offered, press
from engine.evaluation.keystrokes import is_start, keys, next_key
from engine.protocol.confidence import FEWEST_CHARACTERS

Part = Literal["all", "line", "word"]
"""What one key takes of a suggestion."""
PART: dict[Part, re.Pattern[str]] = {
    "all": re.compile(r".*", re.DOTALL),
    "line": re.compile(r"\n*[^\n]+"),
    "word": re.compile(r"\s*(?:\w+|[^\w\s]+)"),
}
"""The same as patterns (editors/neovim/lua/midspan/accept.lua)."""

TYPO = 0.0165
"""Wrong keys among all keys: the substitutions of Dhakal et al., "Observations on Typing from 136 Million Keystrokes",
CHI 2018, table 3."""
_NOTICED_AFTER = (0, 1, 2)
"""Assumed: so many more keys are pressed until a typo is noticed."""
_GOES_UP, _LINES_UP = 0.1, (3, 8)
"""Assumed: how often a person goes up to look before a line, and how far."""
_DISMISSES = 0.1
"""Assumed: how often a person dismisses a wrong text. Else they type over it."""
_LETTERS = "etaoinshrdlucmfwypvbgkjqxz"
_MOST_CHANGES = 3


@attrs.frozen
class Pace:
    """Seconds that a person needs.

    key: between two keys in a word: an average skilled typist of the keystroke-level model (Card, Moran, Newell, CACM
    23(7), 1980); Dhakal et al. measured 0.18 to 0.22. Other keys are as much slower as in minutes_typing.py.
    thought: to prepare mentally (M, keystroke-level model): before a line, and to find back after a wrong text.
    glance: to move the eyes, perceive and decide: 0.23 + 0.1 + 0.07 (Card, Moran, Newell, "The Psychology of
    Human-Computer Interaction", 1983). character: to read one: 238 words of 4.6 letters and a space in a minute
    (Brysbaert, "How many words do we read per minute?", 2019).
    """

    key: float = 0.2
    thought: float = 1.35
    lost: float = 1.35
    glance: float = 0.4
    character: float = 60 / (238 * 5.6)


@attrs.define
class Tally:
    """What a person did. `rhythm`: the pauses of all keys, in pauses within a word. `lost`: thoughts that a wrong text
    broke within a line. `wrong`: texts of which nothing could be taken, though some was wrong. `late`: looks at which
    the tool had not answered.
    """

    keys: int = 0
    rhythm: float = 0.0
    thoughts: int = 0
    glances: int = 0
    read: int = 0
    accepted: int = 0
    wrong: int = 0
    lost: int = 0
    dismissed: int = 0
    typos: int = 0
    late: int = 0

    def seconds(self, pace: Pace) -> float:
        """Return how long it took."""
        motion = self.rhythm * pace.key + self.thoughts * pace.thought + self.lost * pace.lost
        return motion + self.glances * pace.glance + self.read * pace.character


@attrs.frozen
class Seen:
    """The text that a tool shows after the cursor. `late`: it has not answered yet."""

    text: str = ""
    late: bool = False


class Tool(Protocol):
    """What a person types in."""

    def start(self, task: TypingTask) -> None:
        """Open the file of a task with the cursor at its place."""
        ...

    def press(self, key: str) -> object:
        """Type a character, or a newline with its indentation."""
        ...

    def erase(self) -> None:
        """Erase the character before the cursor."""
        ...

    def take(self, part: Part) -> None:
        """Take so much of what is shown."""
        ...

    def dismiss(self) -> None:
        """Dismiss what is shown."""
        ...

    def move(self, lines: int) -> None:
        """Go down, or up if `lines` is negative."""
        ...

    def look(self, seconds: float) -> Seen:
        """Return what is shown once the tool has answered, or that many seconds from now."""
        ...

    def written(self) -> str:
        """Return what is between the start of the task's place and the cursor."""
        ...

    def end(self) -> None:
        """Raise RuntimeError if the file is not what the task's author wrote; close it."""
        ...


class Person:
    """Writes one task. `pace` decides what is seen in time."""

    def __init__(self, task: TypingTask, tool: Tool, pace: Pace, seed: int) -> None:
        self._task, self._tool, self._pace, self._seed = task, tool, pace, seed
        self._tally = Tally()
        self._typed = 0
        self._shown = self._left = ""
        self._slipped: set[int] = set()

    def write(self) -> Tally:
        """Write the task to its end."""
        text = self._task.text
        self._tool.start(self._task)
        self._think()
        while self._typed < len(text):
            if not self._takes():
                self._types(self._chance())
        self._tool.end()
        return self._tally

    def _chance(self) -> random.Random:
        """Return what decides at this place, whatever the tool is."""
        return random.Random(f"{self._seed} {self._task.path} {len(self._task.above)} {self._typed}")

    @property
    def _rest(self) -> str:
        return self._task.text[self._typed :]

    def _think(self) -> None:
        """Think of the next line, and go up to look at what is above now and then."""
        chance = self._chance()
        lines = min(chance.randint(*_LINES_UP), self._task.above.count("\n"))
        if chance.random() < _GOES_UP and lines:
            for way in (-lines, lines):
                self._tool.move(way)
                self._pressed(chance, count=lines)
                self._tally.thoughts += 1
                self._look(self._pace.thought, self._rest if way > 0 else "")
        else:
            self._tally.thoughts += 1
            self._look(self._pace.thought, self._rest)

    def _pressed(self, chance: random.Random, key: str = "", count: int = 1) -> float:
        """Count a key pressed so often; return the seconds until the next one."""
        rhythm = sum(pause(key or "a", chance) for _ in range(count)) / WITHIN_WORD
        self._tally.keys += count
        self._tally.rhythm += rhythm
        return rhythm * self._pace.key

    def _look(self, seconds: float, rest: str) -> None:
        """Look at what is shown in this time, with `rest` left to write; "" if all that could be shown is wrong."""
        for number in range(_MOST_CHANGES):
            seen = self._tool.look(seconds)
            self._tally.late += seen.late and number == 0
            self._shown = seen.text
            offer = offered(rest, seen.text, self._left)
            if offer is None:
                return
            known = len(self._left) if self._left and seen.text.startswith(self._left) else 0
            read = max(_end_of_reading(seen.text, rest) - known, 0)
            self._tally.glances += 1
            self._tally.read += read
            if not offer.right and _takeable(rest, seen.text) is None:
                self._tally.wrong += 1
                self._tally.lost += bool(rest) and not self._at_line_start
            # While it is read it may become longer, or another one.
            self._left, seconds = seen.text, self._pace.glance + read * self._pace.character

    @property
    def _at_line_start(self) -> bool:
        return not self._task.text[: self._typed].rpartition("\n")[2].strip()

    def _takes(self) -> bool:
        """Take what is right of the shown text, if that is worth a key."""
        taken = _takeable(self._rest, self._shown)
        if taken is None:
            return False
        part, times = taken
        self._tally.accepted += 1
        for _ in range(times):
            chance = self._chance()
            self._tool.take(part)
            seconds = self._pressed(chance)
            seen = self._tool.look(seconds)
            self._mend()
            self._left = self._shown = ""
            if part == "word":
                self._left = seen.text
        self._look(0.0, self._rest)
        return True

    def _mend(self) -> None:
        """Erase what was taken and is not to be written: the tool had changed it meanwhile."""
        while not self._task.text.startswith(written := self._tool.written()):
            self._tool.erase()
            self._tool.look(self._pressed(self._chance()))
        self._typed = len(written)

    def _types(self, chance: random.Random) -> None:
        """Type the next key, or a wrong one."""
        key = next_key(self._rest)
        # Both are drawn before it is known what is shown: the next keys are the same with every tool.
        dismisses, slips = chance.random() < _DISMISSES, chance.random() < TYPO
        is_wrong = bool(self._shown) and not is_start(self._shown.partition("\n")[0], self._rest.partition("\n")[0])
        if is_wrong and dismisses:
            self._tool.dismiss()
            self._tally.dismissed += 1
            self._pressed(chance)
        if slips and key.isalnum() and self._typed not in self._slipped:
            self._slips(chance)
            return
        self._tool.press(key)
        self._left = self._shown[len(key) :] if self._shown.startswith(key) else ""
        self._typed += len(key)
        if key[0] == "\n":
            self._pressed(chance)
            self._think()
        else:
            self._look(self._pressed(chance, key), self._rest)

    def _slips(self, chance: random.Random) -> None:
        """Press a wrong letter and perhaps the next keys, notice it, and take all of it back."""
        self._slipped.add(self._typed)
        self._tally.typos += 1
        rest = self._rest
        wrong = chance.choice([letter for letter in _LETTERS if letter != rest[0].lower()])
        after = rest[1 : 1 + chance.choice(_NOTICED_AFTER)].partition("\n")[0]
        for key in wrong + after:
            self._tool.press(key)
            self._left = ""
            self._look(self._pressed(chance, key), "")
        for left in range(len(after), -1, -1):
            self._tool.erase()
            self._left = ""
            self._look(self._pressed(chance), "" if left else rest)


def _takeable(rest: str, shown: str) -> tuple[Part, int] | None:
    """Return what to take of the shown text and how often, with `rest` left to write; None if typing is as good."""
    stroke, written = press(rest, Screen(shown))
    if stroke.gained > 1:
        return ("all" if written == len(shown) else "line"), 1
    line, right, times = rest.partition("\n")[0], "", 0
    for number, word in enumerate(PART["word"].finditer(shown.partition("\n")[0]), 1):
        start = shown[: word.end()]
        if not line.startswith(start):
            break
        if is_start(start, line):
            right, times = start, number
    return ("word", times) if keys(right) - times >= FEWEST_CHARACTERS - 1 else None


def _end_of_reading(shown: str, rest: str) -> int:
    """Return how many characters of the shown text are read: up to the end of the first wrong word."""
    pairs = enumerate(zip(shown, rest, strict=False))
    right = next((index for index, (one, other) in pairs if one != other), min(len(shown), len(rest)))
    word = re.compile(r"\w*").match(shown, right)
    return len(shown) if right == len(shown) or word is None else max(word.end(), right + 1)
