"""A replica: an engine core in a process that Ray keeps. It takes and gives the messages of our protocol."""

import asyncio
import itertools
import logging
import os
import time
import uuid
from collections.abc import AsyncIterator, Callable, Sequence
from typing import TypeVar

import attrs

from engine import __version__
from engine.backends import Core, local_backend
from engine.errors import MidspanError, describe
from engine.protocol.memory_messages import Learn, MemoryRequest, MemoryStatusRequest, MemoryUpdated
from engine.protocol.messages import Failed, HoleRequest, Message, Progress, Status
from engine.schedule.backend import Backend, Ticket

Answer = tuple[str, Message]
"""The replica's name, and a message. A replica that starts again has another name, and an empty memory."""
_Grown = asyncio.Queue[Progress | None]
_Done = TypeVar("_Done")
_log = logging.getLogger(__name__)


class Replica:
    """Ray Serve constructs it in the replica's event loop. An error is answered as Failed: Ray would log its text."""

    async def __init__(self, core: Core) -> None:  # type: ignore[misc]  # Ray awaits it
        """Load the model and warm it up. Raises MidspanError."""
        self._name = uuid.uuid4().hex
        self._started = time.monotonic()
        info, make_backend = await asyncio.to_thread(local_backend, core)
        self._info = info
        self._backend: Backend = make_backend()
        await self._backend.start()
        self._numbers: dict[str, int] = {}
        self._count = itertools.count(1)

    async def ask(self, owner: str, request: HoleRequest) -> Answer:
        """Answer a request about a hole for an owner. A cancelled call drops it at its next step."""
        ticket = self._submit(owner, request)
        return self._name, ticket if isinstance(ticket, Failed) else await self._settled(ticket)

    async def ask_growing(self, owner: str, request: HoleRequest) -> AsyncIterator[Answer]:
        """Do so, and give each canvas before the answer."""
        grown: _Grown = asyncio.Queue()
        ticket = self._submit(owner, request, grown)
        if isinstance(ticket, Failed):
            yield self._name, ticket
            return
        ticket.result.add_done_callback(lambda _: grown.put_nowait(None))
        try:
            while (progress := await grown.get()) is not None:
                yield self._name, progress
        finally:
            if not ticket.result.done():
                self._backend.cancel(ticket)
        yield self._name, await self._settled(ticket)

    async def remember(self, requests: Sequence[MemoryRequest]) -> tuple[str, list[Message]]:
        """Change or count the memory of a workspace, in this order."""
        begun = [self._remember(request) for request in requests]
        return self._name, [await answer for answer in begun]

    async def status(self) -> Answer:
        """Return the state of this engine, as Status and MemoryStatus of all workspaces."""
        status = Status(
            **attrs.asdict(self._backend.report()),
            version=__version__,
            pid=os.getpid(),
            model=self._info,
            uptime_s=time.monotonic() - self._started,
            clients=0,
        )
        return self._name, status

    async def memory(self) -> Answer:
        """Return how much is known of all workspaces together."""
        return self._name, await self._backend.memory_status("")

    def _submit(self, owner: str, request: HoleRequest, grown: _Grown | None = None) -> Ticket | Failed:
        try:
            number = self._numbers.setdefault(owner, next(self._count))
            return self._backend.submit(request, grown.put_nowait if grown is not None else None, number)
        except MidspanError as error:
            return Failed(error.code, str(error))

    async def _settled(self, ticket: Ticket) -> Message:
        try:
            return await _answered(asyncio.shield(ticket.result), ticket.request.id, lambda filled: filled)
        except asyncio.CancelledError:
            self._backend.cancel(ticket)
            raise

    def _remember(self, request: MemoryRequest) -> "asyncio.Future[Message]":
        """Begin a request at once, so that the requests of a call keep their order."""
        if isinstance(request, MemoryStatusRequest):
            known = self._backend.memory_status(request.workspace)
            return asyncio.ensure_future(_answered(known, request.id, lambda each: attrs.evolve(each, id=request.id)))
        done = self._backend.learn(request) if isinstance(request, Learn) else self._backend.forget(request)
        return asyncio.ensure_future(_answered(done, request.id, lambda _: MemoryUpdated(request.id)))


async def _answered(done: asyncio.Future[_Done], request: int, answer: Callable[[_Done], Message]) -> Message:
    """Return what `answer` makes of a result, or Failed: our own mistake without its text, which may hold code."""
    try:
        return answer(await done)
    except MidspanError as error:
        return Failed(error.code, str(error), request)
    except Exception as error:
        _log.error("a request failed: %s", describe(error))
        return Failed("internal", f"the engine failed on this request ({type(error).__name__}); see its log", request)
