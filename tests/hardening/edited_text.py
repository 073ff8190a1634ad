"""A document as LSP says: UTF-16 code units, and positions in them. Written apart from the server's own."""

import re
from array import array
from bisect import bisect_right
from functools import cached_property

import attrs

_LINE_END = re.compile("\r\n|\r|\n")
END = {"line": 2**31 - 1, "character": 0}


def units_of(text: str) -> str:
    """Return a text with a character for each UTF-16 code unit."""
    if text.isascii() or max(text) < "\U00010000":
        return text
    return "".join(map(chr, array("H", text.encode("utf-16-le", "surrogatepass"))))


def text_of(units: str) -> str:
    """Return the text of code units: two halves of a character become one."""
    return units.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


@attrs.frozen
class Position:
    """A line, and a column in UTF-16 code units. Both may lie outside of the text."""

    line: int
    character: int

    @property
    def json(self) -> dict[str, int]:
        return {"line": self.line, "character": self.character}


@attrs.frozen
class EditedText:
    """One version of a document."""

    units: str

    @classmethod
    def of(cls, text: str) -> "EditedText":
        return cls(units_of(text))

    @property
    def text(self) -> str:
        return text_of(self.units)

    @cached_property
    def lines(self) -> list[tuple[int, int]]:
        """Where each line starts, and where it ends before its line end."""
        starts, found = [0], list[tuple[int, int]]()
        for match in _LINE_END.finditer(self.units):
            found.append((starts[-1], match.start()))
            starts.append(match.end())
        return [*found, (starts[-1], len(self.units))]

    def offset(self, position: Position) -> int:
        """Return the unit at a position: a line's end past it, the text's end past that, a character's start in it."""
        lines = self.lines
        if position.line >= len(lines):
            return len(self.units)
        start, end = lines[position.line]
        at = min(start + position.character, end)
        return at - 1 if self._splits(at) else at

    def position(self, offset: int) -> Position:
        """Return the position of a unit; the one between "\\r" and "\\n" is that of the line's end."""
        line = bisect_right(self.lines, offset, key=lambda each: each[0]) - 1
        start, end = self.lines[line]
        return Position(line, min(offset, end) - start)

    def replaced(self, first: Position, last: Position, new: str) -> "EditedText":
        """Return the version after an edit."""
        start, end = sorted((self.offset(first), self.offset(last)))
        return EditedText(self.units[:start] + units_of(new) + self.units[end:])

    def _splits(self, at: int) -> bool:
        before, after = self.units[at - 1 : at], self.units[at : at + 1]
        return "\ud800" <= before <= "\udbff" and "\udc00" <= after <= "\udfff"
