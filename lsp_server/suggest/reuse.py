"""What was suggested stays on the screen while it is typed along, and comes back when that is deleted again."""

from collections.abc import Callable, Sequence

import attrs

from engine.protocol.messages import SourceName
from lsp_server.documents.store import Snapshot
from lsp_server.hole.hole import Cursor
from lsp_server.languages.language import BRACKETS, balance
from lsp_server.suggest.pipeline import Presented
from lsp_server.wire import OfferTag

_MAX_OFFERS = 8
"""Offers of a document. Each keeps the document's text."""


def text_between(before: str, after: str, text: str) -> str | None:
    """Return what `text` has between its start `before` and its end `after`; None if these are not its own."""
    fits = len(text) >= len(before) + len(after) and text.startswith(before) and text.endswith(after)
    return text[len(before) : len(text) - len(after)] if fits else None


@attrs.frozen
class Offer:
    """The texts that were suggested at a cursor, and the document's text before and after it.

    `number` counts offers. `starts` are those of the texts that are only the start of a line. `asked_at` is the
    cursor's offset when the engine was asked last. `source` gave most of the first text.
    """

    number: int
    before: str
    after: str
    texts: tuple[str, ...]
    starts: frozenset[str]
    asked_at: int
    source: SourceName

    @property
    def offset(self) -> int:
        """Where the texts begin."""
        return len(self.before)

    def rests(self, snapshot: Snapshot, offset: int) -> list[str]:
        """Return what is left of the texts at the cursor `offset` if the user only typed along them, else [].

        The text before their place and after the cursor must be unchanged, except for brackets and quotes that the
        editor closed by itself. Then a text ends where it would close them.
        """
        between, at = text_between(self.before, self.after, snapshot.text), offset - len(self.before)
        if between is None or not 0 <= at <= len(between):
            return []
        typed, closed = between[:at], between[at:]
        rests: list[str] = []
        for suggestion in self.texts:
            if suggestion.startswith(typed):
                rest = suggestion[len(typed) :]
                if closed:
                    rest = _up_to_closed(rest, typed, closed, snapshot)
                if rest and rest not in rests:
                    rests.append(rest)
        return rests

    def may_grow(self, rest: str, snapshot: Snapshot, offset: int) -> bool:
        """Return whether `rest` belongs to a start of a line, and the user typed along it since the engine was asked.

        The model knows one more character now, so it may be sure of more. Not at the key for which the editor closed a
        bracket by itself: it has taken the suggestion off the screen, and the sooner it is back the better.
        """
        typed, after = snapshot.text[self.offset : offset], snapshot.text[offset:]
        if typed[-1:] in BRACKETS and after.startswith(BRACKETS[typed[-1]]) and after != self.after:
            return False
        return offset > self.asked_at and typed + rest in self.starts


@attrs.frozen
class Suggestion:
    """`text` is inserted at `cursor`; `tag` is what the editor sends back when the user takes it."""

    text: str
    cursor: Cursor
    tag: OfferTag


@attrs.frozen
class Rest:
    """What is left of an offer's texts."""

    offer: Offer
    texts: list[str]


class Reuse:
    """Remembers the last offers of a document.

    A text that comes and goes while it is right is worse than none. So what is typed along stays on the screen to its
    last character, asking again may only lengthen it, and what is deleted again brings it back.
    """

    def __init__(self) -> None:
        self._offers: tuple[Offer, ...] = ()

    def remember(
        self, snapshot: Snapshot, offset: int, presented: Sequence[Presented], new_number: Callable[[], int]
    ) -> Offer:
        """Return the offer of these texts, one or more, at `offset`: a new one, or the one that the first lengthens."""
        known, texts = self._offers, tuple(each.text for each in presented)
        starts = [each.text for each in presented if each.is_start]
        after, source = snapshot.text[offset:], presented[0].source
        old = next((one for one in known if _lengthens(texts[0], one, snapshot, offset)), None)
        if old is None:
            number = new_number()
            offer = Offer(number, snapshot.text[:offset], after, texts, frozenset(starts), offset, source)
        else:
            typed = snapshot.text[old.offset : offset]
            wholes = tuple(typed + text for text in texts)
            wholes_of_starts = frozenset(typed + text for text in starts)
            offer = Offer(old.number, old.before, after, wholes, wholes_of_starts, offset, source)
            if old.after == after:  # The editor has closed no bracket meanwhile.
                known = tuple(one for one in known if one is not old)
        self._offers = (offer, *known)[:_MAX_OFFERS]
        return offer

    def follow(self, snapshot: Snapshot, offset: int) -> Rest | None:
        """Return what is left of the newest offer along which the user only typed, or deleted that again."""
        for offer in self._offers:
            if texts := offer.rests(snapshot, offset):
                return Rest(offer, texts)
        return None

    def clear(self) -> None:
        """Drop the offers: the user dismissed one, or another model, or other settings, may suggest something else."""
        self._offers = ()


def tagged(texts: list[str], cursor: Cursor, offer: Offer, confidences: Sequence[float | None]) -> list[Suggestion]:
    """Return the suggestions of an offer at `cursor`, each with how sure it is; None where that is not known."""
    start = cursor.offset - offer.offset
    language = cursor.snapshot.language.id
    tags = [
        OfferTag(offer.number, language, start, len(text), offer.source, confidence)
        for text, confidence in zip(texts, confidences, strict=True)
    ]
    return [Suggestion(text, cursor, tag) for text, tag in zip(texts, tags, strict=True)]


def longer(presented: Sequence[Presented], rest: Rest) -> list[Presented]:
    """Return the texts to show where the first text of `rest` is on the screen: those that lengthen it, else it."""
    shown = rest.texts[0]
    kept = [each for each in presented if each.text.startswith(shown)]
    return kept or [Presented(shown, is_start=True, confidence=0.0, source=rest.offer.source)]


def further(presented: Sequence[Presented], rest: Rest) -> list[Presented]:
    """Return the texts for a user who asks where those of `rest` are on the screen: these in their order, then others.

    An editor goes on from the text that it shows. It loses its place when that is not among the new ones.
    """
    found = {each.text: each for each in presented}
    starts, source = rest.offer.starts, rest.offer.source
    shown = {
        text: Presented(text, is_start=any(each.endswith(text) for each in starts), confidence=0.0, source=source)
        for text in rest.texts
    }
    return list({**shown, **found}.values())  # Each text has its place in `shown`, and what is known of it now.


def _lengthens(text: str, offer: Offer, snapshot: Snapshot, offset: int) -> bool:
    rests = offer.rests(snapshot, offset)
    return bool(rests) and text.startswith(rests[0])


def _up_to_closed(rest: str, typed: str, closed: str, snapshot: Snapshot) -> str:
    """Return `rest` up to where it closes what `closed` already closes; "" when the editor did not insert `closed`.

    A start of a line may close nothing: then all of it fits inside. The Return key between two braces puts the closing
    brace on a line of its own.
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
