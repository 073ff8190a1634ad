"""One version of a document's text: its characters, its bytes in UTF-8, and its lines."""

import re
from array import array
from bisect import bisect_right
from collections.abc import Iterable
from itertools import accumulate, pairwise

import attrs
import tree_sitter

_CONTINUING = bytes(range(0x80, 0xC0))
"""The bytes that begin no character."""
_LINE_END = re.compile("\r\n|\r|\n")


def encoded(text: str) -> bytes:
    """Return `text` in UTF-8, halves of surrogate pairs included."""
    return text.encode("utf-8", "surrogatepass")


def normalize_newlines(text: str) -> str:
    """Return `text` with "\\n" line ends, on which models are trained, and "?" for what UTF-8 cannot encode."""
    return text.replace("\r\n", "\n").encode("utf-8", "replace").decode("utf-8")


def utf8_length(text: str) -> int:
    """Return the length of `text` in UTF-8 bytes."""
    return len(text) if text.isascii() else len(encoded(text))


def characters_in(data: bytes) -> int:
    """Return how many characters begin in `data`. No loop in Python: lines may have millions of bytes."""
    return len(data) if data.isascii() else len(data.translate(None, _CONTINUING))


@attrs.frozen
class Lines:
    """An immutable table of a text's line starts, in characters and in UTF-8 bytes.

    Lines end with "\\n", "\\r\\n" or "\\r", as in LSP, unless `newline_only`. Each key press moves all lines
    below it. To avoid rewriting thousands of entries, the lines after `pivot` have a pending shift. While the edits
    stay on one line, all versions share the arrays.
    """

    _chars: "array[int]"
    _bytes: "array[int]"
    _pivot: int = 0
    _char_shift: int = 0
    _byte_shift: int = 0
    rows_differ: bool = False
    """Whether the text ever had a lone "\\r". Then tree-sitter's rows, which end only with "\\n", are not our lines."""
    newline_only: bool = False
    """Whether only "\\n" ends a line, as in editors for which "\\r" is a character like others."""

    @classmethod
    def of(cls, text: str, newline_only: bool = False) -> "Lines":
        """Return the table of a text."""
        chars, has_lone_cr = (_starts_after(text.split("\n")), False) if newline_only else _line_starts(text)
        if text.isascii():
            return cls(chars, chars, rows_differ=has_lone_cr, newline_only=newline_only)
        if not has_lone_cr:
            return cls(chars, _starts_after(encoded(text).split(b"\n")), newline_only=newline_only)
        ends = accumulate(utf8_length(text[first:end]) for first, end in pairwise([*chars, len(text)]))
        return cls(chars, array("q", [0, *ends])[: len(chars)], rows_differ=True)

    def __len__(self) -> int:
        return len(self._chars)

    def start(self, line: int) -> int:
        """Return the character at which `line` starts."""
        return self._chars[line] + (self._char_shift if line > self._pivot else 0)

    def byte_start(self, line: int) -> int:
        """Return the byte at which `line` starts."""
        return self._bytes[line] + (self._byte_shift if line > self._pivot else 0)

    def at(self, offset: int) -> int:
        """Return the line that contains the character `offset`. The end of the text is on the last line."""
        return self._search(self._chars, self._char_shift, offset)

    def at_byte(self, byte: int) -> int:
        """Return the line that contains `byte`."""
        return self._search(self._bytes, self._byte_shift, byte)

    def _search(self, starts: "array[int]", shift: int, value: int) -> int:
        below = self._pivot + 1
        if below < len(starts) and value >= starts[below] + shift:
            return bisect_right(starts, value - shift, lo=below) - 1
        return bisect_right(starts, value, hi=min(below, len(starts))) - 1

    def replaced(self, old: str, start: int, end: int, new: str) -> "Lines":
        """Return the table after `old[start:end]` became `new`."""
        first, last = self.at(start), self.at(end)
        removed = old[start:end]
        char_growth = len(new) - len(removed)
        byte_growth = utf8_length(new) - utf8_length(removed)
        # With one character on each side: an edit between "\r" and "\n" makes or breaks a line end.
        touched = removed + new + old[start - 1 : start] + old[end : end + 1]
        if first == last and "\n" not in touched and "\r" not in touched:
            return self._moved_to(first)._shifted(char_growth, byte_growth)
        top, bottom = max(first - 1, 0), last + 2
        char_top, byte_top = self.start(top), self.byte_start(top)
        char_end = self.start(bottom) if bottom < len(self) else len(old)
        piece = old[char_top:start] + new + old[end:char_end]
        new_lines = Lines.of(piece, self.newline_only)
        # If the piece ends with a line end, its table has one entry too many: the start of the line below.
        keep = len(new_lines) if bottom >= len(self) else len(new_lines) - 1
        settled = self._moved_to(top)
        chars = settled._chars[: top + 1]
        byte_starts = settled._bytes[: top + 1]
        chars.extend(char_top + value for value in new_lines._chars[1:keep])
        byte_starts.extend(byte_top + value for value in new_lines._bytes[1:keep])
        pivot = len(chars) - 1
        settled = settled._moved_to(bottom - 1) if bottom < len(self) else settled
        chars.extend(settled._chars[bottom:])
        byte_starts.extend(settled._bytes[bottom:])
        return Lines(
            chars,
            byte_starts,
            pivot,
            settled._char_shift + char_growth,
            settled._byte_shift + byte_growth,
            self.rows_differ or new_lines.rows_differ,
            self.newline_only,
        )

    def _shifted(self, char_growth: int, byte_growth: int) -> "Lines":
        return attrs.evolve(self, char_shift=self._char_shift + char_growth, byte_shift=self._byte_shift + byte_growth)

    def _moved_to(self, pivot: int) -> "Lines":
        """Return an equal table whose pending shift starts after `pivot`."""
        if pivot == self._pivot:
            return self
        chars = _settled(self._chars, self._pivot, pivot, self._char_shift)
        byte_starts = _settled(self._bytes, self._pivot, pivot, self._byte_shift)
        return attrs.evolve(self, chars=chars, bytes=byte_starts, pivot=pivot)


