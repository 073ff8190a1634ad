"""The edits of one file, its places, and what was left out."""

import hashlib
from collections.abc import Callable, Sequence
from typing import Literal, TypeVar

import attrs

from lsp_server.documents.source import Source
from lsp_server.documents.text_edit import TextEdit, edited
from lsp_server.languages.language import Language, errors
from lsp_server.refactor.code.syntax import PARSE_SECONDS

_Place = TypeVar("_Place")
Doubt = Literal["", "doubtful", "wide"]
"""Why a place waits for the user: it may mean something else, or only the widest form of the rule fits it."""


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
