"""The language server's connection to the engine, which it finds or starts when needed, and again when it dies."""

import asyncio
import logging
import time
from collections.abc import Callable
from contextlib import AbstractContextManager

from engine.client.connection import EngineClient, EngineFailure
from engine.client.launcher import EngineOptions, connect_or_start, stop, stop_running
from engine.errors import EngineUnavailable, MidspanError, RemoteError, describe
from engine.library.store import DEFAULT, chosen_model
from engine.protocol.messages import Fill, Filled, Progress, Read
from lsp_server.engine_link.progress_bar import Bar
from lsp_server.engine_link.status import DIED, IDLE, StatusBoard

_logger = logging.getLogger(__name__)

CLIENT_NAME = "midspan-lsp"
FIRST_DELAY_S = 0.5
LONGEST_DELAY_S = 30.0
_GOODBYE_S = 10.0
LEFT = "The engine has stopped; it starts again with the next request."
_START_STATES = {
    "connecting": "Looking for the engine.",
    "starting": "Starting the engine.",
    "loading": "Loading the model.",
    "ready": "The engine answers.",
}
SILENT_S = 2.0
"""A client that waits and hears nothing for so long asks for the status, which takes an engine no time."""
ANSWER_S = 5.0
"""An engine that has not answered that by then is taken for stopped; a busy machine has some time."""


