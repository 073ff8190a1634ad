"""The edits of one file, and what was left out of them."""

import hashlib
from collections.abc import Iterable

import attrs


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
    """A place that fits the pattern and was left out; `reason` is a phrase."""

    span: Span
    reason: str


@attrs.frozen
class FileEdit:
    """The edits of one file, in their order and apart from each other, with its places and what was left out.

    `digest` names the text that the edits are for, see `digest_of`. `has_errors` says that a rule was applied to a text
    with syntax errors. `unknown` has the names that the edits use, and that nothing in the file defines or imports.
    """

    path: str
    digest: str = ""
    edits: tuple[TextEdit, ...] = ()
    places: tuple[Span, ...] = ()
    left_out: tuple[Omission, ...] = ()
    has_errors: bool = False
    unknown: tuple[str, ...] = ()

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
