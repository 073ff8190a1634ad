"""Typing along a suggestion: its rest is shown without asking the engine again."""

from collections.abc import Sequence

import attrs

from lsp_server.documents.store import Snapshot
from lsp_server.languages.brackets import balance
from lsp_server.languages.language import BRACKETS


@attrs.frozen
class _LastSuggestions:
    """The texts that were suggested last, and the document's text before and after their place."""

    before: str
    after: str
    texts: tuple[str, ...]


class Reuse:
    """Remembers the last suggestions of each document, by URI."""

    def __init__(self) -> None:
        self._last: dict[str, _LastSuggestions] = {}

    def remember(self, snapshot: Snapshot, offset: int, texts: Sequence[str]) -> None:
        """Note that `texts` were suggested at `offset`. They replace the document's earlier ones."""
        text = snapshot.text
        self._last[snapshot.uri] = _LastSuggestions(text[:offset], text[offset:], tuple(texts))

    def forget(self, uri: str) -> None:
        """Drop the suggestions of a document."""
        self._last.pop(uri, None)

    def follow(self, snapshot: Snapshot, offset: int) -> list[str]:
        """Return the rests of the suggestions if the user only typed along them, or back, else [].

        The text before their place and after the cursor must be unchanged, except for brackets and quotes that the
        editor closed by itself. A suggestion then ends where it would close them.
        """
        last = self._last.get(snapshot.uri)
        text = snapshot.text
        if last is None or not text.startswith(last.before) or not text.endswith(last.after):
            return []
        start, end = len(last.before), len(text) - len(last.after)
        if not start <= offset <= end:
            return []
        typed, closed = text[start:offset], text[offset:end]
        rests: list[str] = []
        for suggestion in last.texts:
            if suggestion.startswith(typed):
                rest = suggestion[len(typed) :]
                if closed:
                    rest = _up_to_closed(rest, typed, closed, snapshot)
                if rest and rest not in rests:
                    rests.append(rest)
        return rests


def _up_to_closed(rest: str, typed: str, closed: str, snapshot: Snapshot) -> str:
    """Return `rest` up to where it closes what `closed` already closes; "" when the editor did not insert `closed`.

    A start of a line may close nothing: then all of it fits inside. Return between two braces puts the closing one on a
    line of its own.
    """
    language = snapshot.language
    opened = balance(typed, language)
    if closed.lstrip() != opened.quote + opened.closing() or not closed.strip():
        return ""
    inside = balance(rest, language, opened.quote)
    if opened.quote:
        return rest[: inside.quote_closed]
    if not inside.unmatched:
        return rest
    if inside.unmatched[0].char != BRACKETS[opened.opened[-1].char]:
        return ""
    inner = rest[: inside.unmatched[0].index]
    return inner if closed[0] == closed.lstrip()[0] else inner.rstrip()
