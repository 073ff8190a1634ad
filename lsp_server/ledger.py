"""Where a session's counts wait for the user's statistics file, so that no keystroke ever waits for the disk."""

import asyncio
import logging
from contextlib import suppress

from engine.errors import MidspanError
from engine.usage_file import StatisticsFile, Tallies, Tally, row_of_today

_logger = logging.getLogger(__name__)

FLUSH_S = 5.0


class Ledger:
    """Collects tallies and appends them to `file` every few seconds. A disk that refuses costs one log line."""

    def __init__(self, file: StatisticsFile) -> None:
        self._file = file
        self._waiting: Tallies = {}
        self._closing = asyncio.Event()
        self._flushing: asyncio.Task[None] | None = None
        self._told = False

    def add(self, language: str, tally: Tally) -> None:
        """Count `tally` for a language, by its id, today."""
        self._put({row_of_today(language): tally})
        if self._flushing is None:
            self._flushing = asyncio.create_task(self._flush())

    async def close(self) -> None:
        """Write what still waits."""
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
            # They go with the next ones: a disk that is full now may have room later.
            self._put(tallies)
            if not self._told:
                self._told = True
                _logger.warning("nothing is counted for `midspan stats`: %s", error)
        else:
            self._told = False
