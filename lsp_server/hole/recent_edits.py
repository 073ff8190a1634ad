"""The lines that the user edited last in each document, and which document was edited last."""

import attrs

_MAX_LINES = 6
"""Kept of each document; older ones are dropped."""
_SAME_PLACE = 12
"""Edits at most this many lines apart count as one."""


@attrs.define
class RecentEdits:
    """Line numbers count from 0, and move when lines are added or removed above them."""

    _lines: dict[str, list[int]] = attrs.field(factory=dict)

    def note(self, uri: str, first: int, removed: int, inserted: int) -> None:
        """Note an edit at line `first` that removed and inserted so many line breaks."""
        last_touched = first + removed
        moved = [
            line + inserted - removed if line > last_touched else min(line, first + inserted)
            for line in self._lines.pop(uri, [])
        ]
        edited = first + inserted
        kept = [line for line in moved if abs(line - edited) > _SAME_PLACE]
        # Inserted last again: the dict keeps the documents in the order of their last edits.
        self._lines[uri] = [*kept, edited][-_MAX_LINES:]

    def see(self, uri: str) -> None:
        """Note that a document was opened: the user looks at it, but has edited nothing yet."""
        self._lines[uri] = self._lines.pop(uri, [])

    def forget(self, uri: str) -> None:
        """Drop a closed document."""
        self._lines.pop(uri, None)

    def lines(self, uri: str) -> list[int]:
        """Return the edited lines, the latest first."""
        return self._lines.get(uri, [])[::-1]

    def newest_first(self) -> list[str]:
        """Return the documents by their last edit, or by when they were opened, the latest first."""
        return list(self._lines)[::-1]
