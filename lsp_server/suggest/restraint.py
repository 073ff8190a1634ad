"""Restraint: what the user did with the last suggestions decides what is shown next.

A wrong start raises the price for the rest of its line. A text that was ignored twice at a place, one that gives back
what the user just deleted, and one that only changes the formatting are not shown automatically. What the user
dismissed is not shown at all. An entry of the completion menu counts as text only where the user chose it.
"""

import re
from collections import Counter
from collections.abc import Sequence
from typing import Literal

import attrs

from engine.protocol.confidence import Price
from lsp_server.documents.edits import Lost
from lsp_server.documents.store import Snapshot
from lsp_server.hole.hole import Cursor

DOUBT = 1.5
"""After a wrong start, another wrong text on its line costs this many times as much."""
MOST_WRONG = 2
"""More wrong starts on a line than this do not raise the price further."""
_LINES_ABOVE = 3
_MAX_CHARACTERS = 400
_MAX_PLACES = 64
_OFTEN_IGNORED = 2
_CONTENT = re.compile(r"[^\s,;]")
_RETYPED = 2
"""Retyping that many deleted characters means that the user wants them back."""
Refusal = Literal["formats", "deleted", "dismissed", "ignored"]
"""Why a text is not shown unasked: it only formats, or gives back what the user deleted, dismissed or ignored twice."""


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
    """A suggestion that the user typed past, in the document's text `text`. Up to `parted_at` they typed along it.

    It counts as ignored, unless the next edit deletes what was typed: that was a typo.
    """

    shown: _Shown
    text: str
    parted_at: int


class Restraint:
    """Remembers the last suggestion of a document, and what the user did with those before it."""

    def __init__(self, doubt: float = DOUBT, most_wrong: int = MOST_WRONG) -> None:
        self._doubt, self._most_wrong = doubt, most_wrong
        self._dismissals = Dismissals()
        self._shown: _Shown | None = None
        self._line = _Line()
        self._past: _Past | None = None

    def observe(self, snapshot: Snapshot, offset: int) -> None:
        """Note what became of the last suggestion, with the cursor at `offset` now. Call it before each new one."""
        text, number, line = snapshot.text, snapshot.source.lines.at(offset), self._line
        # To delete what was typed past a suggestion takes that back.
        wrong_at = tuple(at for at in line.wrong_at if at < offset) if line.number == number else ()
        self._settle(snapshot, offset)
        shown, self._shown = self._shown, None
        if shown is not None:
            typed = shown.typed(text, offset)
            if typed is None:
                if not shown.is_before_deletion(text):
                    self._ignore(shown)
            elif shown.text.startswith(typed):
                self._shown = shown
            elif not typed.startswith(shown.text):
                parted_at = shown.origin + shown.agreement(typed)
                self._past = _Past(shown, text, parted_at)
                if snapshot.source.lines.at(parted_at) == number:
                    wrong_at = (*wrong_at, parted_at)
        self._line = _Line(number, wrong_at)

    def price(self, price: Price) -> Price:
        """Return the price on the cursor's line: `price`, raised by the wrong starts there. What is free stays free."""
        return price.raised(self._doubt ** min(len(self._line.wrong_at), self._most_wrong))

    def is_silent(self, snapshot: Snapshot, offset: int) -> bool:
        """Return whether nothing is shown at `offset`, because the user dismissed a suggestion there."""
        return self._dismissals.holds(snapshot, offset)

    def refusal(self, snapshot: Snapshot, offset: int, text: str) -> Refusal | None:
        """Return why `text` may not be shown at `offset` to a user who did not ask for it, or None if it may."""
        return "formats" if only_formats(text) else self.refusal_of_rest(snapshot, offset, text)

    def refusal_of_rest(self, snapshot: Snapshot, offset: int, rest: str) -> Refusal | None:
        """Return the same for what is left of a suggestion on the screen: there also a last comma may stay."""
        return "deleted" if gives_back(snapshot, offset, rest) else self._dismissals.refusal(snapshot, offset, rest)

    def showed(self, snapshot: Snapshot, offset: int, text: str) -> None:
        """Note that `text` is on the screen at `offset`, after `observe`; "" if nothing is."""
        last, self._shown = self._shown, None
        if not text:
            return
        shown = _Shown(snapshot, offset, text)
        typed = None if last is None else last.typed(snapshot.text, offset)
        if last is not None and typed is not None and len(typed) < len(last.text):
            whole = typed + text
            if whole.startswith(last.text) or last.text.startswith(whole):
                shown = attrs.evolve(last, text=whole)
        self._shown = shown

    def dismissed(self, snapshot: Snapshot, offset: int, texts: Sequence[str]) -> None:
        """Note that the user dismissed `texts` at `offset`. Nothing is shown there until the text around it changes."""
        self._shown = None
        self._dismissals.note(snapshot, offset, texts)

    def _settle(self, snapshot: Snapshot, offset: int) -> None:
        """Count the suggestion that was typed past as ignored, unless this edit took that back."""
        past = self._past
        if past is None or past.text == snapshot.text:
            return
        self._past = None
        if offset != past.parted_at or not past.text.startswith(snapshot.text[:offset]):
            self._ignore(past.shown)

    def _ignore(self, shown: _Shown) -> None:
        self._dismissals.ignore(shown.snapshot, shown.origin, shown.text)


