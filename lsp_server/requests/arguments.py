"""The next edit after a signature changed: the calls in the file follow it, one by one.

Trees say where. What is put in for a new parameter is a hole, and the model that fills code fills it.
"""

import asyncio
import logging

import attrs

from engine.errors import MidspanError
from engine.protocol.confidence import FREE
from engine.protocol.messages import Candidate, Fill
from lsp_server.documents.store import Snapshot
from lsp_server.languages.language import Language, balance
from lsp_server.refactor.search import Worker
from lsp_server.refactor.signatures import ArgumentPlace, SignatureChange, signature_change
from lsp_server.session import Session
from lsp_server.suggest.pipeline import Plan
from lsp_server.suggest.rewritten import Verdict, likely, worse

_logger = logging.getLogger(__name__)
_SETTLED_S = 0.5
"""So long nothing is offered: each start of a parameter's name is a name too."""
_MOST_ASKED = 4
"""The holes that a model fills before it is silent about all others too."""
_BUDGET_MS = 10_000.0
_MAX_TOKENS = 24
_ENDS = frozenset(",;)]}\n")


@attrs.frozen
class ArgumentPrice:
    """How likely an argument must be, as a geometric mean over its tokens.

    bound: that of the variable which has the parameter's name, where one is known at the call. See docs/next-edit.md.
    """

    mean: float = 0.95
    bound: float = 0.4


@attrs.frozen
class _Known:
    """What was found for a version of a document. `change` is None where no call is to follow."""

    version: int
    change: SignatureChange | None
    edit: Verdict | None


class Arguments:
    """Finds the calls that a changed signature leaves behind, and keeps the last answer of each document."""

    def __init__(self, session: Session, worker: Worker, price: ArgumentPrice | None = None) -> None:
        self._session, self._worker, self._price = session, worker, price or ArgumentPrice()
        self._known: dict[str, _Known] = {}
        self._refused: set[tuple[str, str, str]] = set()
        """The functions and parameters of documents that the user wants no calls to follow."""

    async def find(self, snapshot: Snapshot, offset: int) -> Verdict | None:
        """Return the next edit of a call, from `offset` on first; None without one. To cancel it cancels the engine."""
        newest = snapshot.edits.newest
        if newest is None or newest.undone or snapshot.language.grammar is None:
            return None
        known = self._known.get(snapshot.uri)
        if known is not None and known.version == snapshot.version:
            return known.edit
        try:
            change, edit = await self._followed(snapshot), None
            if change is not None:
                await asyncio.sleep(_SETTLED_S)
                edit = await self._edit(snapshot, change, offset)
        except MidspanError as error:
            _logger.warning("no argument for a call: %s", error)
            return None
        self._known[snapshot.uri] = _Known(snapshot.version, change, edit)
        return edit

    def refuse(self, snapshot: Snapshot) -> None:
        """Let no call follow the signature whose call was offered last, if that was in this version."""
        known = self._known.get(snapshot.uri)
        if known is not None and known.version == snapshot.version and known.change is not None:
            self._refused.add((snapshot.uri, known.change.function, known.change.parameter))
            self._known[snapshot.uri] = attrs.evolve(known, edit=None)

    async def _followed(self, snapshot: Snapshot) -> SignatureChange | None:
        """Return the signature that calls are to follow; None without one."""
        change = await self._worker.run(signature_change, snapshot.edits.all, snapshot.language.id, snapshot.path)
        if change is None or not change.places:
            return None
        return None if (snapshot.uri, change.function, change.parameter) in self._refused else change

    def closed(self, uri: str) -> None:
        """Drop a closed document."""
        self._known.pop(uri, None)
        self._refused = {one for one in self._refused if one[0] != uri}

    async def _edit(self, snapshot: Snapshot, change: SignatureChange, offset: int) -> Verdict | None:
        places = sorted(change.places, key=lambda place: place.end < offset)
        if not change.is_added:
            return Verdict(places[0].start, places[0].end, "") if places else None
        for place in places[:_MOST_ASKED]:
            answer = await self._filled(snapshot, place)
            if answer is not None:
                edit = argument_edit(snapshot, change.parameter, place, answer, self._price)
                _logger.debug("an argument: %s", edit.reason or "offered")
                if not edit.reason:
                    return edit
        return None

    async def _filled(self, snapshot: Snapshot, place: ArgumentPlace) -> Candidate | None:
        """Return the model's text for an argument; None without a model. It starts no engine: typing does that."""
        client = self._session.link.connected if self._session.is_automatic else None
        if client is None:
            return None
        opened, at = opened_at(snapshot, place)
        settings = attrs.evolve(self._session.configuration.settings, gate=FREE)
        plan = self._session.plan_unasked(opened, at, client.welcome.model, settings)
        filled = await self._session.link.fill(client, fill_of(plan))
        return filled.candidates[0]


def fill_of(plan: Plan) -> Fill:
    """Return the request for an argument: nobody waits for it."""
    return attrs.evolve(plan.fill, extent="line", max_tokens=_MAX_TOKENS, budget_ms=_BUDGET_MS, ahead=True)


def opened_at(snapshot: Snapshot, place: ArgumentPlace) -> tuple[Snapshot, int]:
    """Return the text with a hole in the place of an argument, and the offset of the hole."""
    return snapshot.replaced(place.start, place.end, place.before + place.after), place.start + len(place.before)


def argument_edit(
    snapshot: Snapshot, parameter: str, place: ArgumentPlace, answer: Candidate, price: ArgumentPrice
) -> Verdict:
    """Return the edit that gives a call the argument which a model wrote, with the reason if it is not offered."""
    text = leading_argument(answer, snapshot.language)
    start = answer.text.find(text)
    mean, least = likely(answer, start, start + len(text)) if text else (0.0, 0.0)
    whole = Verdict(place.start, place.end, place.before + text + place.after, "", mean, least)
    if text == parameter and not place.is_bound:
        reason = "unknown name"
    elif not text or mean < (price.bound if text == parameter else price.mean):
        reason = "unsure"
    else:
        reason = worse(snapshot, whole)
    return attrs.evolve(whole, reason=reason)


def leading_argument(answer: Candidate, language: Language) -> str:
    """Return the start of a fill that is one argument; "" if the fill ended inside of it."""
    text = answer.text
    for end, char in enumerate(text):
        if char in _ENDS:
            before = balance(text[:end], language)
            if not before.opened and not before.quote:
                return text[:end].strip()
    return text.strip() if answer.finish == "complete" else ""
