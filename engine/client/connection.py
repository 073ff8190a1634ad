"""The asyncio client of a running engine, and what can go wrong between the two."""

import asyncio
import itertools
import sys
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

import attrs

from engine.client.address import LOOPBACK, Address, peer_uid, user_id
from engine.errors import EngineUnavailable, MidspanError, ProtocolError
from engine.protocol.framing import pack, read_frame
from engine.protocol.memory_messages import (
    MOST_REQUESTS,
    Forget,
    Learn,
    MemoryRequest,
    MemoryStatus,
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
    Shutdown,
    Status,
    StatusRequest,
    Welcome,
)


class EngineFailure(MidspanError):
    """The engine answered a request with Failed. `code` is the code of that message."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class EngineSilent(EngineUnavailable):
    """An engine accepted the connection but does not answer: it hangs or is suspended."""


_Answer = TypeVar("_Answer", Filled, Status, MemoryUpdated | MemoryStatus)
_WELCOME_TIMEOUT_S = 10.0  # fills run in another thread and do not delay this answer
_SHUTDOWN_TIMEOUT_S = 15.0


@attrs.frozen
class _PendingFill:
    """A fill without an answer yet."""

    answer: asyncio.Future[Filled]
    on_progress: Callable[[Progress], None] | None


class EngineClient:
    """A connection to an engine. It can run any number of fills at once. Construct it with `connect`."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, welcome: Welcome) -> None:
        self.welcome = welcome
        self.closed = asyncio.Event()
        self.was_shut_down = False
        """Whether the engine announced its end. If `closed` is set and this is False, the engine died."""
        self.heard_at = time.monotonic()
        """When the engine said something last."""
        self._reader = reader
        self._writer = writer
        self._ids = itertools.count(1)
        self._fills: dict[int, _PendingFill] = {}
        self._memory: dict[int, asyncio.Future[MemoryUpdated | MemoryStatus]] = {}
        self._room = asyncio.Semaphore(MOST_REQUESTS)
        self._status: deque[asyncio.Future[Status]] = deque()
        self._lost = EngineUnavailable("the connection to the engine was lost; try again, which starts a new one")
        self._listening = asyncio.create_task(self._listen())

    @classmethod
    async def connect(cls, address: Address, client: str) -> "EngineClient":
        """Connect to the engine at `address` and greet it as `client`.

        Raises EngineUnavailable if no engine answers, ProtocolError if it refuses us or belongs to another user.
        """
        try:
            reader, writer = await _open(address)
        except OSError as error:
            raise EngineUnavailable(f"no engine answers at {address}: {error.strerror or error}") from None
        try:
            return cls(reader, writer, await _greet(reader, writer, Hello(PROTOCOL_VERSION, client, address.token)))
        except BaseException:
            writer.close()
            raise

    @property
    def waits(self) -> bool:
        """Whether a fill has no answer yet."""
        return bool(self._fills)

    async def fill(self, fill: Fill, on_progress: Callable[[Progress], None] | None = None) -> Filled:
        """Have a hole filled. The client sets the id of the fill. If the waiting task is cancelled, so is the fill.

        Raises EngineFailure with the engine's reason, EngineUnavailable when the connection is lost, and ProtocolError
        when the fill is too large or its text cannot be sent.
        """
        return await self.ask(attrs.evolve(fill, progress=fill.progress or on_progress is not None), on_progress)

    async def ask(self, request: HoleRequest, on_progress: Callable[[Progress], None] | None = None) -> Filled:
        """Send a request about a hole as it is, but for its id. Cancels and raises as `fill` does."""
        request_id = next(self._ids)
        pending = _PendingFill(asyncio.get_running_loop().create_future(), on_progress)
        self._send(attrs.evolve(request, id=request_id))
        self._fills[request_id] = pending
        try:
            return await pending.answer
        except asyncio.CancelledError:
            with suppress(EngineUnavailable):
                self._send(Cancel(request_id))
            raise
        finally:
            self._fills.pop(request_id, None)

    async def learn(self, learn: Learn) -> None:
        """Put a file into the memory of its workspace, wait until fills see it. Raises what `fill` raises."""
        await self._ask_memory(attrs.evolve(learn, id=next(self._ids)))

    async def forget(self, forget: Forget) -> None:
        """Remove files from the memory of a workspace, wait until no fill sees them. Raises what `fill` raises."""
        await self._ask_memory(attrs.evolve(forget, id=next(self._ids)))

    async def memory_status(self, workspace: str) -> MemoryStatus:
        """Return how much the memory of a workspace has. Raises what `fill` raises."""
        answer = await self._ask_memory(MemoryStatusRequest(workspace, next(self._ids)))
        if not isinstance(answer, MemoryStatus):
            raise ProtocolError("unexpected", f"the engine answered MemoryStatusRequest with {type(answer).__name__}")
        return answer

    async def status(self) -> Status:
        """Ask for the state of the engine. Raises EngineUnavailable when the connection is lost."""
        self._send(StatusRequest())
        waiting: asyncio.Future[Status] = asyncio.get_running_loop().create_future()
        self._status.append(waiting)
        return await waiting

    async def shutdown(self) -> None:
        """Ask the engine to end and wait for its end. Raises EngineUnavailable when it does not end."""
        self._send(Shutdown())
        try:
            async with asyncio.timeout(_SHUTDOWN_TIMEOUT_S):
                await self.closed.wait()
        except TimeoutError:
            pid = self.welcome.pid
            raise EngineUnavailable(f"the engine (process {pid}) was asked to end and did not; kill it") from None

    async def close(self) -> None:
        """End the connection. The engine then cancels our open fills."""
        self._writer.transport.abort()  # close() would wait forever if the engine does not read any more
        await self._listening
        with suppress(OSError):
            await self._writer.wait_closed()

    async def _ask_memory(self, request: MemoryRequest) -> MemoryUpdated | MemoryStatus:
        # The engine refuses more. Ten folders that are learned at once have more, and a refused file would be missing.
        async with self._room:
            answer: asyncio.Future[MemoryUpdated | MemoryStatus] = asyncio.get_running_loop().create_future()
            self._send(request)
            self._memory[request.id] = answer
            try:
                return await answer
            finally:
                self._memory.pop(request.id, None)

    def _send(self, message: Message) -> None:
        if self.closed.is_set():
            raise self._lost
        try:
            frame = pack(message)
        except UnicodeEncodeError:
            half = "the text holds half a character (a lone surrogate); save it as UTF-8"
            raise ProtocolError("bad-value", half) from None
        self._writer.write(frame)

    async def _listen(self) -> None:
        try:
            while (message := await read_frame(self._reader)) is not None:
                self.heard_at = time.monotonic()
                self._handle(message)
        except (OSError, ProtocolError):
            pass  # each waiting call raises `_lost`
        finally:
            self._writer.close()
            self.closed.set()
            waiting: list[asyncio.Future[Any]] = [fill.answer for fill in self._fills.values()]
            for each in (*waiting, *self._status, *self._memory.values()):
                _reject(each, self._lost)

    def _handle(self, message: Message) -> None:
        if isinstance(message, Status):
            if self._status:
                _resolve(self._status.popleft(), message)
        elif isinstance(message, MemoryUpdated | MemoryStatus):
            if (waiting := self._memory.get(message.id)) is not None:
                _resolve(waiting, message)
        elif isinstance(message, Failed) and message.id is None:
            self._lost = EngineUnavailable(message.message)
            self.was_shut_down = message.code == "shutting-down"
            if self._status:
                _reject(self._status.popleft(), EngineFailure(message.code, message.message))
        elif isinstance(message, Failed) and message.id in self._memory:
            _reject(self._memory[message.id], EngineFailure(message.code, message.message))
        elif isinstance(message, Filled | Progress | Failed):
            pending = self._fills.get(message.id or 0)
            if pending is None:
                return  # this fill was cancelled
            if isinstance(message, Filled):
                _resolve(pending.answer, message)
            elif isinstance(message, Failed):
                _reject(pending.answer, EngineFailure(message.code, message.message))
            elif pending.on_progress is not None:
                try:
                    pending.on_progress(message)
                except Exception as error:  # an error of this fill's caller must not end the other fills
                    _reject(pending.answer, error)


