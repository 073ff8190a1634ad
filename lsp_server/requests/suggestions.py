"""What is suggested at a cursor, as inline completion or as an item of the completion menu.

The newest request of a document wins. When anything fails there is no suggestion; no error reaches the editor.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import attrs

from engine.client.connection import EngineClient, EngineFailure
from engine.errors import EngineUnavailable, MidspanError, describe
from engine.protocol.confidence import FREE
from engine.protocol.messages import Filled
from lsp_server.documents.store import Snapshot
from lsp_server.hole.hole import Cursor
from lsp_server.requests.ahead import ReadAhead
from lsp_server.requests.desk import Desk, Desks, Offered, SuggestionRequest, UnderWay
from lsp_server.requests.why import Why
from lsp_server.session import Session
from lsp_server.settings import Settings
from lsp_server.suggest.pipeline import Plan, Presented, believed, present
from lsp_server.suggest.reuse import Rest, Suggestion, further, longer, tagged
from lsp_server.suggest.silence import Silence

MAX_SUGGESTIONS = 3
ASKED_FROM = 6
"""Texts from which the engine chooses what a user asked for, who waits."""
_PLAUSIBLE = 0.02
"""A further guess must be at least this many times as likely as the best one: drawn tokens may not fit together."""
_logger = logging.getLogger(__name__)
_Answer = TypeVar("_Answer")
_PATIENCE_S = 5.0
"""A user who asks waits so long for an engine that starts."""
_WAITING_MS = 2000.0
"""Budget of a suggestion that the user asked for, or that has waited for the start of the engine."""
_COLD_MS = 3000.0
"""Budget of a second try where the first one had no time for anything but reading."""


@attrs.frozen
class Answered:
    """The engine's answer to a plan, and what of it may be shown at the cursor."""

    plan: Plan
    filled: Filled
    presented: list[Presented]


def asked_for(plan: Plan, filled: Filled, settings: Settings) -> list[Presented]:
    """Return what a user who asks gets: first what would be shown anyway, then the guesses that the gate hides.

    These are in the engine's order where it chose them from several (engine/fill/follows.py), else the likeliest first:
    the tokens that are the likeliest one by one are not always the likeliest line.

    A guess has its first line only: the text below it is hardly ever right.
    """
    sure = present(attrs.evolve(plan, settings=settings), filled)
    ungated = present(plan, filled)
    if filled.chosen_from == 1:
        ungated.sort(key=lambda each: each.confidence, reverse=True)
    least = _PLAUSIBLE * max((each.confidence for each in ungated), default=0.0)
    guesses = [
        attrs.evolve(each, text=each.text.partition("\n")[0].rstrip()) for each in ungated if each.confidence >= least
    ]
    shown = dict[str, Presented]()
    for each in (*sure, *guesses):
        shown.setdefault(each.text, each)
    shown.pop("", None)
    return list(shown.values())[:MAX_SUGGESTIONS]


def _only_read(filled: Filled) -> bool:
    """Return whether a fill's budget was over before its first pass: all of it went into reading."""
    return (
        filled.steps == 0 and filled.candidates[0].finish == "deadline" and filled.cached_tokens < filled.context_tokens
    )