@attrs.frozen
class _Surroundings:
    """The text right before a cursor, with the lines above, and the rest of the cursor's line.

    The line number is not part of it, so lines added or removed further up do not end a dismissal. The cursor's line
    alone would not do: all empty lines are equal.
    """

    before: str
    after: str


class Dismissals:
    """Remembers where the user dismissed suggestions in a document. Nothing is suggested there until the text changes.

    A change on the cursor's line, or in the three lines above, ends a dismissal; undoing the change brings it back. A
    user who types along a dismissed suggestion does not get its rest either, only another text or a longer one.

    A text that the user ignored twice at a place is treated as dismissed; other texts may be suggested there.
    """

    def __init__(self) -> None:
        self._dismissed: dict[_Surroundings, frozenset[str]] = {}
        self._ignored: Counter[tuple[_Surroundings, str]] = Counter()

    def note(self, snapshot: Snapshot, offset: int, texts: Sequence[str]) -> None:
        """Note that the user dismissed `texts` at `offset`."""
        self._dismissed[_surroundings(snapshot, offset)] = frozenset(texts)
        if len(self._dismissed) > _MAX_PLACES:
            del self._dismissed[next(iter(self._dismissed))]

    def ignore(self, snapshot: Snapshot, offset: int, text: str) -> None:
        """Note that the user saw `text` at `offset`, and typed something else or went away."""
        seen = _surroundings(snapshot, offset), text
        # The last one counted is the last one forgotten.
        self._ignored[seen] = self._ignored.pop(seen, 0) + 1
        if len(self._ignored) > _MAX_PLACES:
            del self._ignored[next(iter(self._ignored))]

    def holds(self, snapshot: Snapshot, offset: int) -> bool:
        """Return whether a suggestion was dismissed at `offset`, and the text there is still the same."""
        return bool(self._dismissed) and _surroundings(snapshot, offset) in self._dismissed

    def refusal(self, snapshot: Snapshot, offset: int, text: str) -> Refusal | None:
        """Return whether `text` at `offset` was ignored there twice, or is the rest of such a text or a dismissed one.

        The rest is what is left after typing along.
        """
        texts = {text for _, text in self._ignored}.union(*self._dismissed.values())
        line_start = snapshot.source.lines.start(snapshot.source.lines.at(offset))
        # In a line of a million characters most of the starts are too far away for any of the texts.
        first = max(line_start, offset + len(text) - max(map(len, texts), default=0))
        for start in range(first, offset + 1):
            whole = snapshot.text[start:offset] + text
            # The text is compared first: the surroundings of each start would take most of a millisecond.
            if whole in texts:
                around = _surroundings(snapshot, start, offset)
                if whole in self._dismissed.get(around, ()):
                    return "dismissed"
                if self._ignored[around, whole] >= _OFTEN_IGNORED:
                    return "ignored"
        return None


def _surroundings(snapshot: Snapshot, offset: int, typed_to: int | None = None) -> _Surroundings:
    """Return the text around `offset`. `typed_to` is the cursor, if the user has typed since then."""
    source = snapshot.source
    line = source.lines.at(offset)
    start = max(source.lines.start(max(line - _LINES_ABOVE, 0)), offset - _MAX_CHARACTERS)
    cursor = offset if typed_to is None else typed_to
    return _Surroundings(source.text[start:offset], source.text[cursor : source.line_end(line)][:_MAX_CHARACTERS])


def only_formats(text: str) -> bool:
    """Return whether `text` adds nothing but white space, commas and semicolons."""
    return _CONTENT.search(text) is None


def gives_back(snapshot: Snapshot, offset: int, text: str) -> bool:
    """Return whether `text` at `offset` gives back what the user just deleted or replaced there.

    A single deleted character was a typo, and does not count.
    """
    return any(_restores(text, lost) for lost in snapshot.deletions.lost_at(snapshot.text, offset))


def _restores(text: str, lost: Lost) -> bool:
    """Return whether `text` brings back all of `lost` or its first line; right after the deletion, also its start."""
    given, gone = text.strip(), lost.text.strip()
    retyped = len(lost.retyped.strip())
    if len(gone) + retyped <= 1 or not gone or retyped >= _RETYPED:
        return False
    if _begins_with(given, gone) or given.partition("\n")[0].rstrip() == gone.partition("\n")[0].rstrip():
        return True
    return not retyped and _begins_with(gone, given)


def _begins_with(text: str, start: str) -> bool:
    """Return whether `text` begins with `start`, which does not end inside a word of `text`."""
    return bool(start) and text.startswith(start) and not re.match(r"\w\w", text[len(start) - 1 :])


@attrs.define
class Menu:
    """The completion menu of a document: the entry that was selected first at a version, and whether another was since.

    An editor selects an entry of its own as soon as the menu opens, and again after each key. No request tells who
    selected the entry, but without a key only the user goes on to another one.
    """

    _version: int | None = None
    _entry: str = ""
    _has_moved: bool = False

    def is_chosen(self, snapshot: Snapshot, cursor: Cursor) -> bool:
        """Return whether the user chose the entry of `cursor`, which is selected at `snapshot`."""
        if self._version != snapshot.version:
            self._version, self._entry, self._has_moved = snapshot.version, cursor.inserted, False
        self._has_moved |= self._entry != cursor.inserted
        return self._has_moved
