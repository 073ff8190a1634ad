"""Holes cut out of whole files, at the places where users have their cursors."""

import random
import re
from collections.abc import Callable
from itertools import accumulate

import attrs

from engine.corpus.languages import File

_WORD = re.compile(r"[^\W\d]\w*|\d[\w.]*")
_PAIRS = {"(": ")", "[": "]", "{": "}", '"': '"', "'": "'"}
MAX_MIDDLE = 400


@attrs.frozen
class TrainingHole:
    """A file cut into three texts; `kind` names the way of cutting, a key of KINDS."""

    prefix: str
    middle: str
    suffix: str
    kind: str
    path: str
    language: str


def _line_at(text: str, position: int) -> tuple[int, int]:
    """Return start and end of the line that holds `position`, without its newline."""
    start = text.rfind("\n", 0, position) + 1
    end = text.find("\n", position)
    return start, len(text) if end < 0 else end


def _indent(text: str, start: int, end: int) -> int:
    """Return how many blanks and tabs the line starts with."""
    line = text[start:end]
    return len(line) - len(line.lstrip(" \t"))


def _rest_of_line(text: str, rng: random.Random) -> tuple[int, int] | None:
    """From any character of a line to its end."""
    start, end = _line_at(text, rng.randrange(len(text)))
    first = start + _indent(text, start, end)
    return (rng.randrange(first, end), end) if first < end else None


def _inside(text: str, rng: random.Random) -> tuple[int, int] | None:
    """The rest of the text between brackets or quotes; the closing one and what follows it stay in the suffix."""
    start, end = _line_at(text, rng.randrange(len(text)))
    openers = [index for index in range(start, end) if text[index] in _PAIRS]
    if not openers:
        return None
    opener = rng.choice(openers)
    closer, depth = _PAIRS[text[opener]], 0
    for index in range(opener + 1, end):
        if text[index] == closer and depth == 0:
            cut = opener + 1 if rng.random() < 0.5 else rng.randrange(opener + 1, max(opener + 2, index))
            return (cut, index) if cut < index else None
        depth += (text[index] == text[opener]) - (text[index] == closer)
    return None


def _lines(text: str, rng: random.Random) -> tuple[int, int] | None:
    """One to six whole lines from a line start, but not beyond the end of the block."""
    start, end = _line_at(text, rng.randrange(len(text)))
    indent = _indent(text, start, end)
    if start + indent == end:
        return None
    stop = end
    for _ in range(rng.choice((0, 0, 1, 1, 2, 3, 5))):
        if stop >= len(text):
            break
        following, after = _line_at(text, stop + 1)
        if following + _indent(text, following, after) < after and _indent(text, following, after) < indent:
            break
        stop = after
    return (start if rng.random() < 0.25 else start + indent), stop


def _body(text: str, rng: random.Random) -> tuple[int, int] | None:
    """The body of a block, from its first line after the indentation."""
    start, end = _line_at(text, rng.randrange(len(text)))
    for _ in range(12):
        if text[start:end].rstrip().endswith((":", "{")):
            break
        if end + 1 >= len(text):
            return None
        start, end = _line_at(text, end + 1)
    else:
        return None
    outer, stop = _indent(text, start, end), end
    while stop < len(text):
        following, after = _line_at(text, stop + 1)
        inner = _indent(text, following, after)
        if following + inner < after and inner <= outer:
            break
        if after - end > MAX_MIDDLE:
            break
        stop = after
    if stop == end:
        return None
    first, last = _line_at(text, end + 1)
    return first + _indent(text, first, last), len(text[:stop].rstrip()) if text[end:stop].strip() else stop


def _word(text: str, rng: random.Random) -> tuple[int, int] | None:
    """A name or a number, from its start or from a character inside."""
    start, end = _line_at(text, rng.randrange(len(text)))
    words = list(_WORD.finditer(text, start, end))
    if not words:
        return None
    word = rng.choice(words)
    return (word.start() if rng.random() < 0.5 else rng.randrange(word.start(), word.end())), word.end()


def _span(text: str, rng: random.Random) -> tuple[int, int] | None:
    """Any run of characters."""
    start = rng.randrange(len(text))
    return start, min(len(text), start + 1 + int(rng.expovariate(1 / 30)))


def _before_word(text: str, rng: random.Random) -> tuple[int, int] | None:
    """From any character of a line to where a later word of it begins, as an argument or a call is added."""
    start, end = _line_at(text, rng.randrange(len(text)))
    words = [word.start() for word in _WORD.finditer(text, start, end)]
    if len(words) < 2:
        return None
    first = rng.randrange(len(words) - 1)
    begin = words[first] if rng.random() < 0.5 else rng.randrange(start + _indent(text, start, end), words[first] + 1)
    return begin, words[min(first + rng.choice((1, 1, 1, 2, 2, 3)), len(words) - 1)]


KINDS: dict[str, Callable[[str, random.Random], tuple[int, int] | None]] = {
    "rest of line": _rest_of_line,
    "inside": _inside,
    "lines": _lines,
    "body": _body,
    "word": _word,
    "before word": _before_word,
    "span": _span,
}


def cut(file: File, kind: str, rng: random.Random) -> TrainingHole | None:
    """Cut one hole of `kind` at a random position; None if there is no such hole at that position."""
    span = KINDS[kind](file.text, rng)
    if span is None or not 0 < span[1] - span[0] <= MAX_MIDDLE:
        return None
    start, end = span
    return TrainingHole(file.text[:start], file.text[start:end], file.text[end:], kind, file.path, file.language)


def as_edited(hole: TrainingHole, rng: random.Random, unfinished: float) -> TrainingHole:
    """Return the hole as it looks while the file is being written; each change has the probability `unfinished`.

    After brackets that an editor closed by itself, the rest of the line is not written yet. Lines below that belong to
    the code the user is about to write are missing.
    """
    line, newline, below = hole.suffix.partition("\n")
    if hole.kind == "inside" and rng.random() < unfinished:
        line = closers_of(line)
    if below and rng.random() < unfinished:
        lines = below.split("\n")
        dropped = min(1 + int(rng.expovariate(1 / 4)), len(lines))
        below = "\n".join(lines[dropped:])
    return attrs.evolve(hole, suffix=line + newline + below)


def closers_of(line: str) -> str:
    """Return the brackets and quotes that the rest of a line begins with."""
    return line[: len(line) - len(line.lstrip(")]}\"'"))]


class HoleSampler:
    """Draws holes without end: a language by its share, a file by its length, a kind by its weight."""

    def __init__(self, files: list[File], shares: dict[str, float], weights: dict[str, float], seed: int) -> None:
        self._rng = random.Random(seed)
        self._kinds, self._odds = list(weights), list(weights.values())
        self._languages = [language for language in shares if any(f.language == language for f in files)]
        self._shares = [shares[language] for language in self._languages]
        self._files = {language: [f for f in files if f.language == language] for language in self._languages}
        self._lengths = {
            language: list(accumulate(min(len(f.text), 40_000) for f in chosen))
            for language, chosen in self._files.items()
        }

    def draw(self) -> TrainingHole:
        """Return the next hole."""
        while True:
            hole = self.hole_of(self.file())
            if hole is not None:
                return hole

    def file(self) -> File:
        """Return a random file."""
        language = self._rng.choices(self._languages, self._shares)[0]
        return self._rng.choices(self._files[language], cum_weights=self._lengths[language])[0]

    def hole_of(self, file: File) -> TrainingHole | None:
        """Cut a hole of a random kind at a random position; None if there is no such hole at that position."""
        return cut(file, self._rng.choices(self._kinds, self._odds)[0], self._rng)
