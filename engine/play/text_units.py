"""A browser counts a text in UTF-16 units, this process in code points."""

import attrs

from engine.protocol.editor_messages import Position
from engine.protocol.lsp_messages import position_of


@attrs.frozen
class TextUnits:
    """Converts places in one text."""

    text: str

    @property
    def _is_plain(self) -> bool:
        return self.text.isascii() or max(self.text) <= "\uffff"

    def to_points(self, units: int) -> int:
        """Return the offset in code points; an offset beyond the text is its end."""
        if self._is_plain:
            return max(0, min(units, len(self.text)))
        before = self.text.encode("utf-16-le", "surrogatepass")[: 2 * max(0, units)]
        return len(before.decode("utf-16-le", "ignore"))

    def to_units(self, points: int) -> int:
        """Return the offset in UTF-16 units."""
        if self._is_plain:
            return points
        return len(self.text[:points].encode("utf-16-le", "surrogatepass")) // 2

    def position(self, points: int) -> Position:
        """Return the line and column of an offset in code points."""
        return position_of(self.text, points)

    def offset(self, position: Position) -> int:
        """Return the offset in code points of a line and column."""
        start = 0
        for _ in range(position.line):
            start = self.text.find("\n", start) + 1
        return start + position.character
