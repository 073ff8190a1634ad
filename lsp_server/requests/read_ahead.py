"""Reads the text around a resting cursor ahead, so that the first suggestion there does not wait for it.

A model with a hundred million parameters reads its context for half a second on a CPU. The engine keeps what it read.
"""

import asyncio
import logging

import attrs
from lsprotocol import types

from engine.client.connection import EngineClient
from engine.errors import MidspanError
from engine.protocol.messages import ModelInfo
from lsp_server.documents.store import offset_at
from lsp_server.log import describe
from lsp_server.requests.ahead import SLOW_MS
from lsp_server.requests.session import Session
from lsp_server.wire import CursorParams

_logger = logging.getLogger(__name__)

SLOW_PARAMETERS = 50_000_000
"""On a CPU a model of this size needs some 50 ms for its context; a smaller one reads it when it is asked."""
_OPENED_PAUSE_S = 0.5
"""A document may be one of many that an editor opens at its start."""
_PATIENCE_MS = 10_000.0
"""Nobody waits for the reading, and it gives way to all fills."""


@attrs.frozen
class _Place:
    """Where the cursor rests, or probably rests. `pause_s`: another place may come within so many seconds."""

    uri: str
    position: types.Position
    pause_s: float = 0.0


class ReadAhead:
    """Reads at one place at a time: the one where the cursor came to rest last. It starts no engine."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._place: _Place | None = None
        """The place that is read, or will be once the engine is there."""
        self._reading: asyncio.Task[None] | None = None
        self._is_told = False
        """Whether this editor tells where its cursor is."""
        session.link.on_connect(self._read)

    def cursor_moved(self, params: CursorParams) -> None:
        """Read at the cursor, which an editor tells of once it rests."""
        self._is_told = True
        self._begin(_Place(params.text_document.uri, params.position))

    def opened(self, uri: str) -> None:
        """Read at the start of a document, unless the editor tells where its cursor is."""
        if not self._is_told:
            self._begin(_Place(uri, types.Position(0, 0), _OPENED_PAUSE_S))

    def closed(self, uri: str) -> None:
        """Stop reading in a closed document."""
        if self._place is not None and self._place.uri == uri:
            self.stop()

    def stop(self) -> None:
        """Stop reading: the user asks for something, or the text changes. What is read is kept."""
        self._place = None
        if self._reading is not None:
            self._reading.cancel()
            self._reading = None

    def _begin(self, place: _Place) -> None:
        self.stop()
        self._place = place
        if (client := self._session.link.connected) is not None:
            self._read(client)

    def _read(self, client: EngineClient) -> None:
        if self._place is not None and self._pays(client.welcome.model):
            self._reading = asyncio.create_task(self._run(self._place, client))

    def _pays(self, model: ModelInfo) -> bool:
        """Return whether a model reads slowly. A server is never asked: the user pays for each of its requests."""
        if model.server:
            return False
        is_slow = model.device == "cpu" and model.parameters >= SLOW_PARAMETERS
        return is_slow or (self._session.board.median_ms or 0.0) >= SLOW_MS

    async def _run(self, place: _Place, client: EngineClient) -> None:
        session = self._session
        try:
            await asyncio.sleep(place.pause_s)
            # The settings are looked at only now: they may come, or change, after the document was opened.
            snapshot = await session.parsed(place.uri) if session.is_automatic else None
            if snapshot is None:
                return
            offset = offset_at(snapshot, place.position, session.encoding)
            plan = session.plan_unasked(snapshot, offset, client.welcome.model, session.configuration.settings)
            # All else stays as in the user's request, because the layout of the context depends on it.
            await client.fill(attrs.evolve(plan.fill, ahead=True, only_read=True, budget_ms=_PATIENCE_MS))
        except MidspanError as error:
            _logger.debug("nothing was read ahead: %s", error)
        except Exception as error:
            _logger.error("nothing was read ahead: %s; please report this", describe(error))
