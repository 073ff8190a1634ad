"""What is suggested at a place, however the editor asks for it: as inline completion or as an ordinary item.

The newest request of a document wins. Whatever goes wrong, there is nothing to suggest: no error reaches the editor.
"""

import asyncio
import logging
import time
from collections.abc import Callable

import attrs

from engine.client.connection import EngineClient, EngineFailure
from engine.errors import MidspanError
from engine.protocol.messages import Filled
from lsp_server.documents.store import Snapshot
from lsp_server.hole.cursor import Cursor
from lsp_server.hole.hole import Hole
from lsp_server.log import describe
from lsp_server.messages import OfferTag
from lsp_server.requests.session import Session
from lsp_server.suggest.dismissal import Dismissals
from lsp_server.suggest.gate import Shown, let_through
from lsp_server.suggest.reuse import Reuse
from lsp_server.suggest.shape import shape

_logger = logging.getLogger(__name__)

MOST_SUGGESTIONS = 3


@attrs.frozen
class Suggestion:
    """`text` goes behind `cursor`; `mark` is what the editor sends back when the user takes it."""

    text: str
    cursor: Cursor
    mark: OfferTag


@attrs.frozen
class SuggestionRequest:
    """Who asks for what. A newer request of the same `asker` ends the one under way.

    `candidates` is one for what appears by itself; more than that are drawn when the user asked, and then neither a
    dismissal nor what is left of the last suggestions stands in the way.
    """

    asker: str
    uri: str
    cursor: Callable[[Snapshot], Cursor]
    candidates: int = 1

    @property
    def automatic(self) -> bool:
        return self.candidates == 1


@attrs.frozen
class _Offered:
    """An offer, and the `offset` at which its text begins. The answer that was sent for it last was asked for at
    `asked_at`, and `starts` are those of its texts that are starts of lines.
    """

    number: int
    offset: int
    asked_at: int
    starts: frozenset[str]


class Suggestions:
    """Answers a session's wishes, and keeps what is under way so that a newer request or an edit can end it."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._reuse = Reuse()
        self._dismissals = Dismissals()
        self._offered: dict[str, _Offered] = {}
        self._running: dict[tuple[str, str], asyncio.Task[Filled]] = {}

    async def find(self, request: SuggestionRequest) -> list[Suggestion]:
        """Return what is worth showing, the best first; each is noted as shown.

        Raises asyncio.CancelledError only, when the editor cancels the request.
        """
        self._end((request.uri, request.asker))
        try:
            found = await self._find(request)
        except MidspanError as error:
            quiet = isinstance(error, EngineFailure) and error.code == "cancelled"
            _logger.log(logging.DEBUG if quiet else logging.WARNING, "no suggestion: %s", error)
            return []
        except Exception as error:
            _logger.error("no suggestion: %s; please report this", describe(error))
            return []
        if found:
            self._session.offers.answered(found[0].mark)
        return found

    def dismiss(self, snapshot: Snapshot, offset: int) -> None:
        """Suggest nothing more at `offset` until the text there changes or the user asks, nor the rest of what stands
        there as it is typed."""
        self.drop(snapshot.uri)
        shown = self._reuse.follow(snapshot, offset)
        # Typed along, the rest of it would come back with the next key.
        self._reuse.forget(snapshot.uri)
        self._dismissals.note(snapshot, offset, shown)
        self._session.offers.dismissed(snapshot.language.id)

    def drop(self, uri: str) -> None:
        """Cancel what is under way for this document: it is answered with nothing."""
        for key in [key for key in self._running if key[0] == uri]:
            self._end(key)

    def forget(self, uri: str) -> None:
        """Let go of a closed document."""
        self.drop(uri)
        self._reuse.forget(uri)
        self._dismissals.forget(uri)
        self._offered.pop(uri, None)

    def drop_all(self) -> None:
        """Cancel all that is under way."""
        for key in list(self._running):
            self._end(key)

    async def _find(self, request: SuggestionRequest) -> list[Suggestion]:
        started = time.perf_counter()
        session = self._session
        snapshot = session.served(request.uri)
        if snapshot is None:
            return []
        cursor = request.cursor(snapshot)
        if request.automatic and self._dismissals.holds(cursor.snapshot, cursor.offset):
            return []
        rest = self._reuse.follow(cursor.snapshot, cursor.offset) if request.automatic else []
        if rest and not self._may_have_grown(rest[0], cursor):
            session.board.counts.reused += 1
            return self._marked(rest[:1], cursor)
        client = session.link.ready()
        if client is None:
            return []
        hole = session.cut(cursor.snapshot, cursor.offset, client.welcome.model)
        filled = await self._newest(request, client, cursor, hole)
        current = session.documents.snapshot(request.uri)
        if filled is None or current is None or current.version != snapshot.version:
            return []
        session.board.took((time.perf_counter() - started) * 1000)
        worth = self._worth_showing(filled, cursor, hole)
        if request.automatic:
            worth = [one for one in worth if not self._dismissals.refuse(cursor.snapshot, cursor.offset, one.text)]
        texts = [one.text for one in worth]
        self._reuse.remember(cursor.snapshot, cursor.offset, texts)
        starts = frozenset(one.text for one in worth if one.cut)
        last = self._offered.get(request.uri)
        if last and rest and texts and (texts[0].startswith(rest[0]) or rest[0].startswith(texts[0])):
            # The same start, grown or shrunk, is the same offer.
            offered = _Offered(last.number, last.offset, cursor.offset, starts)
        else:
            offered = _Offered(session.offers.make(), cursor.offset, cursor.offset, starts)
        self._offered[request.uri] = offered
        return self._marked(texts, cursor)

    def _may_have_grown(self, rest: str, cursor: Cursor) -> bool:
        """Return whether `rest` is what is left of the start of a line that was typed along: with a character more to
        go by the model may be sure of more, or no more sure of this."""
        offered = self._offered[cursor.snapshot.uri]
        typed = cursor.snapshot.text[offered.asked_at : cursor.offset]
        return bool(typed) and typed + rest in offered.starts

    async def _newest(
        self, request: SuggestionRequest, client: EngineClient, cursor: Cursor, hole: Hole
    ) -> Filled | None:
        """Ask the engine. Returns None when a newer request or an edit ended it."""
        gate = self._session.configuration.settings.gate
        fill = self._session.plan_fill(cursor.snapshot, hole, client.welcome.model, request.candidates, gate)
        running = asyncio.create_task(self._session.link.fill(client, fill))
        key = (request.uri, request.asker)
        self._running[key] = running
        try:
            return await running
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            return None
        finally:
            if self._running.get(key) is running:
                del self._running[key]

    def _worth_showing(self, filled: Filled, cursor: Cursor, hole: Hole) -> list[Shown]:
        settings = self._session.configuration.settings
        language = cursor.snapshot.language
        worth: dict[str, Shown] = {}
        for candidate in filled.candidates[:MOST_SUGGESTIONS]:
            shaped = shape(candidate.text, hole, cursor.snapshot, settings.max_lines)
            shown = let_through(candidate, shaped, hole, language, settings) if shaped else None
            if shown is not None:
                worth.setdefault(shown.text, shown)
        return list(worth.values())

    def _marked(self, texts: list[str], cursor: Cursor) -> list[Suggestion]:
        offered = self._offered[cursor.snapshot.uri]
        start = cursor.offset - offered.offset
        language = cursor.snapshot.language.id
        return [Suggestion(text, cursor, OfferTag(offered.number, language, start, len(text))) for text in texts]

    def _end(self, key: tuple[str, str]) -> None:
        running = self._running.pop(key, None)
        if running is not None:
            running.cancel()
