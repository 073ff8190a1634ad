"""How fast a workspace is read: gently while the user types, else as fast as the engine takes the files."""

import asyncio
import time

TYPING_S = 2.0
"""The user types until this long after a change."""
_SHARE = 0.1
"""The share of the time that reading takes while the user types."""


class Pace:
    """Knows when the user typed last."""

    def __init__(self) -> None:
        self._typed_at = -TYPING_S

    def note_typing(self) -> None:
        """The user has just typed."""
        self._typed_at = time.monotonic()

    @property
    def is_gentle(self) -> bool:
        return time.monotonic() - self._typed_at < TYPING_S

    async def rest(self, worked_s: float) -> None:
        """After `worked_s` seconds of work, wait as long as the share demands; not at all when nobody types."""
        if self.is_gentle:
            await asyncio.sleep(worked_s * (1 / _SHARE - 1))