class EngineLink:
    """One connection, shared by all requests of the session.

    Nothing starts before `configure` has set the options. After a failed start or a lost engine the next start waits
    `delay_s`: 0.5 s at first, then twice as long each time, at most 30 s. A successful fill resets the delay.
    """

    def __init__(self, board: StatusBoard, bar: Callable[[], AbstractContextManager[Bar]]) -> None:
        self._board = board
        self._bar = bar
        self._options: EngineOptions | None = None
        self._configured = asyncio.Event()
        self._needed = False
        self._client: EngineClient | None = None
        self._starting: asyncio.Task[None] | None = None
        self._watching: asyncio.Task[None] | None = None
        self._closing: set[asyncio.Task[None]] = set()
        self._error = EngineUnavailable("the engine is not running")
        self._refusal: EngineUnavailable | None = None
        self._silence = SilenceWatch(self._silent)
        self._on_connect: list[Callable[[EngineClient], None]] = []
        self.delay_s = FIRST_DELAY_S
        self._not_before = 0.0

    def configure(self, options: EngineOptions) -> None:
        """Use the engine with these options. One with other options keeps running, as other editors may use it."""
        if options == self._options:
            return
        if self._refusal is not None:
            self._refusal = None
            self._board.show("idle", IDLE)
        self._options = options
        self._configured.set()
        self._reset_delay()
        self._disconnect()
        if self._needed:
            self.wake()

    def refuse(self, reason: str) -> None:
        """Use no engine until the next `configure`, and show why in one line."""
        self._options, self._refusal = None, EngineUnavailable(reason)
        self._configured.set()
        self._disconnect()
        self._board.show("error", reason)

    def on_connect(self, callback: Callable[[EngineClient], None]) -> None:
        """Call `callback` with each new client: at the first connection, and after the engine was lost."""
        self._on_connect.append(callback)

    @property
    def connected(self) -> EngineClient | None:
        """The connected client, or None; nothing is started."""
        return self._client

    def ready(self) -> EngineClient | None:
        """Return the connected client. When there is none, start connecting and return None."""
        if self._client is not None and self._client.closed.is_set():
            self._lost()
        if self._client is None:
            self.wake()
        return self._client

    def wake(self) -> None:
        """Connect in the background, unless connected, connecting, or waiting after a failure."""
        self._needed = True
        if self._options is None or self._client is not None or self._starting is not None:
            return
        if time.monotonic() >= self._not_before:
            self._starting = asyncio.create_task(self._start(self._options))

    async def client(self) -> EngineClient:
        """Return the connected client, waiting for the engine to start. Raises EngineUnavailable with the reason."""
        await self._configured.wait()
        if self._refusal is not None:
            raise self._refusal
        self._not_before = 0.0
        self.ready()
        while self._starting is not None:
            # wait() does not cancel the start when this caller is cancelled: others wait for it too.
            await asyncio.wait({self._starting})
        if self._client is None:
            raise self._refusal or self._error
        return self._client

    async def started(self) -> EngineClient | None:
        """Return the client once a start that is under way is over; None if there is no start, or it fails."""
        await self._configured.wait()
        self.ready()
        if self._starting is not None:
            await asyncio.wait({self._starting})
        return self._client

    async def fill(
        self, client: EngineClient, fill: Fill | Read, on_progress: Callable[[Progress], None] | None = None
    ) -> Filled:
        """Fill or read a hole; cancelling the awaiting task cancels it in the engine. Raises MidspanError."""
        with self._board.filling():
            self._board.counts.asked += 1
            self._silence.begin(client)
            try:
                filled = await (client.fill(fill, on_progress) if isinstance(fill, Fill) else client.ask(fill))
            except EngineFailure as error:
                if error.code == RemoteError.code:  # The model's server failed; the engine itself runs.
                    self._board.show("error", str(error))
                raise
        self._board.connected((self._client or client).welcome.model)  # since a change-over it is another one
        self._reset_delay()
        return filled

    async def restart(self) -> EngineClient:
        """Stop the engine, for all its clients, and start it again; kill one that does not answer.

        Raises MidspanError when that fails.
        """
        await self._configured.wait()
        if self._options is None:
            raise self._refusal or self._error
        client, self._client = self._client, None
        self._stop_starting()  # It may wait for an engine that does not answer.
        self._not_before = time.monotonic() + _GOODBYE_S  # No request should connect to the stopping engine.
        if client is None:
            await stop_running(self._options, CLIENT_NAME)
        else:
            try:
                await stop(client, self._options.paths)
            finally:
                await client.close()
        self._reset_delay()
        return await self.client()

    async def close(self) -> None:
        """Close the connection and cancel a running start. The engine itself keeps running for others."""
        self._disconnect()
        if self._closing:
            await asyncio.wait(self._closing)

    def _disconnect(self) -> None:
        self._silence.end()
        self._stop_starting()
        if self._client is not None:
            closing = asyncio.create_task(self._client.close())
            self._closing.add(closing)
            closing.add_done_callback(self._closing.discard)
            self._client = None

    def _stop_starting(self) -> None:
        if self._starting is not None:
            self._starting.cancel()
            self._starting = None

    async def _start(self, options: EngineOptions) -> None:
        if options.model == DEFAULT and (problem := chosen_model().problem):
            _logger.warning("%s", problem)
        try:
            with self._bar() as bar:

                def report(state: str) -> None:
                    message = _START_STATES.get(state, state)
                    bar.report(message)
                    self._board.show("starting", message)

                report("connecting")
                client = await connect_or_start(options, CLIENT_NAME, report)
        except (MidspanError, OSError) as error:
            self._failed(str(error))
            return
        except Exception as error:
            self._failed(f"the engine could not be started ({describe(error)}); see `midspan doctor`")
            return
        finally:
            if self._starting is asyncio.current_task():
                self._starting = None
        self._take(client)

    async def change_over(self) -> EngineClient | None:
        """Use the engine that the options name now, once it answers, and return the client of the one before.

        The default model may be another one since. Until then, and if this fails, the present engine answers. Raises
        MidspanError or OSError.
        """
        options = self._options
        if options is None:
            raise self._refusal or self._error
        client = await connect_or_start(options, CLIENT_NAME)
        if options != self._options:
            await client.close()
            raise EngineUnavailable("the settings of the engine have changed meanwhile")
        self._stop_starting()
        before = self._client
        self._take(client)
        return before

    def _take(self, client: EngineClient) -> None:
        self._client = client
        self._watching = asyncio.create_task(self._watch(client))
        model = client.welcome.model
        self._board.connected(model)
        _logger.info("connected to the engine (process %d, model %s)", client.welcome.pid, model.name)
        for callback in self._on_connect:
            callback(client)

    def _failed(self, reason: str) -> None:
        self._error = EngineUnavailable(reason)
        self._postpone()
        self._board.show("error", reason)
        _logger.error("%s", reason)

    async def _watch(self, client: EngineClient) -> None:
        await client.closed.wait()
        if self._client is client:
            self._lost()

    def _lost(self) -> None:
        """Note that the engine died, or stopped because nobody used it. The next request starts it again."""
        stopped = self._client is not None and self._client.was_shut_down
        self._client = None
        self._postpone()
        message = LEFT if stopped else DIED
        self._error = EngineUnavailable(message)
        self._board.show("idle" if stopped else "error", message)
        _logger.log(logging.INFO if stopped else logging.ERROR, "%s", message)

    def _silent(self, client: EngineClient) -> None:
        """Give a connection up whose engine does not answer. The next request tries again."""
        if self._client is client:
            self._disconnect()
            self._failed(
                f"the engine (process {client.welcome.pid}) does not answer; it may be stopped. "
                "The command midspan.restartEngine ends it and starts another"
            )

    def _postpone(self) -> None:
        self._not_before = time.monotonic() + self.delay_s
        self.delay_s = min(self.delay_s * 2, LONGEST_DELAY_S)

    def _reset_delay(self) -> None:
        self.delay_s = FIRST_DELAY_S
        self._not_before = 0.0


class SilenceWatch:
    """Watches a client while fills wait. Calls `on_silence(client)` once if the engine no longer answers anything.

    It may be stopped, or hang: nobody would ever get an answer from it.
    """

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
