"""A snooze: for some minutes nothing is suggested unless the user asks."""

import asyncio
import time

from lsp_server.engine_link.status import StatusBoard

MAX_MINUTES = 7 * 24 * 60
_LATE_S = 0.05
"""The timer and the clock do not go exactly alike: a little later the snooze is over by both."""


class Snooze:
    """Keeps when the snooze ends, and shows it on the status board."""

    def __init__(self, board: StatusBoard) -> None:
        self._board = board
        self._until: float | None = None
        self._timer: asyncio.TimerHandle | None = None

    def begin(self, minutes: float) -> float | None:
        """Snooze from now on, and return the end in seconds since the epoch; 0 minutes end it and return None."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._until = time.time() + 60 * minutes if minutes > 0 else None
        if self._until is not None:
            self._wait(self._until)
        self._board.snooze(self._until)
        return self._until

    def holds(self) -> bool:
        """Return whether the snooze goes on. Its end is shown on the board."""
        # The timer stops while the machine sleeps, so the clock decides.
        if self._until is not None and time.time() >= self._until:
            self.begin(0)
        return self._until is not None

    def _wait(self, until: float) -> None:
        left = max(until - time.time(), 0.0) + _LATE_S
        self._timer = asyncio.get_running_loop().call_later(left, self._wake)

    def _wake(self) -> None:
        if self.holds() and self._until is not None:
            self._wait(self._until)
