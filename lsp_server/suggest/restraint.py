"""Restraint: what the user did with the last suggestions decides what is shown next.

A wrong start raises the price for the rest of its line. A text that was ignored twice at a place, one that gives back
what the user just deleted, and one that only changes the formatting are not shown automatically.
"""

from collections.abc import Sequence

import attrs

from engine.protocol.price import Price
from lsp_server.documents.store import Snapshot
from lsp_server.suggest.dismissals import Dismissals
from lsp_server.suggest.unwanted import gives_back, only_formats

DOUBT = 1.5
"""After a wrong start, another wrong text on its line costs this many times as much."""
MOST_WRONG = 2
"""More wrong starts on a line than this do not raise the price further."""


@attrs.frozen
class _Shown:
    """The suggestion on the screen, from its first character at `origin` on; the user may have typed along it."""

    snapshot: Snapshot
    origin: int
    text: str

    def typed(self, text: str, offset: int) -> str | None:
        """Return what was typed at the suggestion's place, up to `offset`; None after any other change."""
        before, after = self.snapshot.text[: self.origin], self.snapshot.text[self.origin :]
        end = len(text) - len(after)
        if not self.origin <= offset <= end or not text.startswith(before) or not text.endswith(after):
            return None
        return text[self.origin : offset]

    def agreement(self, typed: str) -> int:
        """Return how many characters `typed` and the suggestion share at their start."""
        pairs = enumerate(zip(typed, self.text, strict=False))
        return next((index for index, (one, other) in pairs if one != other), min(len(typed), len(self.text)))

    def is_before_deletion(self, text: str) -> bool:
        """Return whether `text` is what is left after characters right before the suggestion's place were deleted."""
        after = self.snapshot.text[self.origin :]
        before = text[: len(text) - len(after)]
        return text.endswith(after) and self.snapshot.text.startswith(before) and len(before) < self.origin


@attrs.frozen
class _Line:
    """The cursor's line, and the offsets on it at which the user began to type something else than was shown."""

    number: int = -1
    wrong_at: tuple[int, ...] = ()


@attrs.frozen
class _Past:
    """A suggestion that the user typed past, in the document's text `text`. Until `place` they typed along it.

    It counts as ignored, unless the next edit deletes what was typed: that was a typo.
    """

    shown: _Shown
    text: str
    place: int


class Restraint:
    """Remembers the last suggestion of each document, and what the user did with those before it."""

    def __init__(self, doubt: float = DOUBT, most_wrong: int = MOST_WRONG) -> None:
        self._doubt, self._most_wrong = doubt, most_wrong
        self._dismissals = Dismissals()
        self._shown: dict[str, _Shown] = {}
        self._lines: dict[str, _Line] = {}
        self._past: dict[str, _Past] = {}

    def observe(self, snapshot: Snapshot, offset: int) -> None:
        """Note what became of the last suggestion, with the cursor at `offset` now. Call it before each new one."""
        uri, text, number = snapshot.uri, snapshot.text, snapshot.source.lines.at(offset)
        line = self._lines.get(uri, _Line())
        # To delete what was typed past a suggestion takes that back.
        wrong_at = tuple(place for place in line.wrong_at if place < offset) if line.number == number else ()
        self._settle(snapshot, offset)
        if (shown := self._shown.pop(uri, None)) is not None:
            typed = shown.typed(text, offset)
            if typed is None:
                if not shown.is_before_deletion(text):
                    self._ignore(shown)
            elif shown.text.startswith(typed):
                self._shown[uri] = shown
            elif not typed.startswith(shown.text):
                place = shown.origin + shown.agreement(typed)
                self._past[uri] = _Past(shown, text, place)
                if snapshot.source.lines.at(place) == number:
                    wrong_at = (*wrong_at, place)
        self._lines[uri] = _Line(number, wrong_at)

    def price(self, uri: str, price: Price) -> Price:
        """Return the price on the cursor's line: `price`, raised by the wrong starts there. What is free stays free."""
        wrong = len(self._lines.get(uri, _Line()).wrong_at)
        return price.raised(self._doubt ** min(wrong, self._most_wrong))

    def is_silent(self, snapshot: Snapshot, offset: int) -> bool:
        """Return whether nothing is shown at `offset`, because the user dismissed a suggestion there."""
        return self._dismissals.holds(snapshot, offset)

    def allows(self, snapshot: Snapshot, offset: int, text: str) -> bool:
        """Return whether `text` may be shown at `offset` to a user who did not ask for it."""
        return not only_formats(text) and self.keeps(snapshot, offset, text)

    def keeps(self, snapshot: Snapshot, offset: int, rest: str) -> bool:
        """Return whether `rest`, what is left of a suggestion on the screen, may stay there: also a last comma may."""
        return not (gives_back(snapshot, offset, rest) or self._dismissals.refuse(snapshot, offset, rest))

    def showed(self, snapshot: Snapshot, offset: int, text: str) -> None:
        """Note that `text` is on the screen at `offset`, after `observe`; "" if nothing is."""
        last = self._shown.pop(snapshot.uri, None)
        if not text:
            return
        shown = _Shown(snapshot, offset, text)
        typed = None if last is None else last.typed(snapshot.text, offset)
        if last is not None and typed is not None and len(typed) < len(last.text):
            whole = typed + text
            if whole.startswith(last.text) or last.text.startswith(whole):
                shown = attrs.evolve(last, text=whole)
        self._shown[snapshot.uri] = shown

    def dismissed(self, snapshot: Snapshot, offset: int, texts: Sequence[str]) -> None:
        """Note that the user dismissed `texts` at `offset`. Nothing is shown there until the text around it changes."""
        self._shown.pop(snapshot.uri, None)
        self._dismissals.note(snapshot, offset, texts)

    def forget(self, uri: str) -> None:
        """Drop a closed document."""
        self._dismissals.forget(uri)
        for of_document in (self._shown, self._lines, self._past):
            of_document.pop(uri, None)

    def _settle(self, snapshot: Snapshot, offset: int) -> None:
        """Count the suggestion that was typed past as ignored, unless this edit took that back."""
        past = self._past.get(snapshot.uri)
        if past is None or past.text == snapshot.text:
            return
        del self._past[snapshot.uri]
        if offset != past.place or not past.text.startswith(snapshot.text[:offset]):
            self._ignore(past.shown)

    def _ignore(self, shown: _Shown) -> None:
        self._dismissals.ignore(shown.snapshot, shown.origin, shown.text)
