"""The fill after the suggestion on the screen, made while the user still reads that: who takes it has the next at once.

It pays only where a fill takes longer than a reader notices, so a fast model is not asked ahead.
"""

import asyncio
import logging

import attrs

from engine.client.connection import EngineClient
from engine.errors import MidspanError
from engine.protocol.messages import Fill, Filled
from lsp_server.documents.store import Snapshot
from lsp_server.log import describe
from lsp_server.requests.session import Session
from lsp_server.suggest.restraint import Restraint

_logger = logging.getLogger(__name__)

SLOW_MS = 20.0
"""A fill that takes so long, from request to answer, is made ahead: the next one is to be there within 30 ms."""
_PAUSE_S = 0.1
"""A user who types on asks again before that, so most texts that nobody takes are not filled ahead."""
_PATIENCE_MS = 3000.0
"""Nobody waits for the fill, and it gives way to all others, so it has more time than others."""


@attrs.define
class _Aim:
    """The text as it will be once the suggestion is taken, the fill there, and the task that has its answer."""

    text: str
    offset: int
    client: EngineClient
    begun: asyncio.TimerHandle | None = None
    fill: Fill | None = None
    running: asyncio.Task[Filled | None] | None = None

    def drop(self) -> None:
        if self.begun is not None:
            self.begun.cancel()
        if self.running is not None:
            self.running.cancel()


class Ahead:
    """One fill ahead for each document."""

    def __init__(self, session: Session, restraint: Restraint) -> None:
        self._session = session
        self._restraint = restraint
        self._aims: dict[str, _Aim] = {}

    def aim(self, snapshot: Snapshot, offset: int, shown: str) -> None:
        """Fill ahead after `shown`, which is on the screen at `offset`. What leads to the same text goes on."""
        client = self._session.link.connected
        # A server would be asked twice as often, and cannot put off what nobody waits for.
        if client is None or client.welcome.model.server or (self._session.board.median_ms or 0.0) < SLOW_MS:
            return
        text, end = snapshot.text[:offset] + shown + snapshot.text[offset:], offset + len(shown)
        last = self._aims.get(snapshot.uri)
        if last is not None and (last.offset, last.text, last.client) == (end, text, client):
            return
        self.forget(snapshot.uri)
        aim = self._aims[snapshot.uri] = _Aim(text, end, client)

        def begin() -> None:
            aim.running = asyncio.create_task(self._run(aim, snapshot, offset, shown))

        aim.begun = asyncio.get_running_loop().call_later(_PAUSE_S, begin)

    def take(self, uri: str, client: EngineClient, fill: Fill) -> Filled | None:
        """Return the answer to `fill` if it was made ahead."""
        aim = self._aims.get(uri)
        if aim is None or aim.client is not client or aim.fill != fill:
            return None
        answer = aim.running.result() if aim.running is not None and aim.running.done() else None
        self.forget(uri)
        return answer

    def forget(self, uri: str) -> None:
        """Drop what was made, or is being made, for a document."""
        if (aim := self._aims.pop(uri, None)) is not None:
            aim.drop()

    def forget_all(self) -> None:
        """Drop everything."""
        for uri in list(self._aims):
            self.forget(uri)

    async def _run(self, aim: _Aim, snapshot: Snapshot, offset: int, shown: str) -> Filled | None:
        """Return the answer to the fill of `aim`, or None: then the user's request asks as usual."""
        # New settings may have excluded the file during the pause.
        if self._session.why_not_served(snapshot.uri) is not None:
            return None
        model, settings = aim.client.welcome.model, self._session.configuration.settings
        # What was typed wrong counts for the cursor's line only.
        price = settings.gate if "\n" in shown else self._restraint.price(snapshot.uri, settings.gate)
        try:
            after = snapshot.replaced(offset, offset, shown)
            aim.fill = self._session.plan(after, aim.offset, model, attrs.evolve(settings, gate=price)).fill
            patient = attrs.evolve(aim.fill, ahead=True, budget_ms=max(aim.fill.budget_ms, _PATIENCE_MS))
            return await aim.client.fill(patient)
        except MidspanError as error:
            _logger.debug("nothing was filled ahead: %s", error)
        except Exception as error:
            _logger.error("nothing was filled ahead: %s; please report this", describe(error))
        return None
