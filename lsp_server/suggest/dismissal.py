"""Suggestions that the user sent away: nothing is shown at such a place again until the text there changes."""

import attrs

from lsp_server.documents import Snapshot

_LINES_ABOVE = 3
_CHARACTERS = 400
_REMEMBERED = 64


@attrs.frozen
class _Place:
    """The text right before the cursor, the lines above among it, and the rest of its line.

    Not a line number: lines that come and go further up do not bring a suggestion back. And not the cursor's line
    alone: empty lines are all alike.
    """

    before: str
    after: str


class Dismissals:
    """Remembers the places by document.

    A change on the cursor's line, or within three lines above, is a change there; undone, the place is that of before.
    """

    def __init__(self) -> None:
        self._places: dict[str, dict[_Place, None]] = {}

    def note(self, snapshot: Snapshot, offset: int) -> None:
        """Show nothing at `offset` from now on."""
        places = self._places.setdefault(snapshot.uri, {})
        places[_place(snapshot, offset)] = None
        if len(places) > _REMEMBERED:
            del places[next(iter(places))]

    def holds(self, snapshot: Snapshot, offset: int) -> bool:
        """Return whether a suggestion was dismissed at `offset`, and the text there is still the same."""
        places = self._places.get(snapshot.uri)
        return places is not None and _place(snapshot, offset) in places

    def forget(self, uri: str) -> None:
        """Let go of a closed document."""
        self._places.pop(uri, None)


def _place(snapshot: Snapshot, offset: int) -> _Place:
    source = snapshot.source
    line = source.lines.at(offset)
    start = max(source.lines.start(max(line - _LINES_ABOVE, 0)), offset - _CHARACTERS)
    return _Place(source.text[start:offset], source.text[offset : source.line_end(line)][:_CHARACTERS])