class Suggestions:
    """Answers the suggestion requests of a session, and cancels those that a newer request or an edit makes stale."""

    def __init__(self, session: Session, reading: ReadAhead, tell: Callable[[str], None]) -> None:
        """`tell` shows the user one line."""
        self._session = session
        self._reading = reading
        self._tell = tell
        self._desks = Desks(session)
        self.why = Why(session, self._desks)
        session.on_change.append(self.changed)

    async def find(self, request: SuggestionRequest) -> list[Suggestion]:
        """Return what is worth showing, the best first, and count it as shown.

        Raises asyncio.CancelledError only, when the editor cancels the request.
        """
        desk = self._desks.at(request.uri)
        desk.cancel(request.asker)
        self._reading.stop()
        desk.latest, desk.silence = request, Silence("waits")
        try:
            suggestions = await self._find(desk, request)
        except asyncio.CancelledError:
            desk.silent(request, Silence("gone"))
            raise
        except MidspanError as error:
            if not request.automatic:
                self._tell(str(error))
            expected = isinstance(error, EngineFailure) and error.code == "cancelled"
            _logger.log(logging.DEBUG if expected else logging.WARNING, "no suggestion: %s", error)
            desk.silent(request, Silence("gone") if expected else Silence("failed", str(error)))
            return []
        except Exception as error:
            _logger.error("no suggestion: %s; please report this", describe(error))
            desk.silent(request, Silence("failed", f"an error, {describe(error)}; please report this"))
            return []
        if not suggestions and desk.silence is not None and desk.silence.cause in ("waits", "pauses"):
            desk.silent(request, Silence("gone"))  # for a text that is no more
        if suggestions:
            if desk.latest is request:
                desk.silence = None
            self._session.offers.answered(suggestions[0].tag)
        elif not request.automatic and desk.latest is request:  # a newer one says itself what it has
            self._tell(self.why.nothing_in(request.uri))
        return suggestions

    def dismiss(self, snapshot: Snapshot, offset: int) -> None:
        """Suggest nothing at `offset` until the text there changes or the user asks.

        If the user types along the dismissed text, its rest is not suggested either.
        """
        desk = self._desks.at(snapshot.uri)
        rest = desk.reuse.follow(snapshot, offset)
        # Otherwise the next key would bring its rest back.
        desk.clear()
        desk.restraint.dismissed(snapshot, offset, rest.texts if rest is not None else [])
        self._session.offers.dismissed(snapshot.language.id)
        desk.latest, desk.silence = None, Silence("dismissed here")

    def changed(self, uri: str) -> None:
        """Cancel the requests for the text before an edit. A fill that the user typed along goes on."""
        self._reading.stop()
        document = self._session.documents.find(uri)
        self._desks.at(uri).changed("" if document is None else document.text)

    def cancel_all(self) -> None:
        """Cancel all running requests, and forget what was suggested."""
        self._reading.stop()
        for desk in self._desks:
            desk.clear()

    async def _find(self, desk: Desk, request: SuggestionRequest) -> list[Suggestion]:
        if self._is_unasked(request) and desk.asked is None:
            desk.silent(request, Silence("only asked", self._session.why_only_asked or ""))
            return []
        snapshot = await self._session.parsed(request.uri)
        if snapshot is None:
            return []
        cursor = request.cursor(snapshot)
        if cursor.snapshot is not snapshot and request.automatic:
            chosen = desk.menu.is_chosen(snapshot, cursor)
            # A gate of 0 believes every entry.
            if not chosen and not self._session.configuration.settings.gate.hides_nothing:
                return await self._find_in_entry(desk, request, cursor, snapshot)
        return await self._find_at(desk, request, cursor, snapshot)

    async def _find_in_entry(
        self, desk: Desk, request: SuggestionRequest, cursor: Cursor, snapshot: Snapshot
    ) -> list[Suggestion]:
        """Return what is suggested without the menu, if it begins with the entry that the editor selected, and goes on.

        The editor draws nothing else, and the menu says the entry itself. Text that follows that entry alone is no
        suggestion: nobody chose the entry.
        """
        typed = cursor.without_entry(snapshot)
        if typed is None:
            return []
        entry = cursor.inserted.removeprefix(cursor.replaced)
        suggestions = await self._find_at(desk, request, typed, snapshot)
        found = [each for each in suggestions if each.text.startswith(entry) and each.text != entry]
        if not found:
            if suggestions:
                desk.silent(request, Silence("menu"))
            desk.restraint.showed(snapshot, typed.offset, "")
            desk.ahead.drop()
        return found

    async def _find_at(
        self, desk: Desk, request: SuggestionRequest, cursor: Cursor, snapshot: Snapshot
    ) -> list[Suggestion]:
        """Return what is worth showing at `cursor` in the document's version `snapshot`."""
        session, unasked = self._session, self._is_unasked(request)
        here, restraint = (cursor.snapshot, cursor.offset), desk.restraint
        # Items that the user selects in the completion menu are not typed.
        is_typed = cursor.snapshot is snapshot
        if is_typed:
            restraint.observe(*here)
        if request.automatic and restraint.is_silent(*here):
            desk.silent(request, Silence("dismissed here"))
            return []
        followed = self._followed(desk, *here)
        # The editor may show any of several guesses.
        only = followed.texts[0] if followed is not None and len(followed.texts) == 1 else ""
        may_grow = followed is not None and only != "" and not unasked and followed.offer.may_grow(only, *here)
        if request.automatic and followed is not None and not may_grow:
            session.board.counts.reused += 1
            if is_typed:
                restraint.showed(*here, only)
            if is_typed and only and not unasked:
                desk.ahead.aim(*here, only)
            return tagged(followed.texts, cursor, followed.offer, [None] * len(followed.texts))
        if unasked:
            desk.silent(request, Silence("only asked", session.why_only_asked or ""))
            return []
        return await self._ask(desk, request, cursor, snapshot, followed)

    async def _ask(
        self, desk: Desk, request: SuggestionRequest, cursor: Cursor, snapshot: Snapshot, followed: Rest | None
    ) -> list[Suggestion]:
        """Ask the engine at `cursor` in the document's version `snapshot`. What is `followed` stays on the screen."""
        session, restraint, began = self._session, desk.restraint, time.perf_counter()
        here, is_typed = (cursor.snapshot, cursor.offset), cursor.snapshot is snapshot
        client = session.link.ready() if request.automatic else await self._awaited_client()
        has_waited = client is None and request.waits
        if has_waited:
            client = await self._newest(desk, request, session.link.started())
        if client is None:
            desk.silent(request, Silence("away", session.board.message))
            return []
        answered: Answered | None = None
        if is_typed and request.automatic:
            answered = await self._typed_along(desk, request, *here)
        # Meanwhile the editor may have sent its settings, which may exclude this file.
        if session.why_not_served(request.uri) is not None or not session.documents.is_current(snapshot):
            return []
        if answered is None:
            # Reading a new file is slow, so is an engine's first pass, and a second is little to somebody who waits.
            least_ms = _WAITING_MS if has_waited or not request.automatic else 0.0
            answered = await self._answered(desk, request, client, least_ms, *here)
        if answered is None or not session.documents.is_current(snapshot):
            return []
        plan, presented = answered.plan, answered.presented
        paused = session.configuration.settings.paused
        if not presented and paused is not None and followed is None and request.automatic and request.waits:
            price = believed(restraint.price(paused), client.welcome.model, plan.hole)
            plan = attrs.evolve(plan, settings=attrs.evolve(plan.settings, gate=price, max_lines=1))
            presented = await self._after_pause(desk, request, plan, answered.filled, began)
        confidences = {each.text: round(each.confidence, 3) for each in presented}
        if followed is not None:
            presented = longer(presented, followed) if request.automatic else further(presented, followed)
            presented = presented[: request.candidates]
        texts = [each.text for each in presented]
        if is_typed:
            # A user who asks and cycles through several texts ignores none of them.
            restraint.showed(*here, texts[0] if texts and request.automatic else "")
        if not texts:
            desk.ahead.drop()
            return []
        offer = desk.reuse.remember(*here, presented, session.offers.make)
        if not request.automatic:
            desk.asked = offer.number
        if followed is None or texts[0] != followed.texts[0]:
            desk.offered = Offered(plan, here[0].text[plan.hole.offset : here[1]] + texts[0])
        if is_typed and request.automatic:
            desk.ahead.aim(*here, texts[0])
        return tagged(texts, cursor, offer, [confidences.get(text) for text in texts])

    def _is_unasked(self, request: SuggestionRequest) -> bool:
        """Return whether the user wants suggestions only when asked for, and has not asked."""
        return request.automatic and not self._session.is_automatic

    def _followed(self, desk: Desk, snapshot: Snapshot, offset: int) -> Rest | None:
        """Return what is left of an offer while the user types along it, or None."""
        followed = desk.reuse.follow(snapshot, offset)
        # While nothing comes unasked, only what was asked for stays.
        if followed is None or not (self._session.is_automatic or followed.offer.number == desk.asked):
            return None
        rests = [each for each in followed.texts if desk.restraint.refusal_of_rest(snapshot, offset, each) is None]
        return Rest(followed.offer, rests) if rests else None

    def _presented(self, desk: Desk, request: SuggestionRequest, plan: Plan, filled: Filled) -> list[Presented]:
        settings = self._session.configuration.settings
        price = settings.gate
        is_dearer = request.automatic and desk.restraint.price(price) != price
        desk.silent(request, Silence("answered", plan=plan, filled=filled, is_dearer=is_dearer))
        if not request.automatic:
            return asked_for(plan, filled, settings)
        allowed: list[Presented] = []
        for each in present(plan, filled):
            if (refusal := desk.restraint.refusal(plan.snapshot, plan.hole.offset, each.text)) is None:
                allowed.append(each)
            else:
                desk.silent(request, Silence(refusal, each.text))
        return allowed

    async def _after_pause(
        self, desk: Desk, request: SuggestionRequest, plan: Plan, filled: Filled, began: float
    ) -> list[Presented]:
        """Return what is worth showing by `plan` once the user has not typed since `began`; [] if the user goes on."""
        presented = self._presented(desk, request, plan, filled)
        if not presented:
            return []
        desk.silent(request, Silence("pauses", presented[0].text))
        pause_s = self._session.configuration.settings.pause_ms / 1000 - (time.perf_counter() - began)
        return await self._newest(desk, request, asyncio.sleep(max(pause_s, 0.0), presented)) or []

    async def _awaited_client(self) -> EngineClient:
        """Return the client for a user who asked, and waits a moment. Raises EngineUnavailable with the reason."""
        try:
            async with asyncio.timeout(_PATIENCE_S):
                return await self._session.link.client()
        except TimeoutError:
            raise EngineUnavailable("the engine is still starting; ask again in a moment") from None

    async def _typed_along(
        self, desk: Desk, request: SuggestionRequest, snapshot: Snapshot, offset: int
    ) -> Answered | None:
        """Return what is left of the fill that the user typed along; None if nothing is to be shown of it."""
        under_way = desk.under_way
        if under_way is None or not under_way.is_at(snapshot, offset):
            return None
        filled = await self._newest(desk, request, under_way.answer())
        if filled is None:
            return None
        board, milliseconds = self._session.board, under_way.milliseconds
        board.took(milliseconds)
        board.awaited(milliseconds)
        desk.taken(under_way)
        left = under_way.left_of(self._presented(desk, request, under_way.plan, filled))
        return Answered(under_way.plan, filled, left) if left else None

    async def _answered(
        self,
        desk: Desk,
        request: SuggestionRequest,
        client: EngineClient,
        least_ms: float,
        snapshot: Snapshot,
        offset: int,
    ) -> Answered | None:
        """Ask the engine at `offset`, with a budget of `least_ms` or more. Returns None if that was cancelled."""
        settings, model = self._session.configuration.settings, client.welcome.model
        price = desk.restraint.price(settings.gate) if request.automatic else FREE
        plan = self._session.plan(snapshot, offset, model, attrs.evolve(settings, gate=price), request.candidates)
        fill = attrs.evolve(plan.fill, budget_ms=max(plan.fill.budget_ms, least_ms))
        if not request.automatic:
            fill = attrs.evolve(fill, choose_from=ASKED_FROM)
        plan = attrs.evolve(plan, fill=fill)
        filled = desk.ahead.take(client, fill) or await self._filled(desk, request, client, plan)
        return Answered(plan, filled, self._presented(desk, request, plan, filled)) if filled is not None else None

    async def _filled(self, desk: Desk, request: SuggestionRequest, client: EngineClient, plan: Plan) -> Filled | None:
        """Ask the engine. Returns None when a newer request or an edit cancelled this one."""
        started = time.perf_counter()
        filled = await self._made(desk, request, client, plan)
        milliseconds = (time.perf_counter() - started) * 1000
        if filled is not None:
            self._session.board.took(milliseconds)
        if request.automatic and (filled is not None or milliseconds > plan.fill.budget_ms):
            self._session.board.awaited(milliseconds)
        waits = request.automatic and request.waits and not client.welcome.model.server
        if filled is None or not waits or not _only_read(filled):
            return filled
        # A user who stops here would see nothing until the next key.
        patient = attrs.evolve(plan.fill, budget_ms=max(plan.fill.budget_ms, _COLD_MS))
        return await self._made(desk, request, client, attrs.evolve(plan, fill=patient))

    async def _made(self, desk: Desk, request: SuggestionRequest, client: EngineClient, plan: Plan) -> Filled | None:
        """Ask the engine once. A fill of a local model that nobody asked for goes on while the user types along."""
        link, fill = self._session.link, plan.fill
        if not request.automatic or client.welcome.model.server:
            desk.begin(None)
            return await self._newest(desk, request, link.fill(client, fill))
        under_way = UnderWay(plan, lambda progressed: link.fill(client, fill, progressed))
        desk.begin(under_way)
        filled = await self._newest(desk, request, under_way.answer())
        if filled is not None:
            desk.taken(under_way)
        return filled

    async def _newest(
        self, desk: Desk, request: SuggestionRequest, work: Coroutine[Any, Any, _Answer]
    ) -> _Answer | None:
        """Return what `work` returns, or None when a newer request or an edit cancelled it."""
        running = asyncio.create_task(work)
        desk.running[request.asker] = running
        try:
            return await running
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            return None
        finally:
            if desk.running.get(request.asker) is running:
                del desk.running[request.asker]
