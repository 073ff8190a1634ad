"""What became of each suggestion: shown, accepted whole or in part, dismissed; each is counted once."""

import attrs

from engine.usage_file import Tally
from lsp_server.engine_link.status import Counts
from lsp_server.ledger import Ledger
from lsp_server.messages import OfferTag

_REMEMBERED = 256
_MOST_CHARACTERS = 100_000


@attrs.define
class _Offer:
    """`taken` is how far into its text the offer was accepted so far, in characters."""

    shown: bool = False
    accepted: bool = False
    partial: bool = False
    taken: int = 0


class Offers:
    """Counts for the status of this session and, by language, for the user's statistics.

    An offer is one answer of the engine; typing along it shows the rest of the same offer. Each item that is sent has a
    `OfferTag`, which comes back with whatever the editor tells about it.
    """

    def __init__(self, counts: Counts, ledger: Ledger) -> None:
        self._counts = counts
        self._ledger = ledger
        self._known: dict[int, _Offer] = {}
        self._made = 0
        self._editor_tells = False

    def make(self) -> int:
        """Return the number of a new offer."""
        self._made += 1
        return self._made

    def answered(self, mark: OfferTag) -> None:
        """Note that an item was sent: it counts as shown, unless the editor is one that tells what it shows."""
        if not self._editor_tells:
            self._show(mark)

    def shown(self, mark: OfferTag) -> None:
        """Note that the editor says it shows an item."""
        self._editor_tells = True
        self._show(mark)

    def accepted(self, mark: OfferTag) -> None:
        """Note that the user took all of an item."""
        offer = self._offer(mark)
        if not offer.accepted:
            offer.accepted = True
            self._counts.accepted += 1
            self._ledger.add(mark.language, Tally(accepted=1))
        self._keep(offer, mark, mark.characters)

    def partly_accepted(self, mark: OfferTag, characters: int) -> None:
        """Note that the user took the first `characters` of an item, counted from the item's start."""
        offer = self._offer(mark)
        if not offer.partial:
            offer.partial = True
            self._counts.partial += 1
            self._ledger.add(mark.language, Tally(partial=1))
        self._keep(offer, mark, min(characters, mark.characters))

    def dismissed(self, language: str) -> None:
        """Note that the user sent a suggestion away."""
        self._counts.dismissed += 1
        self._ledger.add(language, Tally(dismissed=1))

    def _show(self, mark: OfferTag) -> None:
        offer = self._offer(mark)
        if not offer.shown:
            offer.shown = True
            self._counts.shown += 1
            self._ledger.add(mark.language, Tally(shown=1))

    def _keep(self, offer: _Offer, mark: OfferTag, characters: int) -> None:
        # An editor may tell of parts first and then of the whole: no character is counted twice.
        end = mark.start + characters
        fresh = end - max(mark.start, offer.taken)
        offer.taken = max(offer.taken, end)
        if 0 < fresh <= _MOST_CHARACTERS:
            self._ledger.add(mark.language, Tally(characters=fresh))

    def _offer(self, mark: OfferTag) -> _Offer:
        offer = self._known.setdefault(mark.offer, _Offer())
        if len(self._known) > _REMEMBERED:
            del self._known[next(iter(self._known))]
        return offer
