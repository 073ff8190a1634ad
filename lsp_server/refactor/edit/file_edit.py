"""The edits of one file: applied, undone, or taken place by place."""

import bisect
import hashlib
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Generic, Literal, Protocol, TypeVar

import attrs

from lsp_server.documents.source import Source
from lsp_server.languages.language import Language, errors
from lsp_server.refactor.code.syntax import PARSE_SECONDS

_Place = TypeVar("_Place")
Step = Literal["same", "taken", "undone", "other"]
Doubt = Literal["", "doubtful", "wide"]
"""Why a place waits for the user: it may mean something else, or only the widest form of the rule fits it."""


@attrs.frozen
class TextEdit:
    """Replace a part of a file by `text`: UTF-8 bytes and characters from the start of the file."""

    start_byte: int
    end_byte: int
    start: int
    end: int
    text: str


@attrs.frozen
class Span:
    """A place: characters from the start of the file, and its first line, counted from 0."""

    start: int
    end: int
    line: int


@attrs.frozen
class Omission:
    """A place that fits the pattern and was left out; `reason` is a phrase, `doubt` says if a user may take it.

    `row` is its line where only "\\n" ends lines; None if that is the span's.
    """

    span: Span
    reason: str
    row: int | None = None
    doubt: Doubt = ""

    @classmethod
    def of(cls, source: Source, span: Span, reason: str, doubt: Doubt = "") -> "Omission":
        """Return the omission of a place of a text."""
        row = source.text.count("\n", 0, span.start) if source.lines.rows_differ else None
        return cls(span, reason, row, doubt)

    @property
    def phrase(self) -> str:
        """The reason as a command prints it."""
        return f"{self.doubt}: {self.reason}" if self.doubt else self.reason

    def line(self, newline_only: bool) -> int:
        """Return its line, as an editor counts lines."""
        return self.row if newline_only and self.row is not None else self.span.line


@attrs.frozen
class FileEdit:
    """The edits of one file, in their order and apart from each other, with its places and what was left out.

    `digest` names the text that the edits are for, see `digest_of`. `has_errors` says that a rule was applied to a text
    with syntax errors. `unknown` has the names that the edits use, and that nothing in the file defines or imports.
    `doubtful` are those of the places that may mean something else, each with why and its `doubt`.
    """

    path: str
    digest: str = ""
    edits: tuple[TextEdit, ...] = ()
    places: tuple[Span, ...] = ()
    left_out: tuple[Omission, ...] = ()
    has_errors: bool = False
    unknown: tuple[str, ...] = ()
    doubtful: tuple[Omission, ...] = ()

    @property
    def wide(self) -> int:
        """How many of the places only the widest form of a rule fits."""
        return sum(one.doubt == "wide" for one in self.doubtful)

    def applied(self, text: str) -> str:
        """Return the text after the edits."""
        return edited(text, self.edits)

    def inverse(self, text: str) -> "FileEdit":
        """Return the edits that turn the result of these edits of `text` back into it."""
        undone: list[TextEdit] = []
        grown = grown_bytes = 0
        for edit in self.edits:
            old = text[edit.start : edit.end]
            start, start_byte = edit.start + grown, edit.start_byte + grown_bytes
            size = len(edit.text.encode("utf-8", "surrogatepass"))
            undone.append(TextEdit(start_byte, start_byte + size, start, start + len(edit.text), old))
            grown += len(edit.text) - len(old)
            grown_bytes += size - (edit.end_byte - edit.start_byte)
        return FileEdit(self.path, digest_of(self.applied(text)), tuple(undone))


def edited(text: str, edits: Iterable[TextEdit], start: int = 0, end: int | None = None) -> str:
    """Return a text after edits, which are in their order and apart from each other.

    Only the part from `start` to `end` of the text before is returned; all edits are in it.
    """
    parts: list[str] = []
    for edit in edits:
        parts += [text[start : edit.start], edit.text]
        start = edit.end
    return "".join([*parts, text[start:end]])


def digest_of(text: str) -> str:
    """Return the SHA-256 of a text in UTF-8."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def counted(count: int, noun: str) -> str:
    """Return a number with its noun: "1 place", "2 places"."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def is_sound(text: str, language: Language, most: int) -> bool:
    """Return whether a text can be parsed in time, with at most so many syntax errors."""
    tree = language.parse(text.encode("utf-8", "surrogatepass"), None, PARSE_SECONDS)
    return tree is not None and len(errors(tree.root_node)) <= most


