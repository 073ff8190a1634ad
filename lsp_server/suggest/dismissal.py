"""Dismissed suggestions: nothing is suggested at such a place again until the text there changes.

A user who types along a dismissed suggestion does not get its rest either, only another text or a longer one.
"""

from collections.abc import Sequence

import attrs

from lsp_server.documents.store import Snapshot

_LINES_ABOVE = 3
_MAX_CHARACTERS = 400
_MAX_PLACES = 64


@attrs.frozen
class _Surroundings:
    """The text right before a cursor, with the lines above, and the rest of the cursor's line.

    No line number: lines added or removed further up do not bring a suggestion back. And not the cursor's line alone:
    all empty lines are alike.
    """

    before: str
    after: str


class Dismissals:
    """Remembers dismissed suggestions by document, and by the text around them.

    A change on the cursor's line, or in the three lines above, ends a dismissal; undoing the change brings it back.
    """

    def __init__(self) -> None:
        self._dismissed: dict[str, dict[_Surroundings, frozenset[str]]] = {}

    def note(self, snapshot: Snapshot, offset: int, texts: Sequence[str]) -> None:
        """Note that the user dismissed `texts` at `offset`."""
        dismissed = self._dismissed.setdefault(snapshot.uri, {})
        dismissed[_surroundings(snapshot, offset)] = frozenset(texts)
        if len(dismissed) > _MAX_PLACES:
            del dismissed[next(iter(dismissed))]

    def holds(self, snapshot: Snapshot, offset: int) -> bool:
        """Return whether a suggestion was dismissed at `offset`, and the text there is still the same."""
        dismissed = self._dismissed.get(snapshot.uri)
        return dismissed is not None and _surroundings(snapshot, offset) in dismissed

    def refuse(self, snapshot: Snapshot, offset: int, text: str) -> bool:
        """Return whether `text` at `offset` is the rest of a dismissed suggestion along which the user typed."""
        dismissed = self._dismissed.get(snapshot.uri, {})
        line_start = snapshot.source.lines.start(snapshot.source.lines.at(offset))
        return any(
            snapshot.text[start:offset] + text in dismissed.get(_surroundings(snapshot, start, offset), ())
            for start in range(line_start, offset if dismissed else line_start)
        )

    def forget(self, uri: str) -> None:
        """Drop a closed document."""
        self._dismissed.pop(uri, None)


def _surroundings(snapshot: Snapshot, offset: int, typed_to: int | None = None) -> _Surroundings:
    """Return the text around `offset`. `typed_to` is the cursor, if the user has typed since then."""
    source = snapshot.source
    line = source.lines.at(offset)
    start = max(source.lines.start(max(line - _LINES_ABOVE, 0)), offset - _MAX_CHARACTERS)
    cursor = offset if typed_to is None else typed_to
    return _Surroundings(source.text[start:offset], source.text[cursor : source.line_end(line)][:_MAX_CHARACTERS])