def _resolve(future: asyncio.Future[_Answer], answer: _Answer) -> None:
    if not future.done():  # the waiting task may be cancelled
        future.set_result(answer)


def _reject(future: asyncio.Future[Any], error: Exception) -> None:
    if not future.done():
        future.set_exception(error)


async def _open(address: Address) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    if not address.path:
        return await asyncio.open_connection(LOOPBACK, address.port)
    if sys.platform == "win32":
        raise OSError(0, "this system has no Unix sockets")
    reader, writer = await asyncio.open_unix_connection(address.path)
    peer = peer_uid(writer.get_extra_info("socket"))
    if peer is not None and peer != user_id():  # that user would read the code that we send
        writer.close()
        foreign = f"the engine at {address} belongs to user {peer}; set MIDSPAN_RUNTIME_DIR to a directory of yours"
        raise ProtocolError("refused", foreign)
    return reader, writer


async def _greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, hello: Hello) -> Welcome:
    writer.write(pack(hello))
    try:
        async with asyncio.timeout(_WELCOME_TIMEOUT_S):
            answer = await read_frame(reader)
    except TimeoutError:
        silent = "the engine accepts the connection but does not answer; `midspan engine stop` ends it"
        raise EngineSilent(silent) from None
    except OSError as error:
        raise EngineUnavailable(f"the engine closed the connection: {error.strerror or error}") from None
    if isinstance(answer, Welcome):
        return answer
    if answer is None:
        raise EngineUnavailable("the engine closed the connection before it answered; it is probably ending, try again")
    if isinstance(answer, Failed) and answer.code == "shutting-down":
        raise EngineUnavailable(answer.message)
    if isinstance(answer, Failed):
        raise ProtocolError(answer.code, answer.message)
    raise ProtocolError("unexpected", f"the engine answered Hello with {type(answer).__name__}")
