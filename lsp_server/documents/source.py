"""The immutable contents of one version of a document: its text, bytes and line table."""

import attrs
import tree_sitter

from lsp_server.documents.lines import Lines
from lsp_server.documents.utf8 import characters_in, encoded, utf8_length


@attrs.frozen
class Place:
    """A place between two characters, counted in characters and in UTF-8 bytes."""

    offset: int
    byte: int


_START = Place(0, 0)


@attrs.frozen
class Source:
    """One version of a document. Offsets count Python characters, and bytes count UTF-8, from the start of the text.

    `data` is the text in UTF-8, for the parser. Each edit splices it: that is faster than encoding a long text again.
    `edited` is the place of the last edit: what is asked about is mostly near it, and far from the start of a line that
    has a million characters. `is_wide` says that a character of the text may need two units of UTF-16.
    """

    text: str
    data: bytes
    lines: Lines
    edited: Place = _START
    is_wide: bool = False

    @classmethod
    def of(cls, text: str) -> "Source":
        """Return the source of a text."""
        return cls(text, encoded(text), Lines.of(text), is_wide=_is_wide(text))

    def replaced(self, start: int, end: int, new: str) -> "Source":
        """Return the source after `text[start:end]` became `new`."""
        first = self.byte_at(start)
        last = first + utf8_length(self.text[start:end])
        return Source(
            self.text[:start] + new + self.text[end:],
            self.data[:first] + encoded(new) + self.data[last:],
            self.lines.replaced(self.text, start, end, new),
            Place(start, first),
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
        near, edited = Place(self.lines.start(line), self.lines.byte_start(line)), self.edited
        if abs(edited.offset - offset) < offset - near.offset:
            near = edited
        if offset < near.offset:
            return near.byte - utf8_length(self.text[offset : near.offset])
        return near.byte + utf8_length(self.text[near.offset : offset])

    def offset_of_byte(self, byte: int) -> int:
        """Return the offset of the character that contains `byte`."""
        if self.text.isascii():
            return byte
        line = self.lines.at_byte(byte)
        near, edited = Place(self.lines.start(line), self.lines.byte_start(line)), self.edited
        if abs(edited.byte - byte) < byte - near.byte:
            near = edited
        if byte < near.byte:
            begun = characters_in(self.data[byte + 1 : near.byte])
            return near.offset - begun - 1
        return near.offset + characters_in(self.data[near.byte : byte + 1]) - (byte < len(self.data))

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
        """The document's line end, taken from its first line."""
        first = self.text[self.line_end(0) : self.line_stop(0)]
        return first if first == "\r\n" else "\n"


@attrs.frozen
class SourceEdit:
    """An edit as tree-sitter notes it in a tree: where the text differs, in bytes, and in rows and columns."""

    start: int
    old_end: int
    new_end: int
    start_point: tree_sitter.Point
    old_end_point: tree_sitter.Point
    new_end_point: tree_sitter.Point

    @classmethod
    def between(cls, old: Source, new: Source, start: int, old_end: int, new_end: int) -> "SourceEdit":
        """Return the edit of the characters `old[start:old_end]` to `new[start:new_end]`."""
        return cls(
            old.byte_at(start),
            old.byte_at(old_end),
            new.byte_at(new_end),
            old.point_at(start),
            old.point_at(old_end),
            new.point_at(new_end),
        )

    def note_in(self, tree: tree_sitter.Tree) -> None:
        """Note the edit in a tree, which changes it; nothing is parsed."""
        points = self.start_point, self.old_end_point, self.new_end_point
        tree.edit(self.start, self.old_end, self.new_end, *points)


def _is_wide(text: str) -> bool:
    return not text.isascii() and len(text.encode("utf-16-le", "surrogatepass")) != 2 * len(text)
