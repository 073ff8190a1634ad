"""What becomes of the suggestions that are offered: counts for the status, and for the user's statistics."""

import asyncio
import logging
from contextlib import suppress

import attrs

from engine.errors import MidspanError
from engine.usage_file import StatisticsFile, Tallies, Tally, row_of_today, summed
from lsp_server.wire import OfferTag

_logger = logging.getLogger(__name__)

_FLUSH_S = 5.0
_MAX_OFFERS = 256
_MAX_CHARACTERS = 100_000


@attrs.define
class Counts:
    """The session's fills (`asked`), and its suggestions reused, shown, accepted, accepted in part and dismissed."""

    asked: int = 0
    reused: int = 0
    shown: int = 0
    accepted: int = 0
    partial: int = 0
    dismissed: int = 0


class Ledger:
    """Counts that wait to be written to the user's statistics file, so that no key press waits for the disk.

    They are appended to `file` every few seconds. If that fails, one line is logged.
    """

    def __init__(self, file: StatisticsFile) -> None:
        self._file = file
        self._waiting: Tallies = {}
        self._closing = asyncio.Event()
        self._flushing: asyncio.Task[None] | None = None
        self._warned = False
        self.is_kept = True
        """False: nothing is counted, as where a program asks and no user sees the answer."""

    def add(self, language: str, tally: Tally) -> None:
        """Add `tally` to today's counts of a language, by its id, if they are kept."""
        if self.is_kept:
            self._put({row_of_today(language): tally})
            self._begin()

    async def close(self) -> None:
        """Write the waiting counts."""
        self._closing.set()
        self._begin()
        if self._flushing is not None:
            await asyncio.wait({self._flushing})

    def _begin(self) -> None:
        if self._flushing is None and self._waiting:
            self._flushing = asyncio.create_task(self._flush())

    def _put(self, tallies: Tallies) -> None:
        self._waiting = summed([*self._waiting.items(), *tallies.items()])

    async def _flush(self) -> None:
        has_failed = False
        while self._waiting and not has_failed:
            with suppress(TimeoutError):
                async with asyncio.timeout(_FLUSH_S):
                    await self._closing.wait()
            tallies, self._waiting = self._waiting, {}
            try:
                await asyncio.to_thread(self._file.append, tallies)
            except MidspanError as error:
                # Keep them for the next time: a full disk may have room by then.
                self._put(tallies)
                if not self._warned:
                    _logger.warning("nothing is counted for `midspan stats`: %s", error)
                has_failed = True
            self._warned = has_failed
        self._flushing = None


@attrs.define
class _OfferState:
    """`taken`: how many characters of the offer's text the user has accepted so far."""

    shown: bool = False
    accepted: bool = False
    partial: bool = False
    taken: int = 0


class Offers:
    """Counts for the status of this session and, by language, for the user's statistics.

    An offer is one answer of the engine; while the user types along it, the rest is the same offer. Each item that is
    sent carries an `OfferTag`, which the editor sends back with what it reports about the item.
    """

    def __init__(self, counts: Counts, ledger: Ledger) -> None:
        self._counts = counts
        self._ledger = ledger
        self._states: dict[int, _OfferState] = {}
        self._made = 0
        self._editor_reports_shown = False

    def make(self) -> int:
        """Return the number of a new offer."""
        self._made += 1
        return self._made

    def answered(self, tag: OfferTag) -> None:
        """Note that an item was sent. It counts as shown, unless this editor reports what it shows."""
        if not self._editor_reports_shown:
            self._show(tag)

    def shown(self, tag: OfferTag) -> None:
        """Note that the editor shows an item."""
        self._editor_reports_shown = True
        self._show(tag)

    def accepted(self, tag: OfferTag) -> None:
        """Note that the user took a whole item."""
        state = self._state(tag)
        if not state.accepted:
            state.accepted = True
            self._counts.accepted += 1
            self._ledger.add(tag.language, Tally.of_accepted(tag.source))
        self._count_characters(state, tag, tag.characters)

    def partly_accepted(self, tag: OfferTag, characters: int) -> None:
        """Note that the user took the first `characters` of an item."""
        state = self._state(tag)
        if not state.partial:
            state.partial = True
            self._counts.partial += 1
            self._ledger.add(tag.language, Tally(partial=1))
        self._count_characters(state, tag, min(characters, tag.characters))

    def dismissed(self, language: str) -> None:
        """Note that the user dismissed a suggestion."""
        self._counts.dismissed += 1
        self._ledger.add(language, Tally(dismissed=1))

    def _show(self, tag: OfferTag) -> None:
        state = self._state(tag)
        if not state.shown:
            state.shown = True
            self._counts.shown += 1
            self._ledger.add(tag.language, Tally.of_shown(tag.source))

    def _count_characters(self, state: _OfferState, tag: OfferTag, characters: int) -> None:
        # An editor may report parts and then the whole. No character counts twice.
        end = tag.start + characters
        new = end - max(tag.start, state.taken)
        state.taken = max(state.taken, end)
        if 0 < new <= _MAX_CHARACTERS:
            self._ledger.add(tag.language, Tally(characters=new))

    def _state(self, tag: OfferTag) -> _OfferState:
        state = self._states.setdefault(tag.offer, _OfferState())
        if len(self._states) > _MAX_OFFERS:
            del self._states[next(iter(self._states))]
        return state
