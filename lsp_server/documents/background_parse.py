"""Parses that take too long for a key go on between the events of the loop."""

import asyncio
from collections.abc import Callable

KEY_PARSE_S = 0.008
"""A key may wait so long for its parse, without which other code would have to do."""
_SLICE_S = 0.003
"""So long an event may have to wait for a parse, at most several times: a message comes in as several events."""
_GAP_S = 0.001


class BackgroundParse:
    """Calls `go_on(uri, seconds)` for each document that waits, in turn, until it returns False."""

    def __init__(self, go_on: Callable[[str, float], bool]) -> None:
        self._go_on = go_on
        self._waiting: dict[str, asyncio.Event] = {}
        self._task: asyncio.Task[None] | None = None

    def begin(self, uri: str) -> None:
        """Parse this document as soon as there is time."""
        self._waiting.setdefault(uri, asyncio.Event())
        if self._task is None:
            self._task = asyncio.create_task(self._run())

    async def wait(self, uri: str, seconds: float) -> None:
        """Return when the document is parsed, or nothing more can be done for it; after `seconds` at the latest."""
        if (done := self._waiting.get(uri)) is not None:
            try:
                async with asyncio.timeout(seconds):
                    await done.wait()
            except TimeoutError:
                return

    def close(self) -> None:
        """Leave the rest unparsed."""
        if self._task is not None:
            self._task.cancel()

    async def _run(self) -> None:
        try:
            while self._waiting:
                for uri, done in list(self._waiting.items()):
                    if not self._go_on(uri, _SLICE_S):
                        del self._waiting[uri]
                        done.set()
                    await asyncio.sleep(_GAP_S)
        finally:
            self._task = None
