"""The engine's end of one client's connection: it reads frames, gives fills to the backend and writes the answers."""

import asyncio
import hmac
import logging
from contextlib import suppress
from typing import Protocol

from engine.errors import MidspanError, ProtocolError
from engine.protocol.framing import pack, read_frame
from engine.protocol.memory_messages import Forget, Learn, MemoryStatusRequest
from engine.protocol.messages import (
    PROTOCOL_VERSION,
    Cancel,
    Failed,
    Fill,
    Filled,
    Hello,
    Message,
    Shutdown,
    Status,
    StatusRequest,
    Welcome,
)
from engine.schedule.backend import Backend, Ticket
from engine.server.limits import limit_error
from engine.server.memory_requests import MemoryRequests

HELLO_TIMEOUT_S = 10.0
# A client with this many unread bytes is dropped.
MAX_UNREAD_BYTES = 8 * 1024 * 1024
MAX_OPEN_FILLS = 64
_LAST_READ_S = 1.0
_log = logging.getLogger(__name__)


class SessionHost(Protocol):
    """What a session needs from the server that it belongs to."""

    backend: Backend
    welcome: Welcome
    token: str
    stopping: bool

    def touch(self) -> None:
        """Note that a client uses the engine, so that it does not end as idle."""

    def status(self) -> Status:
        """Return the state of the engine."""
        ...

    def stop(self, reason: str) -> None:
        """Ask the engine to end."""


