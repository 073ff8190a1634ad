"""What a slow model does before the user asks: it reads at the resting cursor, and fills after the suggestion shown.

Nobody waits for either, so both give way to all fills. A server is never asked: the user pays for each of its requests,
and it cannot put off what nobody waits for.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable

import attrs
from lsprotocol import types

from engine.client.connection import EngineClient
from engine.errors import MidspanError, describe
from engine.protocol.messages import Fill, Filled, ModelInfo, Read
from lsp_server.documents.store import Snapshot, offset_in
from lsp_server.session import Session
from lsp_server.suggest.restraint import Restraint
from lsp_server.wire import CursorParams

_logger = logging.getLogger(__name__)

SLOW_MS = 20.0
"""A fill that takes so long, from request to answer, is made ahead: the next one is to be there within 30 ms."""
SLOW_PARAMETERS = 50_000_000
"""On a CPU a model of this size needs some 50 ms for its context; a smaller one reads it when it is asked."""
_PAUSE_S = 0.1
"""A user who types on asks again before that, so most texts that nobody takes are not filled ahead."""
_OPENED_PAUSE_S = 0.5
"""A document may be one of many that an editor opens at its start."""
_FILL_MS, _READ_MS = 3_000.0, 10_000.0
"""Nobody waits, so both have more time than what somebody waits for."""


def _is_slow(session: Session, model: ModelInfo) -> bool:
    """Return whether the fills of a model take longer than a reader notices, and may be made ahead."""
    return not model.server and (session.board.median_ms or 0.0) >= SLOW_MS


async def _quietly(done: str, work: Callable[[], Awaitable[Filled | None]]) -> Filled | None:
    """Return what `work` returns, or None: then the user's request asks as usual. `done` says in a log what it is."""
    try:
        return await work()
    except MidspanError as error:
        _logger.debug("nothing was %s ahead: %s", done, error)
    except Exception as error:
        _logger.error("nothing was %s ahead: %s; please report this", done, describe(error))
    return None


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
    """The fill after the suggestion on a document's screen: a user who takes that has the next one at once."""

    def __init__(self, session: Session, restraint: Restraint) -> None:
        self._session = session
        self._restraint = restraint
        self._aim: _Aim | None = None

    def aim(self, snapshot: Snapshot, offset: int, shown: str) -> None:
        """Fill ahead after `shown`, which is on the screen at `offset`. A fill that leads to the same text goes on."""
        client = self._session.link.connected
        if client is None or not _is_slow(self._session, client.welcome.model):
            return
        text, end = snapshot.text[:offset] + shown + snapshot.text[offset:], offset + len(shown)
        last = self._aim
        if last is not None and (last.offset, last.text, last.client) == (end, text, client):
            return
        self.drop()
        aim = self._aim = _Aim(text, end, client)

        def begin() -> None:
            work = _quietly("filled", lambda: self._fill(aim, snapshot, offset, shown))
            aim.running = asyncio.create_task(work)

        aim.begun = asyncio.get_running_loop().call_later(_PAUSE_S, begin)

    def take(self, client: EngineClient, fill: Fill) -> Filled | None:
        """Return the answer to `fill` if it was made ahead."""
        aim = self._aim
        if aim is None or aim.client is not client or aim.fill != fill:
            return None
        answer = aim.running.result() if aim.running is not None and aim.running.done() else None
        self.drop()
        return answer

    def drop(self) -> None:
        """Drop what was made, or is being made."""
        aim, self._aim = self._aim, None
        if aim is not None:
            aim.drop()

    async def _fill(self, aim: _Aim, snapshot: Snapshot, offset: int, shown: str) -> Filled | None:
        # New settings may have excluded the file during the pause.
        if self._session.why_not_served(snapshot.uri) is not None:
            return None
        model, settings = aim.client.welcome.model, self._session.configuration.settings
        # A wrong start counts for the cursor's line only.
        price = settings.gate if "\n" in shown else self._restraint.price(settings.gate)
        after = snapshot.replaced(offset, offset, shown)
        aim.fill = self._session.plan(after, aim.offset, model, attrs.evolve(settings, gate=price)).fill
        patient = attrs.evolve(aim.fill, ahead=True, budget_ms=max(aim.fill.budget_ms, _FILL_MS))
        return await aim.client.fill(patient)


@attrs.frozen
class _Rest:
    """Where the cursor rests, or probably rests. `pause_s`: it may go on within so many seconds."""

    uri: str
    position: types.Position
    pause_s: float = 0.0


class ReadAhead:
    """Reads where the cursor came to rest last, so that the first suggestion there does not wait for it.

    A model with a hundred million parameters reads its context for half a second on a CPU. The engine keeps what it
    read. This starts no engine.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._rest: _Rest | None = None
        """Where is read, or will be once the engine is there."""
        self._reading: asyncio.Task[Filled | None] | None = None
        self._is_told = False
        """Whether this editor tells where its cursor is."""
        session.link.on_connect(self._read)
        session.on_open.append(self.opened)
        session.on_close.append(self.closed)

    def cursor_moved(self, params: CursorParams) -> None:
        """Read at the cursor, which an editor reports once it rests."""
        self._is_told = True
        self._begin(_Rest(params.text_document.uri, params.position))

    def opened(self, uri: str) -> None:
        """Read at the start of a document, unless the editor tells where its cursor is."""
        if not self._is_told and self._session.served(uri) is not None:
            self._begin(_Rest(uri, types.Position(0, 0), _OPENED_PAUSE_S))

    def closed(self, uri: str) -> None:
        """Stop reading in a closed document."""
        if self._rest is not None and self._rest.uri == uri:
            self.stop()

    def stop(self) -> None:
        """Stop reading: the user asks for something, or the text changes. The read context is kept."""
        self._rest = None
        if self._reading is not None:
            self._reading.cancel()
            self._reading = None

    def _begin(self, rest: _Rest) -> None:
        self.stop()
        self._rest = rest
        if (client := self._session.link.connected) is not None:
            self._read(client)

    def _read(self, client: EngineClient) -> None:
        model, rest = client.welcome.model, self._rest
        reads_slowly = not model.server and model.device == "cpu" and model.parameters >= SLOW_PARAMETERS
        if rest is not None and (reads_slowly or _is_slow(self._session, model)):
            self._reading = asyncio.create_task(_quietly("read", lambda: self._run(rest, client)))

    async def _run(self, rest: _Rest, client: EngineClient) -> Filled | None:
        session = self._session
        await asyncio.sleep(rest.pause_s)
        # The settings are looked at only now: they may come, or change, after the document was opened.
        snapshot = await session.parsed(rest.uri) if session.is_automatic else None
        if snapshot is None:
            return None
        offset = offset_in(snapshot.source, rest.position, session.encoding)
        plan = session.plan_unasked(snapshot, offset, client.welcome.model, session.configuration.settings)
        # All else stays as in the user's request, because the layout of the context depends on it.
        return await client.ask(attrs.evolve(Read.of(plan.fill), budget_ms=_READ_MS))