def _starts_after(pieces: Iterable[str] | Iterable[bytes]) -> "array[int]":
    """Return where the pieces of a text start that "\\n" separates."""
    starts = array("q", accumulate((len(piece) + 1 for piece in pieces), initial=0))
    del starts[-1]
    return starts


def _line_starts(text: str) -> tuple["array[int]", bool]:
    """Return the characters at which lines start, and whether one of the line ends is a lone "\\r"."""
    if text.count("\r") == text.count("\r\n"):
        return _starts_after(text.split("\n")), False
    return array("q", [0, *(match.end() for match in _LINE_END.finditer(text))]), True


def _settled(starts: "array[int]", old_pivot: int, new_pivot: int, shift: int) -> "array[int]":
    """Return a copy of `starts` for another pivot: the shift of the entries between the pivots is added, or undone."""
    low, high = min(old_pivot, new_pivot) + 1, max(old_pivot, new_pivot) + 1
    change = shift if new_pivot > old_pivot else -shift
    settled = starts[:]
    settled[low:high] = array("q", [value + change for value in starts[low:high]])
    return settled


@attrs.frozen
class Offsets:
    """A position between two characters, counted in characters and in UTF-8 bytes."""

    char: int
    byte: int


_START = Offsets(0, 0)


@attrs.frozen
class Source:
    """One version of a document. Offsets count Python characters, and bytes count UTF-8, from the start of the text.

    `data` is the text in UTF-8, for the parser. Each edit splices it: that is faster than encoding a long text again.
    `edited` is where the last edit began: what is asked about is mostly near it, and far from the start of a line that
    has a million characters. `is_wide` says that a character of the text may need two units of UTF-16.
    """

    text: str
    data: bytes
    lines: Lines
    edited: Offsets = _START
    is_wide: bool = False

    @classmethod
    def of(cls, text: str, newline_only: bool = False) -> "Source":
        """Return the source of a text."""
        return cls(text, encoded(text), Lines.of(text, newline_only), is_wide=_is_wide(text))

    def replaced(self, start: int, end: int, new: str) -> "Source":
        """Return the source after `text[start:end]` became `new`."""
        first = self.byte_at(start)
        last = first + utf8_length(self.text[start:end])
        return Source(
            self.text[:start] + new + self.text[end:],
            self.data[:first] + encoded(new) + self.data[last:],
            self.lines.replaced(self.text, start, end, new),
            Offsets(start, first),
            self.is_wide or _is_wide(new),
        )

    def line_end(self, line: int) -> int:
        """Return the offset just before the line's "\\n", "\\r\\n" or "\\r"."""
        end = self.line_stop(line)
        start = self.lines.start(line)
        if end > start and self.text[end - 1] == "\n":
            end -= 1
        if end > start and self.text[end - 1] == "\r":
            end -= 1
        return end

    def last_column(self, line: int) -> int:
        """Return the last offset that the editor may mean by a column of the line."""
        if not self.lines.newline_only:
            return self.line_end(line)
        stop = self.line_stop(line)
        return stop - (stop > self.lines.start(line) and self.text[stop - 1] == "\n")

    def line_stop(self, line: int) -> int:
        """Return the offset where the next line starts."""
        return self.lines.start(line + 1) if line + 1 < len(self.lines) else len(self.text)

    def line_text(self, line: int) -> str:
        """Return a line without its line end."""
        return self.text[self.lines.start(line) : self.line_end(line)]

    def byte_at(self, offset: int) -> int:
        """Return the byte at which the character `offset` starts."""
        if self.text.isascii():
            return offset
        line = self.lines.at(offset)
        near, edited = Offsets(self.lines.start(line), self.lines.byte_start(line)), self.edited
        if abs(edited.char - offset) < offset - near.char:
            near = edited
        if offset < near.char:
            return near.byte - utf8_length(self.text[offset : near.char])
        return near.byte + utf8_length(self.text[near.char : offset])

    def offset_of_byte(self, byte: int) -> int:
        """Return the offset of the character that contains `byte`."""
        if self.text.isascii():
            return byte
        line = self.lines.at_byte(byte)
        near, edited = Offsets(self.lines.start(line), self.lines.byte_start(line)), self.edited
        if abs(edited.byte - byte) < byte - near.byte:
            near = edited
        if byte < near.byte:
            begun = characters_in(self.data[byte + 1 : near.byte])
            return near.char - begun - 1
        return near.char + characters_in(self.data[near.byte : byte + 1]) - (byte < len(self.data))

    def point_at(self, offset: int) -> tree_sitter.Point:
        """Return tree-sitter's row and column in bytes. Its rows end only with "\\n"."""
        if self.lines.rows_differ:
            row_start = self.text.rfind("\n", 0, offset) + 1
            row = self.text.count("\n", 0, offset)
            return tree_sitter.Point(row, utf8_length(self.text[row_start:offset]))
        line = self.lines.at(offset)
        return tree_sitter.Point(line, self.byte_at(offset) - self.lines.byte_start(line))

    @property
    def newline(self) -> str:
        """The line end that most of the lines have."""
        return "\r\n" if 2 * self.text.count("\r\n") > self.text.count("\n") else "\n"


def _is_wide(text: str) -> bool:
    return not text.isascii() and len(text.encode("utf-16-le", "surrogatepass")) != 2 * len(text)
