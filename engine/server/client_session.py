"""The engine's end of one client's connection: it reads frames, gives fills to the backend and writes the answers."""

import asyncio
import hmac
import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Generic, Protocol, TypeVar

import attrs

from engine.errors import MidspanError, ProtocolError
from engine.protocol.framing import limit_error, memory_limit_error, pack, read_frame
from engine.protocol.memory_messages import (
    MOST_REQUESTS,
    Forget,
    Learn,
    MemoryRequest,
    MemoryStatusRequest,
    MemoryUpdated,
)
from engine.protocol.messages import (
    PROTOCOL_VERSION,
    Cancel,
    Failed,
    Fill,
    Filled,
    Hello,
    HoleRequest,
    Message,
    Progress,
    Score,
    Shutdown,
    Status,
    StatusRequest,
    Welcome,
)
from engine.schedule.backend import Backend, Ticket

HELLO_TIMEOUT_S = 10.0
# A client with this many unread bytes is dropped.
MAX_UNREAD_BYTES = 8 * 1024 * 1024
MAX_OPEN_FILLS = 64
_LAST_READ_S = 1.0
_log = logging.getLogger(__name__)


Held = TypeVar("Held")
Answer = TypeVar("Answer")


class SessionHost(Protocol):
    """What a session needs from the server that it belongs to."""

    backend: Backend
    workspace_users: "WorkspaceUsers"
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


@attrs.define
class WorkspaceUsers:
    """Which clients have had the engine learn files of which workspaces. Two editors may have the same folder."""

    _users: dict[str, set[object]] = attrs.field(factory=dict)

    def add(self, workspace: str, client: object) -> None:
        """Note that a client uses a workspace."""
        self._users.setdefault(workspace, set()).add(client)

    def leave(self, workspace: str, client: object) -> bool:
        """Note that a client leaves a workspace. Return whether others still use it."""
        users = self._users.get(workspace, set())
        users.discard(client)
        if not users:
            self._users.pop(workspace, None)
        return bool(users)

    def leave_all(self, client: object) -> None:
        """Note that a client is gone."""
        for workspace in list(self._users):
            self.leave(workspace, client)


@attrs.define(eq=False)
class OpenRequests(Generic[Held]):
    """The requests of one kind that a client waits for. `held` has what the backend gave for each, by its id.

    send: sends an answer. most: how many may be open. kind, busy, cancelled: words of the answers that refuse.
    """

    send: Callable[[Message], None]
    most: int
    kind: str
    busy: str
    cancelled: str
    held: dict[int, Held] = attrs.field(factory=dict)

    def refusal(self, request_id: int, error: str | None) -> Failed | None:
        """Return why a request cannot be opened; None if it can. error: what is wrong with its fields."""
        if error is not None:
            return Failed("bad-value", error, request_id)
        if request_id in self.held:
            message = f"id {request_id} is of a {self.kind} that still runs; use another id"
            return Failed("bad-value", message, request_id)
        return Failed("busy", self.busy, request_id) if len(self.held) >= self.most else None

    def open(
        self, request_id: int, held: Held, future: asyncio.Future[Answer], answer: Callable[[Answer], Message]
    ) -> None:
        """Send what `answer` makes of the future's result, or Failed, unless the request was dropped before."""
        self.held[request_id] = held
        future.add_done_callback(lambda done: self._end(request_id, held, done, answer))

    def _end(
        self, request_id: int, held: Held, done: asyncio.Future[Answer], answer: Callable[[Answer], Message]
    ) -> None:
        error = None if done.cancelled() else done.exception()
        if self.held.get(request_id) is not held:
            return  # nobody waits for it any more
        del self.held[request_id]
        if done.cancelled():
            self.send(Failed("cancelled", self.cancelled, request_id))
        elif isinstance(error, MidspanError):
            self.send(Failed(error.code, str(error), request_id))
        else:
            self.send(answer(done.result()) if error is None else _internal(error, request_id))


