"""A request for suggestions, and what an editor gets for it."""

from collections.abc import Callable, Sequence

import attrs

from engine.protocol.messages import Filled
from lsp_server.documents.store import Snapshot
from lsp_server.hole.cursor import Cursor
from lsp_server.settings import Settings
from lsp_server.suggest.gate import Presented
from lsp_server.suggest.pipeline import Plan, present
from lsp_server.suggest.reuse import Offer
from lsp_server.wire import OfferTag

MAX_SUGGESTIONS = 3
_PLAUSIBLE = 0.02
"""A further guess must be at least this many times as likely as the best one: drawn tokens may not fit together."""


@attrs.frozen
class Suggestion:
    """`text` is inserted at `cursor`; `tag` is what the editor sends back when the user takes it."""

    text: str
    cursor: Cursor
    tag: OfferTag


@attrs.frozen
class SuggestionRequest:
    """A suggestion request. A newer one from the same asker cancels it.

    `candidates` is 1 for an automatic request. When the user asks there are more, nothing is held back, not even by the
    gate, and the engine is asked again. What is on the screen stays the first, so that the editor goes on from there.
    If there is nothing to show, the user is told why.

    `waits`: an automatic request waits for an engine that starts, as long as nothing newer comes.
    """

    asker: str
    uri: str
    cursor: Callable[[Snapshot], Cursor]
    candidates: int = 1
    waits: bool = False

    @property
    def automatic(self) -> bool:
        return self.candidates == 1


def asked_for(plan: Plan, filled: Filled, settings: Settings) -> list[Presented]:
    """Return what a user who asks gets: first what would be shown anyway, then the guesses that the gate hides, the
    likeliest first: the tokens that are the likeliest one by one are not always the likeliest line.

    Of a guess there is the first line only: what is below it is hardly ever right.
    """
    sure = present(attrs.evolve(plan, settings=settings), filled)
    ungated = sorted(present(plan, filled), key=lambda each: each.confidence, reverse=True)
    least = _PLAUSIBLE * max((each.confidence for each in ungated), default=0.0)
    guesses = [
        attrs.evolve(each, text=each.text.partition("\n")[0].rstrip()) for each in ungated if each.confidence >= least
    ]
    shown = dict[str, Presented]()
    for each in (*sure, *guesses):
        shown.setdefault(each.text, each)
    shown.pop("", None)
    return list(shown.values())[:MAX_SUGGESTIONS]


def tagged(texts: list[str], cursor: Cursor, offer: Offer, confidences: Sequence[float | None]) -> list[Suggestion]:
    """Return the suggestions of an offer at `cursor`, each with how sure it is; None where that is not known."""
    start = cursor.offset - offer.offset
    language = cursor.snapshot.language.id
    tags = [
        OfferTag(offer.number, language, start, len(text), offer.source, confidence)
        for text, confidence in zip(texts, confidences, strict=True)
    ]
    return [Suggestion(text, cursor, tag) for text, tag in zip(texts, tags, strict=True)]