def sound_parts(places: Sequence[_Place], are_sound: Callable[[Sequence[_Place]], bool]) -> list[Sequence[_Place]]:
    """Return the parts of a list that are sound, each alone: together they may not be so.

    Halves are tried: a parse for each place would take long.
    """
    if not places:
        return []
    if are_sound(places):
        return [places]
    middle = len(places) // 2
    if not middle:
        return []
    return sound_parts(places[:middle], are_sound) + sound_parts(places[middle:], are_sound)


@attrs.frozen
class Replacement:
    """`text` takes the place of the characters from `start` to `end`."""

    start: int
    end: int
    text: str

    def moved(self, characters: int) -> "Replacement":
        """Return the same replacement in a text that grew before it."""
        return attrs.evolve(self, start=self.start + characters, end=self.end + characters)

    @property
    def growth(self) -> int:
        return len(self.text) - (self.end - self.start)

    def applied(self, text: str) -> str:
        """Return the text after it."""
        return text[: self.start] + self.text + text[self.end :]


@attrs.frozen
class Places:
    """One replacement for each outermost place, and those of imports, each in the order of the file."""

    places: tuple[Replacement, ...] = ()
    imports: tuple[Replacement, ...] = ()


def by_place(edit: FileEdit, text: str) -> Places:
    """Return the edits of a file by place. A place inside of another one belongs to it."""
    spans: list[Span] = []
    for span in sorted(edit.places, key=lambda one: (one.start, -one.end)):
        if not spans or span.start >= spans[-1].end:
            spans.append(span)
    places: list[Replacement] = []
    left: list[TextEdit] = []
    edits = deque(edit.edits)
    for span in spans:
        while edits and edits[0].end < span.start:
            left.append(edits.popleft())
        own: list[TextEdit] = []
        while edits and edits[0].start <= span.end:
            own.append(edits.popleft())
        if own:
            start, end = own[0].start, own[-1].end
            places.append(Replacement(start, end, edited(text, own, start, end)))
    return Places(tuple(places), tuple(Replacement(one.start, one.end, one.text) for one in (*left, *edits)))


class Ranged(Protocol):
    """What lies between two offsets."""

    @property
    def start(self) -> int: ...

    @property
    def end(self) -> int: ...


_Item = TypeVar("_Item", bound=Ranged)


@attrs.define
class Ranges(Generic[_Item]):
    """Items by their start. None is longer than `longest`, so what begins earlier than that cannot reach a range."""

    items: list[_Item] = attrs.field(factory=list)
    longest: int = 0

    def add(self, item: _Item) -> None:
        """Keep an item, after those with the same start."""
        bisect.insort_right(self.items, item, key=_start)
        self.longest = max(self.longest, item.end - item.start)

    def touching(self, start: int, end: int) -> list[_Item]:
        """Return the items that share an offset with a range, or end or begin at its ends, by their start."""
        first = bisect.bisect_left(self.items, start - self.longest, key=_start)
        last = bisect.bisect_right(self.items, end, key=_start)
        return [item for item in self.items[first:last] if item.end >= start]


def _start(item: Ranged) -> int:
    return item.start


@attrs.define
class PendingFile:
    """The places of `text` that are left. `before` is the text before the last one was taken, "" if none was."""

    text: str
    before: str
    _places: list[Replacement]
    _imports: list[Replacement]

    @classmethod
    def of(cls, text: str, places: Places) -> "PendingFile":
        return cls(text, "", list(places.places), list(places.imports))

    @property
    def count(self) -> int:
        """How many places are left. Imports follow the last place, and are not counted."""
        return len(self._places)

    def follow(self, text: str) -> Step:
        """Take the place whose edit makes the text that one. "undone": the last place that was taken is there again."""
        if text == self.text:
            return "same"
        for one in (*self._places, *self._imports):
            if len(self.text) + one.growth == len(text) and one.applied(self.text) == text:
                self._places = _without(self._places, one)
                self._imports = _without(self._imports, one)
                self.before, self.text = self.text, text
                return "taken"
        return "undone" if text == self.before else "other"

    def nearest(self, offset: int) -> Replacement | None:
        """Return the first place at or after an offset, else the first of the file, else an import."""
        below = next((one for one in self._places if one.end >= offset), None)
        return below or next(iter((*self._places, *self._imports)), None)


def _without(replacements: Sequence[Replacement], taken: Replacement) -> list[Replacement]:
    """Return the others as they are after one was taken."""
    return [one.moved(taken.growth) if one.start >= taken.end else one for one in replacements if one is not taken]
