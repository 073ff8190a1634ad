"""Where the user has been editing: of each document the last few places, and which document came last."""

import attrs

_PLACES = 6
"""Kept of each document; a place further back is forgotten."""
_SAME_PLACE = 12
"""Lines: two edits no further apart are one place."""


@attrs.define
class RecentEdits:
    """Lines are counted from 0, and follow when lines come or go above them."""

    _places: dict[str, list[int]] = attrs.field(factory=dict)

    def note(self, uri: str, first: int, removed: int, inserted: int) -> None:
        """An edit at line `first` took `removed` line breaks away and brought `inserted`."""
        after = first + removed
        places = [
            line + inserted - removed if line > after else min(line, first + inserted)
            for line in self._places.pop(uri, [])
        ]
        now = first + inserted
        kept = [line for line in places if abs(line - now) > _SAME_PLACE]
        self._places[uri] = [*kept, now][-_PLACES:]  # put back last: the order is that of the documents' last edits

    def see(self, uri: str) -> None:
        """A document was opened: the user looks at it, though no place of it yet."""
        self._places[uri] = self._places.pop(uri, [])

    def forget(self, uri: str) -> None:
        self._places.pop(uri, None)

    def places(self, uri: str) -> list[int]:
        """Return the lines that were edited, the latest first."""
        return self._places.get(uri, [])[::-1]

    def newest_first(self) -> list[str]:
        """Return the documents by their last edit, or by when they were opened, the latest first."""
        return list(self._places)[::-1]