class ClientSession:
    """Answers every frame of a client, valid or not, until the client or the engine ends the connection."""

    def __init__(
        self, number: int, host: SessionHost, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._number = number
        self._host = host
        self._reader = reader
        self._writer = writer
        self._tickets: dict[int, Ticket] = {}
        self._memory = MemoryRequests(host.backend, self._send, _internal)
        self._is_ending = False

    @property
    def open_fills(self) -> int:
        return len(self._tickets)

    async def run(self) -> None:
        """Serve the client until its connection ends, then cancel its open fills."""
        try:
            if await self._greet():
                await self._serve()
            await self._let_client_read()
        except OSError:
            pass  # the client is gone
        finally:
            for ticket in self._tickets.values():
                self._host.backend.cancel(ticket)
            self._tickets.clear()
            self._memory.close()
            self._writer.close()
            _log.info("client %d left", self._number)

    def fail(self, code: str, message: str) -> None:
        """Send Failed for every open fill and for the connection, and cancel the fills."""
        for fill_id, ticket in self._tickets.items():
            self._send(Failed(code, message, fill_id))
            self._host.backend.cancel(ticket)
        self._tickets.clear()
        self._memory.close()
        self._send(Failed(code, message))

    def close(self) -> None:
        """Send what is written and end the connection."""
        self._writer.close()

    def abort(self) -> None:
        """End the connection at once and drop what is not sent."""
        self._writer.transport.abort()

    async def _greet(self) -> bool:
        try:
            async with asyncio.timeout(HELLO_TIMEOUT_S):
                hello = await read_frame(self._reader)
        except TimeoutError:
            self.fail("hello-expected", f"no whole Hello came within {HELLO_TIMEOUT_S:.0f} s; send it first")
            return False
        except ProtocolError as error:
            self.fail(error.code, str(error))
            return False
        if hello is None:
            return False
        if not isinstance(hello, Hello):
            self.fail("hello-expected", f"the first frame was {type(hello).__name__}; send Hello first")
        elif hello.protocol != PROTOCOL_VERSION:
            self.fail(
                "version",
                f"the client speaks protocol {hello.protocol} and this engine {PROTOCOL_VERSION}; "
                "update the older of the two, then run `midspan engine stop`",
            )
        elif self._host.token and not hmac.compare_digest(hello.token.encode(), self._host.token.encode()):
            self.fail("token", "the token is not this engine's; read it from the token file beside the engine's lock")
        else:
            self._host.touch()
            self._send(self._host.welcome)
            _log.info("client %d is %.40r", self._number, hello.client)
            return True
        return False

    async def _serve(self) -> None:
        while not self._writer.is_closing():
            try:
                message = await read_frame(self._reader)
            except ProtocolError as error:
                _log.warning("client %d sent a bad frame: %s", self._number, error.code)
                self._send(Failed(error.code, str(error)))
                if error.code in ("too-large", "incomplete"):  # the next frame cannot be found
                    return
            else:
                if message is None:
                    return
                self._host.touch()
                try:
                    self._handle(message)
                except Exception as error:  # our own mistake must not end the engine
                    self._send(_internal(error, getattr(message, "id", None)))
            # Reading a frame that has already arrived does not yield, so give the other clients a turn here.
            await asyncio.sleep(0)

    async def _let_client_read(self) -> None:
        """Wait until the client has read our last messages. Closing with its bytes unread would discard them."""
        self._is_ending = True
        with suppress(TimeoutError):
            async with asyncio.timeout(_LAST_READ_S):
                self._writer.write_eof()
                while await self._reader.read(65536):
                    pass

    def _handle(self, message: Message) -> None:
        if isinstance(message, Fill):
            self._fill(message)
        elif isinstance(message, Cancel):
            ticket = self._tickets.get(message.id)
            if ticket is not None:  # otherwise the answer and the Cancel crossed
                self._host.backend.cancel(ticket)
        elif isinstance(message, Learn | Forget | MemoryStatusRequest):
            self._memory.begin(message)
        elif isinstance(message, StatusRequest):
            self._send(self._host.status())
        elif isinstance(message, Shutdown):
            self._host.stop(f"client {self._number} asked for it")
        else:
            name = type(message).__name__
            allowed = "Fill, Cancel, Learn, Forget, MemoryStatusRequest, StatusRequest or Shutdown"
            self._send(Failed("unexpected", f"a client cannot send {name} here; send {allowed}"))

    def _fill(self, fill: Fill) -> None:
        error = limit_error(fill)
        if self._host.stopping:
            self._send(Failed("shutting-down", "the engine is ending; connect again to start a new one", fill.id))
        elif error is not None:
            self._send(Failed("bad-value", error, fill.id))
        elif fill.id in self._tickets:
            self._send(Failed("bad-value", f"id {fill.id} is of a fill that still runs; use another id", fill.id))
        elif len(self._tickets) >= MAX_OPEN_FILLS:
            self._send(Failed("busy", f"this client has {MAX_OPEN_FILLS} open fills already; cancel some", fill.id))
        else:
            ticket = self._host.backend.submit(fill, self._send if fill.progress else None, self._number)
            self._tickets[fill.id] = ticket
            ticket.result.add_done_callback(lambda result: self._answer(fill.id, ticket, result))

    def _answer(self, fill_id: int, ticket: Ticket, result: asyncio.Future[Filled]) -> None:
        error = None if result.cancelled() else result.exception()
        if self._tickets.get(fill_id) is not ticket:
            return  # it was answered before
        del self._tickets[fill_id]
        self._host.touch()
        if error is None and not result.cancelled():
            filled = result.result()
            _log.debug("client %d: %d steps, %.0f ms", self._number, filled.steps, filled.ms.total)
            self._send(filled)
        elif error is None or isinstance(error, MidspanError):
            code = "cancelled" if error is None else error.code
            self._send(Failed(code, str(error or "the fill was cancelled"), fill_id))
        else:
            self._send(_internal(error, fill_id))

    def _send(self, message: Message) -> None:
        if self._is_ending or self._writer.is_closing():
            return
        try:
            frame = pack(message)
        except (ProtocolError, UnicodeEncodeError) as error:
            frame = pack(_internal(error, getattr(message, "id", None)))
        self._writer.write(frame)
        if self._writer.transport.get_write_buffer_size() > MAX_UNREAD_BYTES:
            _log.warning("client %d does not read its answers: dropped", self._number)
            self.abort()


def _internal(error: BaseException, fill_id: int | None) -> Failed:
    _log.error("a request failed", exc_info=error)
    return Failed("internal", f"the engine failed on this request ({type(error).__name__}); see its log", fill_id)
