"""What is suggested at a cursor, as inline completion or as an item of the completion menu.

The newest request of a document wins. When anything fails there is no suggestion; no error reaches the editor.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Sequence

import attrs

from engine.client.connection import EngineClient
from engine.client.failures import EngineFailure
from engine.errors import EngineUnavailable, MidspanError
from engine.protocol.messages import Fill, Filled
from lsp_server.documents.store import Snapshot
from lsp_server.hole.cursor import Cursor
from lsp_server.log import describe
from lsp_server.offer_tag import OfferTag
from lsp_server.requests.ahead import Ahead
from lsp_server.requests.session import Session
from lsp_server.requests.why import Why
from lsp_server.settings import Settings
from lsp_server.suggest.gate import Presented
from lsp_server.suggest.pipeline import Plan, present
from lsp_server.suggest.restraint import Restraint
from lsp_server.suggest.reuse import Offer, Reuse, longer

_logger = logging.getLogger(__name__)

MAX_SUGGESTIONS = 3
_PATIENCE_S = 5.0
"""A user who asks waits so long for an engine that starts."""
_PLAUSIBLE = 0.02
"""A further guess must be at least this many times as likely as the best one: drawn tokens may not fit together."""


@attrs.frozen
class Suggestion:
    """`text` is inserted at `cursor`; `tag` is what the editor sends back when the user takes it."""

    text: str
    cursor: Cursor
    tag: OfferTag


@attrs.frozen
class SuggestionRequest:
    """A suggestion request. A newer one from the same asker cancels it.

    `candidates` is 1 for an automatic request. When the user asks there are more, nothing is held back, not even by the
    gate, and the rest of the last suggestions does not keep the engine from being asked. If there is nothing to show,
    the user is told why.
    """

    asker: str
    uri: str
    cursor: Callable[[Snapshot], Cursor]
    candidates: int = 1

    @property
    def automatic(self) -> bool:
        return self.candidates == 1


class Suggestions:
    """Answers the suggestion requests of a session, and cancels those that a newer request or an edit makes stale."""

    def __init__(self, session: Session, tell: Callable[[str], None]) -> None:
        """`tell` shows the user one line."""
        self._session = session
        self._tell = tell
        self._reuse = Reuse()
        self._restraint = Restraint()
        self._ahead = Ahead(session, self._restraint)
        self._running: dict[tuple[str, str], asyncio.Task[Filled]] = {}
        self.why = Why(session)

    async def find(self, request: SuggestionRequest) -> list[Suggestion]:
        """Return what is worth showing, the best first, and count it as shown.

        Raises asyncio.CancelledError only, when the editor cancels the request.
        """
        self._cancel((request.uri, request.asker))
        try:
            suggestions = await self._find(request)
        except MidspanError as error:
            if not request.automatic:
                self._tell(str(error))
            expected = isinstance(error, EngineFailure) and error.code == "cancelled"
            _logger.log(logging.DEBUG if expected else logging.WARNING, "no suggestion: %s", error)
            return []
        except Exception as error:
            _logger.error("no suggestion: %s; please report this", describe(error))
            return []
        if suggestions:
            self._session.offers.answered(suggestions[0].tag)
        elif not request.automatic:
            self._tell(self._session.why_not_served(request.uri) or "there is nothing to suggest here")
        return suggestions

    def dismiss(self, snapshot: Snapshot, offset: int) -> None:
        """Suggest nothing at `offset` until the text there changes or the user asks.

        If the user types along the dismissed text, its rest is not suggested either.
        """
        self.cancel(snapshot.uri)
        rest = self._reuse.follow(snapshot, offset)
        # Otherwise the next key would bring its rest back.
        self._reuse.forget(snapshot.uri)
        self._restraint.dismissed(snapshot, offset, rest.texts if rest is not None else [])
        self._session.offers.dismissed(snapshot.language.id)

    def cancel(self, uri: str) -> None:
        """Cancel the running requests of this document; they return no suggestions."""
        for key in [key for key in self._running if key[0] == uri]:
            self._cancel(key)

    def cancel_all(self) -> None:
        """Cancel all running requests, and forget what was suggested."""
        for key in list(self._running):
            self._cancel(key)
        self._reuse.forget_all()
        self._ahead.forget_all()

    def forget(self, uri: str) -> None:
        """Drop a closed document."""
        self.cancel(uri)
        self._reuse.forget(uri)
        self._restraint.forget(uri)
        self._ahead.forget(uri)
        self.why.forget(uri)

    async def _find(self, request: SuggestionRequest) -> list[Suggestion]:
        session, settings = self._session, self._session.configuration.settings
        if request.automatic and not session.is_automatic:
            return []
        snapshot = await session.parsed(request.uri)
        if snapshot is None:
            return []
        cursor = request.cursor(snapshot)
        here, restraint = (cursor.snapshot, cursor.offset), self._restraint
        # Items that the user selects in the completion menu are not typed.
        is_typed = cursor.snapshot is snapshot
        if is_typed:
            restraint.observe(*here)
        if request.automatic and restraint.is_silent(*here):
            return []
        followed = self._reuse.follow(*here) if request.automatic else None
        rest = next((each for each in followed.texts if restraint.keeps(*here, each)), "") if followed else ""
        if followed is not None and rest and not followed.offer.may_grow(rest, *here):
            session.board.counts.reused += 1
            if is_typed:
                restraint.showed(*here, rest)
                self._ahead.aim(*here, rest)
            return _tagged([rest], cursor, followed.offer, [None])
        client = session.link.ready() if request.automatic else await self._awaited_client()
        if client is None:
            return []
        settings = attrs.evolve(settings, gate=restraint.gate(request.uri, settings.gate) if request.automatic else 0.0)
        plan = session.plan(*here, client.welcome.model, settings, request.candidates)
        filled = self._ahead.take(request.uri, client, plan.fill) or await self._newest(request, client, plan.fill)
        current = session.documents.find(request.uri)
        if filled is None or current is None or current.version != snapshot.version:
            return []
        presented = self._presented(request, plan, filled, here)
        if followed is not None and rest:
            presented = longer(presented, rest, followed.offer.source)
        texts = [each.text for each in presented]
        if is_typed:
            # Who asks and cycles through several texts ignores none of them.
            restraint.showed(*here, texts[0] if texts and request.automatic else "")
        if not texts:
            self._ahead.forget(request.uri)
            return []
        offer = self._reuse.remember(*here, presented, session.offers.make)
        if texts[0] != rest:
            self.why.note(plan, texts[0])
        if is_typed and request.automatic:
            self._ahead.aim(*here, texts[0])
        return _tagged(texts, cursor, offer, [round(each.confidence, 3) for each in presented])

    def _presented(
        self, request: SuggestionRequest, plan: Plan, filled: Filled, here: tuple[Snapshot, int]
    ) -> list[Presented]:
        if not request.automatic:
            return _asked(plan, filled, self._session.configuration.settings)
        return [each for each in present(plan, filled) if self._restraint.allows(*here, each.text)]

    async def _awaited_client(self) -> EngineClient:
        """Return the client for a user who asked, and waits a moment. Raises EngineUnavailable with the reason."""
        try:
            async with asyncio.timeout(_PATIENCE_S):
                return await self._session.link.client()
        except TimeoutError:
            raise EngineUnavailable("the engine is still starting; ask again in a moment") from None

    async def _newest(self, request: SuggestionRequest, client: EngineClient, fill: Fill) -> Filled | None:
        """Ask the engine. Returns None when a newer request or an edit cancelled this one."""
        started = time.perf_counter()
        running = asyncio.create_task(self._session.link.fill(client, fill))
        key = (request.uri, request.asker)
        self._running[key] = running
        try:
            filled = await running
            self._session.board.took((time.perf_counter() - started) * 1000)
            return filled
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            return None
        finally:
            if self._running.get(key) is running:
                del self._running[key]

    def _cancel(self, key: tuple[str, str]) -> None:
        running = self._running.pop(key, None)
        if running is not None:
            running.cancel()


def _asked(plan: Plan, filled: Filled, settings: Settings) -> list[Presented]:
    """Return what a user who asks gets: first what would be shown anyway, then the guesses that the gate hides.

    Of a guess there is the first line only: what is below it is hardly ever right.
    """
    sure = present(attrs.evolve(plan, settings=settings), filled)
    ungated = present(plan, filled)
    least = _PLAUSIBLE * max((each.confidence for each in ungated), default=0.0)
    guesses = [
        attrs.evolve(each, text=each.text.partition("\n")[0].rstrip()) for each in ungated if each.confidence >= least
    ]
    shown = {each.text: each for each in (*sure, *guesses) if each.text}
    return list(shown.values())[:MAX_SUGGESTIONS]


def _tagged(texts: list[str], cursor: Cursor, offer: Offer, confidences: Sequence[float | None]) -> list[Suggestion]:
    start = cursor.offset - offer.offset
    language = cursor.snapshot.language.id
    tags = [
        OfferTag(offer.number, language, start, len(text), offer.source, confidence)
        for text, confidence in zip(texts, confidences, strict=True)
    ]
    return [Suggestion(text, cursor, tag) for text, tag in zip(texts, tags, strict=True)]