class ClientSession:
    """Answers every frame of a client, valid or not, until the client or the engine ends the connection."""

    def __init__(
        self, number: int, host: SessionHost, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._number = number
        self._host = host
        self._reader = reader
        self._writer = writer
        self._fills = OpenRequests[Ticket](
            self._answer,
            MAX_OPEN_FILLS,
            "fill",
            f"this client has {MAX_OPEN_FILLS} open fills already; cancel some",
            "the fill was cancelled",
        )
        self._memory = OpenRequests[object](
            self._answer,
            MOST_REQUESTS,
            "request",
            f"{MOST_REQUESTS} files of this client wait already; wait for an answer",
            "the engine is ending; connect again and send the file again",
        )
        self._is_ending = False

    @property
    def open_fills(self) -> int:
        return len(self._fills.held)

    async def run(self) -> None:
        """Serve the client until its connection ends, then cancel its open fills."""
        try:
            if await self._greet():
                await self._serve()
            await self._let_client_read()
        except OSError:
            pass  # the client is gone
        finally:
            self._drop_all()
            self._writer.close()
            _log.info("client %d left", self._number)

    def fail(self, code: str, message: str) -> None:
        """Send Failed for every open fill and for the connection, and cancel the fills."""
        for fill_id in self._fills.held:
            self._send(Failed(code, message, fill_id))
        self._drop_all()
        self._send(Failed(code, message))

    def close(self) -> None:
        """Send what is written and end the connection; a client that is sending still reads why."""
        self._is_ending = True
        with suppress(OSError):  # the client is gone
            self._writer.write_eof()

    def abort(self) -> None:
        """End the connection at once and drop what is not sent."""
        self._writer.transport.abort()

    def _drop_all(self) -> None:
        """Cancel the open fills, and answer nothing more. Requests to the memory are still done."""
        for ticket in self._fills.held.values():
            self._host.backend.cancel(ticket)
        self._fills.held.clear()
        self._memory.held.clear()
        self._host.workspace_users.leave_all(self)

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
        while not (self._is_ending or self._writer.is_closing()):
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
        if isinstance(message, HoleRequest):
            self._submit(message)
        elif isinstance(message, Cancel):
            ticket = self._fills.held.get(message.id)
            if ticket is not None:  # otherwise the answer and the Cancel crossed
                self._host.backend.cancel(ticket)
        elif isinstance(message, Learn | Forget | MemoryStatusRequest):
            self._remember(message)
        elif isinstance(message, StatusRequest):
            self._send(self._host.status())
        elif isinstance(message, Shutdown):
            self._host.stop(f"client {self._number} asked for it")
        else:
            name = type(message).__name__
            allowed = "Fill, Read, Score, Cancel, Learn, Forget, MemoryStatusRequest, StatusRequest or Shutdown"
            self._send(Failed("unexpected", f"a client cannot send {name} here; send {allowed}"))

    def _submit(self, request: HoleRequest) -> None:
        if self._host.stopping:
            self._send(Failed("shutting-down", "the engine is ending; connect again to start a new one", request.id))
        elif refusal := self._fills.refusal(request.id, limit_error(request)):
            self._send(refusal)
        else:
            has_progress = isinstance(request, Score) or (isinstance(request, Fill) and request.progress)
            ticket = self._host.backend.submit(request, self._send if has_progress else None, self._number)
            self._fills.open(request.id, ticket, ticket.result, self._filled)

    def _filled(self, filled: Filled) -> Filled:
        _log.debug("client %d: %d steps, %.0f ms", self._number, filled.steps, filled.ms.total)
        return filled

    def _remember(self, request: MemoryRequest) -> None:
        """Pass a request about the memory on, or answer at once what is wrong with it."""
        refusal = self._memory.refusal(request.id, memory_limit_error(request))
        if refusal is not None:
            self._send(refusal)
        elif isinstance(request, MemoryStatusRequest):
            status = self._host.backend.memory_status(request.workspace)
            self._memory.open(request.id, status, status, lambda known: attrs.evolve(known, id=request.id))
        else:
            done = self._learn(request) if isinstance(request, Learn) else self._forget(request)
            self._memory.open(request.id, done, done, lambda _: MemoryUpdated(request.id))

    def _learn(self, request: Learn) -> asyncio.Future[None]:
        self._host.workspace_users.add(request.workspace, self)
        return self._host.backend.learn(request)

    def _forget(self, request: Forget) -> asyncio.Future[None]:
        is_whole = not request.paths and not request.keep
        if is_whole and self._host.workspace_users.leave(request.workspace, self):
            # The rest is another editor's, which would not send it again.
            done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            done.set_result(None)
            return done
        return self._host.backend.forget(request)

    def _answer(self, message: Message) -> None:
        """Send the answer to a fill, or to a request about the memory."""
        self._host.touch()
        self._send(message)

    def _send(self, message: Message) -> None:
        if self._is_ending or self._writer.is_closing():
            return
        try:
            frame = pack(message)
        except Exception as error:  # a type that msgpack does not know, half a character, or too many bytes
            name, kind = type(message).__name__, type(error).__name__
            _log.error("client %d: an answer (%s) cannot be packed: %s", self._number, name, kind)
            if isinstance(message, Progress):
                return  # the fill goes on, and has an answer of its own
            reason = f"the engine has an answer that it cannot send ({kind}); see its log"
            frame = pack(Failed("internal", reason, getattr(message, "id", None)))
        self._writer.write(frame)
        if self._writer.transport.get_write_buffer_size() > MAX_UNREAD_BYTES:
            _log.warning("client %d does not read its answers: dropped", self._number)
            self.abort()


def _internal(error: BaseException, fill_id: int | None) -> Failed:
    _log.error("a request failed", exc_info=error)
    return Failed("internal", f"the engine failed on this request ({type(error).__name__}); see its log", fill_id)
