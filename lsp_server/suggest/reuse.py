"""Typing along a suggestion: what is left of it, without asking the engine again."""

from collections.abc import Sequence

import attrs

from lsp_server.documents.store import Snapshot
from lsp_server.languages.brackets import balance
from lsp_server.languages.language import BRACKETS


@attrs.frozen
class _Shown:
    """The text on both sides of the place where `texts` were offered."""

    before: str
    after: str
    texts: tuple[str, ...]


class Reuse:
    """Remembers the last suggestions of each document, by URI."""

    def __init__(self) -> None:
        self._shown: dict[str, _Shown] = {}

    def remember(self, snapshot: Snapshot, offset: int, texts: Sequence[str]) -> None:
        """Note that `texts` were offered at `offset` of `snapshot`; they replace what was noted before."""
        text = snapshot.text
        self._shown[snapshot.uri] = _Shown(text[:offset], text[offset:], tuple(texts))

    def forget(self, uri: str) -> None:
        self._shown.pop(uri, None)

    def follow(self, snapshot: Snapshot, offset: int) -> list[str]:
        """Return what is left of the suggestions if the user only typed along them (or back), else [].

        Everything before the place and everything after the cursor must be as it was, but for brackets and quotes that
        the editor closed by itself: a suggestion then ends where those stand.
        """
        shown = self._shown.get(snapshot.uri)
        text = snapshot.text
        if shown is None or not text.startswith(shown.before) or not text.endswith(shown.after):
            return []
        start, stop = len(shown.before), len(text) - len(shown.after)
        if not start <= offset <= stop:
            return []
        typed, closed = text[start:offset], text[offset:stop]
        left: list[str] = []
        for suggestion in shown.texts:
            if suggestion.startswith(typed):
                rest = suggestion[len(typed) :]
                if closed:
                    rest = _up_to_closed(rest, typed, closed, snapshot)
                if rest and rest not in left:
                    left.append(rest)
        return left


def _up_to_closed(rest: str, typed: str, closed: str, snapshot: Snapshot) -> str:
    """Return `rest` up to where it closes what `closed` closes already; "" when `closed` is not the editor's doing.

    The start of a line may close nothing: then it is all inside. Return between two braces puts the closing one on a
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
