"""The asyncio client of a running engine: language server, command line and benchmarks talk to it through this."""

import asyncio
import itertools
import sys
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

import attrs

from engine.client.address import LOOPBACK, Address, peer_uid, user_id
from engine.errors import EngineUnavailable, MidspanError, ProtocolError
from engine.protocol.framing import pack, read_frame
from engine.protocol.messages import (
    PROTOCOL_VERSION,
    Cancel,
    Failed,
    Fill,
    Filled,
    Hello,
    Message,
    Progress,
    Shutdown,
    Status,
    StatusRequest,
    Welcome,
)

_Answer = TypeVar("_Answer", Filled, Status)
# The engine answers Hello from its event loop, which no fill can hold up.
_WELCOME_TIMEOUT_S = 10.0
_GOODBYE_TIMEOUT_S = 15.0


class EngineFailure(MidspanError):
    """The engine answered a request with Failed; `code` is its code."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class EngineSilent(EngineUnavailable):
    """There is an engine, it took the connection, and it says nothing: it hangs or was stopped."""


@attrs.frozen
class _Waiting:
    """A fill that has not been answered."""

    answer: asyncio.Future[Filled]
    on_progress: Callable[[Progress], None] | None


class EngineClient:
    """A connection to an engine. Any number of fills may be under way at once. Make one with `connect`."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, welcome: Welcome) -> None:
        self.welcome = welcome
        self.closed = asyncio.Event()
        self.dismissed = False
        """Whether the engine said that it was leaving; when `closed` is set without that, it died."""
        self._reader = reader
        self._writer = writer
        self._numbers = itertools.count(1)
        self._fills: dict[int, _Waiting] = {}
        self._status: deque[asyncio.Future[Status]] = deque()
        self._lost = EngineUnavailable("the connection to the engine was lost; try again, which starts a new one")
        self._listening = asyncio.create_task(self._listen())

    @classmethod
    async def connect(cls, address: Address, client: str) -> "EngineClient":
        """Connect to the engine at `address` and greet it as `client`.

        Raises EngineUnavailable when nobody answers, and ProtocolError with the reason when one of the two refuses.
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

    async def fill(self, fill: Fill, on_progress: Callable[[Progress], None] | None = None) -> Filled:
        """Have a hole filled; the client gives the fill its id. Cancelling the waiting task cancels the fill.

        Raises EngineFailure with the engine's reason, EngineUnavailable when the connection is lost, and ProtocolError
        when the fill is too large or its text cannot be sent.
        """
        number = next(self._numbers)
        waiting = _Waiting(asyncio.get_running_loop().create_future(), on_progress)
        self._send(attrs.evolve(fill, id=number, progress=fill.progress or on_progress is not None))
        self._fills[number] = waiting
        try:
            return await waiting.answer
        except asyncio.CancelledError:
            with suppress(EngineUnavailable):
                self._send(Cancel(number))
            raise
        finally:
            self._fills.pop(number, None)

    async def status(self) -> Status:
        """Ask how the engine is doing. Raises EngineUnavailable when the connection is lost."""
        self._send(StatusRequest())
        waiting: asyncio.Future[Status] = asyncio.get_running_loop().create_future()
        self._status.append(waiting)
        return await waiting

    async def shutdown(self) -> None:
        """Ask the engine to leave, and wait until it is gone. Raises EngineUnavailable when it does not go."""
        self._send(Shutdown())
        try:
            async with asyncio.timeout(_GOODBYE_TIMEOUT_S):
                await self.closed.wait()
        except TimeoutError:
            pid = self.welcome.pid
            raise EngineUnavailable(f"the engine (process {pid}) was asked to leave and did not; end it") from None

    async def close(self) -> None:
        """End the connection; the engine cancels what it still has of us."""
        self._writer.transport.abort()  # not close(): that would wait for an engine that does not read any more
        await self._listening
        with suppress(OSError):
            await self._writer.wait_closed()

    def _send(self, message: Message) -> None:
        if self.closed.is_set():
            raise self._lost
        try:
            frame = pack(message)
        except UnicodeEncodeError:
            raise ProtocolError(
                "bad-value", "the text holds half a character (a lone surrogate); save it as UTF-8"
            ) from None
        self._writer.write(frame)

    async def _listen(self) -> None:
        try:
            while (message := await read_frame(self._reader)) is not None:
                self._take(message)
        except (OSError, ProtocolError):
            pass  # `_lost` says what is to be said
        finally:
            self._writer.close()
            self.closed.set()
            for fill in self._fills.values():
                _reject(fill.answer, self._lost)
            for status in self._status:
                _reject(status, self._lost)

    def _take(self, message: Message) -> None:
        if isinstance(message, Status):
            if self._status:
                _resolve(self._status.popleft(), message)
        elif isinstance(message, Failed) and message.id is None:
            self._lost = EngineUnavailable(message.message)
            self.dismissed = message.code == "shutting-down"
            if self._status:
                _reject(self._status.popleft(), EngineFailure(message.code, message.message))
        elif isinstance(message, Filled | Progress | Failed):
            waiting = self._fills.get(message.id or 0)
            if waiting is None:
                return  # we gave this fill up
            if isinstance(message, Filled):
                _resolve(waiting.answer, message)
            elif isinstance(message, Failed):
                _reject(waiting.answer, EngineFailure(message.code, message.message))
            elif waiting.on_progress is not None:
                try:
                    waiting.on_progress(message)
                except Exception as error:  # the caller's own, so it goes to the caller and not to the other fills
                    _reject(waiting.answer, error)


def _resolve(waiting: asyncio.Future[_Answer], answer: _Answer) -> None:
    if not waiting.done():  # its task may have been cancelled
        waiting.set_result(answer)


def _reject(waiting: asyncio.Future[_Answer], error: Exception) -> None:
    if not waiting.done():
        waiting.set_exception(error)


async def _open(address: Address) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    if not address.path:
        return await asyncio.open_connection(LOOPBACK, address.port)
    if sys.platform == "win32":
        raise OSError(0, "this system has no Unix sockets")
    reader, writer = await asyncio.open_unix_connection(address.path)
    peer = peer_uid(writer.get_extra_info("socket"))
    if peer is not None and peer != user_id():  # what we send is the user's code
        writer.close()
        raise ProtocolError(
            "refused", f"the engine at {address} is of user {peer}; set MIDSPAN_RUNTIME_DIR to a place of yours"
        )
    return reader, writer


async def _greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, hello: Hello) -> Welcome:
    writer.write(pack(hello))
    try:
        async with asyncio.timeout(_WELCOME_TIMEOUT_S):
            answer = await read_frame(reader)
    except TimeoutError:
        raise EngineSilent("the engine took the connection but says nothing; end its process and try again") from None
    except OSError as error:
        raise EngineUnavailable(f"the engine hung up: {error.strerror or error}") from None
    if isinstance(answer, Welcome):
        return answer
    if answer is None:
        raise EngineUnavailable("the engine hung up before it answered; it is probably leaving, try again")
    if isinstance(answer, Failed) and answer.code == "shutting-down":
        raise EngineUnavailable(answer.message)
    if isinstance(answer, Failed):
        raise ProtocolError(answer.code, answer.message)
    raise ProtocolError("unexpected", f"the engine answered Hello with {type(answer).__name__}")
