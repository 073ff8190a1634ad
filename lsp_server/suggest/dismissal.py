"""Suggestions that the user sent away: nothing is shown at such a place again until the text there changes.

And who types along what was sent away is not shown the rest of it: only something else, or something longer.
"""

from collections.abc import Sequence

import attrs

from lsp_server.documents.store import Snapshot

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
        self._places: dict[str, dict[_Place, frozenset[str]]] = {}

    def note(self, snapshot: Snapshot, offset: int, texts: Sequence[str]) -> None:
        """Show nothing at `offset` from now on, where `texts` were shown."""
        places = self._places.setdefault(snapshot.uri, {})
        places[_place(snapshot, offset)] = frozenset(texts)
        if len(places) > _REMEMBERED:
            del places[next(iter(places))]

    def holds(self, snapshot: Snapshot, offset: int) -> bool:
        """Return whether a suggestion was dismissed at `offset`, and the text there is still the same."""
        places = self._places.get(snapshot.uri)
        return places is not None and _place(snapshot, offset) in places

    def refuse(self, snapshot: Snapshot, offset: int, text: str) -> bool:
        """Return whether `text` at `offset` is what is left of a dismissed suggestion after typing along it."""
        places = self._places.get(snapshot.uri, {})
        line_start = snapshot.source.lines.start(snapshot.source.lines.at(offset))
        return any(
            snapshot.text[start:offset] + text in places.get(_place(snapshot, start, offset), ())
            for start in range(line_start, offset if places else line_start)
        )

    def forget(self, uri: str) -> None:
        """Let go of a closed document."""
        self._places.pop(uri, None)


def _place(snapshot: Snapshot, offset: int, typed_to: int | None = None) -> _Place:
    """Return the place at `offset`; `typed_to` is the cursor where some of the line was typed since."""
    source = snapshot.source
    line = source.lines.at(offset)
    start = max(source.lines.start(max(line - _LINES_ABOVE, 0)), offset - _CHARACTERS)
    behind = offset if typed_to is None else typed_to
    return _Place(source.text[start:offset], source.text[behind : source.line_end(line)][:_CHARACTERS])
