"""textDocument/inlineCompletion, from the request to its items.

The newest request of a document wins. Whatever goes wrong, the answer is an empty list: an error or null would leave a
stale suggestion on the screen of some editors, and a toast on that of others.
"""

import asyncio
import logging
import time

from lsprotocol import types

from engine.client import EngineClient, EngineFailure
from engine.errors import MidspanError
from engine.protocol import Filled
from lsp_server.cursor import Cursor, cursor_of
from lsp_server.log import describe
from lsp_server.session import Session
from lsp_server.suggest.gate import believes
from lsp_server.suggest.reuse import Reuse
from lsp_server.suggest.shape import shape
from lsp_server.syntax.hole import Hole, cut_hole

_logger = logging.getLogger(__name__)

ACCEPTED = "midspan.accepted"
MOST_ITEMS = 3
_NOTHING = types.InlineCompletionList(items=[])
_COUNT_ACCEPTED = types.Command(title="Count an accepted suggestion", command=ACCEPTED)


class InlineCompletions:
    """Answers a session's requests, and keeps what is under way so that a newer request or an edit can end it."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._reuse = Reuse()
        self._running: dict[str, asyncio.Task[Filled]] = {}

    async def complete(self, params: types.InlineCompletionParams) -> types.InlineCompletionList:
        """Return the items: one at most when asked automatically, three at most when the user asked.

        Raises asyncio.CancelledError only, when the editor cancels the request.
        """
        self.drop(params.text_document.uri)
        try:
            items = await self._items(params)
        except MidspanError as error:
            quiet = isinstance(error, EngineFailure) and error.code == "cancelled"
            _logger.log(logging.DEBUG if quiet else logging.WARNING, "no suggestion: %s", error)
            return _NOTHING
        except Exception as error:
            _logger.error("no suggestion: %s; please report this", describe(error))
            return _NOTHING
        if not items:
            return _NOTHING
        self._session.board.counts.shown += 1
        return types.InlineCompletionList(items=items)

    def drop(self, uri: str) -> None:
        """Cancel the request of this document that is under way, if there is one: it is answered with nothing."""
        running = self._running.pop(uri, None)
        if running is not None:
            running.cancel()

    def forget(self, uri: str) -> None:
        """Let go of a closed document."""
        self.drop(uri)
        self._reuse.forget(uri)

    def drop_all(self) -> None:
        """Cancel all that is under way."""
        for uri in list(self._running):
            self.drop(uri)

    async def _items(self, params: types.InlineCompletionParams) -> list[types.InlineCompletionItem]:
        started = time.perf_counter()
        session = self._session
        uri = params.text_document.uri
        snapshot = session.served(uri)
        if snapshot is None:
            return []
        cursor = cursor_of(snapshot, params, session.encoding)
        automatic = params.context.trigger_kind == types.InlineCompletionTriggerKind.Automatic
        if automatic and (rest := self._reuse.follow(cursor.snapshot, cursor.offset)):
            session.board.counts.reused += 1
            return [cursor.item(rest[0], _COUNT_ACCEPTED)]
        client = session.link.ready()
        if client is None:
            return []
        hole = cut_hole(cursor.snapshot, cursor.offset)
        filled = await self._newest(uri, client, cursor, hole, candidates=1 if automatic else MOST_ITEMS)
        current = session.documents.snapshot(uri)
        if filled is None or current is None or current.version != snapshot.version:
            return []
        session.board.took((time.perf_counter() - started) * 1000)
        texts = self._worth_showing(filled, cursor, hole)
        self._reuse.remember(cursor.snapshot, cursor.offset, texts)
        return [cursor.item(text, _COUNT_ACCEPTED) for text in texts]

    async def _newest(
        self, uri: str, client: EngineClient, cursor: Cursor, hole: Hole, candidates: int
    ) -> Filled | None:
        """Ask the engine. Returns None when a newer request or an edit ended it."""
        fill = self._session.plan_fill(cursor.snapshot, hole, candidates)
        running = asyncio.create_task(self._session.link.fill(client, fill))
        self._running[uri] = running
        try:
            return await running
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            return None
        finally:
            if self._running.get(uri) is running:
                del self._running[uri]

    def _worth_showing(self, filled: Filled, cursor: Cursor, hole: Hole) -> list[str]:
        settings = self._session.configuration.settings
        texts: list[str] = []
        for candidate in filled.candidates[:MOST_ITEMS]:
            text = shape(candidate.text, hole, cursor.snapshot, settings.max_lines)
            if text and text not in texts and believes(candidate, text, settings.gate):
                texts.append(text)
        return texts
