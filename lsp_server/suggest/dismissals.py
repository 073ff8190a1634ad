"""What the user dismissed or ignored stays hidden."""

from collections import Counter
from collections.abc import Sequence

import attrs

from lsp_server.documents.store import Snapshot

_LINES_ABOVE = 3
_MAX_CHARACTERS = 400
_MAX_PLACES = 64
_OFTEN_IGNORED = 2


@attrs.frozen
class _Surroundings:
    """The text right before a cursor, with the lines above, and the rest of the cursor's line.

    The line number is not part of it, so lines added or removed further up do not end a dismissal. The cursor's line
    alone would not do: all empty lines are equal.
    """

    before: str
    after: str


class Dismissals:
    """Remembers where the user dismissed suggestions. Nothing is suggested there until the text around it changes.

    A change on the cursor's line, or in the three lines above, ends a dismissal; undoing the change brings it back. A
    user who types along a dismissed suggestion does not get its rest either, only another text or a longer one.

    A text that the user ignored twice at a place is treated as dismissed; other texts may be suggested there.
    """

    def __init__(self) -> None:
        self._dismissed: dict[str, dict[_Surroundings, frozenset[str]]] = {}
        self._ignored: dict[str, Counter[tuple[_Surroundings, str]]] = {}

    def note(self, snapshot: Snapshot, offset: int, texts: Sequence[str]) -> None:
        """Note that the user dismissed `texts` at `offset`."""
        dismissed = self._dismissed.setdefault(snapshot.uri, {})
        dismissed[_surroundings(snapshot, offset)] = frozenset(texts)
        if len(dismissed) > _MAX_PLACES:
            del dismissed[next(iter(dismissed))]

    def ignore(self, snapshot: Snapshot, offset: int, text: str) -> None:
        """Note that the user saw `text` at `offset`, and typed something else or went away."""
        ignored = self._ignored.setdefault(snapshot.uri, Counter())
        seen = _surroundings(snapshot, offset), text
        # The last one counted is the last one forgotten.
        ignored[seen] = ignored.pop(seen, 0) + 1
        if len(ignored) > _MAX_PLACES:
            del ignored[next(iter(ignored))]

    def holds(self, snapshot: Snapshot, offset: int) -> bool:
        """Return whether a suggestion was dismissed at `offset`, and the text there is still the same."""
        dismissed = self._dismissed.get(snapshot.uri)
        return dismissed is not None and _surroundings(snapshot, offset) in dismissed

    def refuse(self, snapshot: Snapshot, offset: int, text: str) -> bool:
        """Return whether `text` at `offset` was ignored there twice, or is the rest of such a text or a dismissed one.

        The rest is what is left after typing along.
        """
        dismissed, ignored = self._dismissed.get(snapshot.uri, {}), self._ignored.get(snapshot.uri, Counter())
        texts = {text for _, text in ignored}.union(*dismissed.values())
        line_start = snapshot.source.lines.start(snapshot.source.lines.at(offset))
        # In a line of a million characters most of the starts are too far away for any of the texts.
        first = max(line_start, offset + len(text) - max(map(len, texts), default=0))
        for start in range(first, offset + 1):
            whole = snapshot.text[start:offset] + text
            # The text is compared first: the surroundings of each start would take most of a millisecond.
            if whole in texts:
                place = _surroundings(snapshot, start, offset)
                if whole in dismissed.get(place, ()) or ignored[place, whole] >= _OFTEN_IGNORED:
                    return True
        return False

    def forget(self, uri: str) -> None:
        """Drop a closed document."""
        self._dismissed.pop(uri, None)
        self._ignored.pop(uri, None)


def _surroundings(snapshot: Snapshot, offset: int, typed_to: int | None = None) -> _Surroundings:
    """Return the text around `offset`. `typed_to` is the cursor, if the user has typed since then."""
    source = snapshot.source
    line = source.lines.at(offset)
    start = max(source.lines.start(max(line - _LINES_ABOVE, 0)), offset - _MAX_CHARACTERS)
    cursor = offset if typed_to is None else typed_to
    return _Surroundings(source.text[start:offset], source.text[cursor : source.line_end(line)][:_MAX_CHARACTERS])
