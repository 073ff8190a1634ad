"""An engine that is stopped or hangs: nobody would ever get an answer from it."""

import asyncio
import time
from collections.abc import Callable

from engine.client.connection import EngineClient
from engine.errors import MidspanError

SILENT_S = 2.0
"""A client that waits and hears nothing for so long asks for the status, which takes an engine no time."""
ANSWER_S = 5.0
"""An engine that has not answered that by then is taken for stopped; a busy machine has some time."""


class SilenceWatch:
    """Watches a client while fills wait. Calls `on_silence(client)` once if the engine no longer answers anything."""

    def __init__(self, on_silence: Callable[[EngineClient], None]) -> None:
        self._on_silence = on_silence
        self._watched: EngineClient | None = None
        self._task: asyncio.Task[None] | None = None

    def begin(self, client: EngineClient) -> None:
        """Watch this client until it waits for nothing; it is about to."""
        if self._task is None or self._task.done() or self._watched is not client:
            self.end()
            self._watched, self._task = client, asyncio.create_task(self._watch(client))

    def end(self) -> None:
        """Watch nothing."""
        if self._task is not None:
            self._task.cancel()
            self._task = None

    async def _watch(self, client: EngineClient) -> None:
        await asyncio.sleep(SILENT_S)
        while client.waits and not client.closed.is_set():
            if time.monotonic() - client.heard_at >= SILENT_S:
                try:
                    async with asyncio.timeout(ANSWER_S):
                        await client.status()
                except TimeoutError:
                    self._on_silence(client)
                    return
                except MidspanError:
                    return
            await asyncio.sleep(SILENT_S)
