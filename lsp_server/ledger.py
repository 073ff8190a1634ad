"""Counts that wait to be written to the user's statistics file, so that no keystroke waits for the disk."""

import asyncio
import logging
from contextlib import suppress

from engine.errors import MidspanError
from engine.usage_file import StatisticsFile, Tallies, Tally, row_of_today

_logger = logging.getLogger(__name__)

FLUSH_S = 5.0


class Ledger:
    """Collects tallies and appends them to `file` every few seconds. If the disk refuses, one line is logged."""

    def __init__(self, file: StatisticsFile) -> None:
        self._file = file
        self._waiting: Tallies = {}
        self._closing = asyncio.Event()
        self._flushing: asyncio.Task[None] | None = None
        self._warned = False

    def add(self, language: str, tally: Tally) -> None:
        """Add `tally` to today's counts of a language, by its id."""
        self._put({row_of_today(language): tally})
        if self._flushing is None:
            self._flushing = asyncio.create_task(self._flush())

    async def close(self) -> None:
        """Write the waiting counts."""
        self._closing.set()
        if self._flushing is not None:
            await asyncio.wait({self._flushing})

    def _put(self, tallies: Tallies) -> None:
        for row, tally in tallies.items():
            self._waiting[row] = self._waiting.get(row, Tally()) + tally

    async def _flush(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(FLUSH_S):
                await self._closing.wait()
        self._flushing = None
        tallies, self._waiting = self._waiting, {}
        try:
            await asyncio.to_thread(self._file.append, tallies)
        except MidspanError as error:
            # They are written with the next ones: a full disk may have room later.
            self._put(tallies)
            if not self._warned:
                self._warned = True
                _logger.warning("nothing is counted for `midspan stats`: %s", error)
        else:
            self._warned = False
