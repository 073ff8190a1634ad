"""The requests of one client about the memory of its workspaces: Learn, Forget and MemoryStatusRequest."""

import asyncio
from collections.abc import Callable

import attrs

from engine.errors import MidspanError
from engine.protocol.memory_messages import Forget, Learn, MemoryRequest, MemoryStatus, MemoryUpdated
from engine.protocol.messages import Failed, Message
from engine.schedule.backend import Backend
from engine.server.limits import memory_limit_error

MAX_OPEN_REQUESTS = 64
"""Files of one client that wait. With the limit of a frame this bounds the bytes that a client can make us keep."""


class MemoryRequests:
    """Gives the requests to the backend, and sends the answer of each. `internal` logs an error and describes it."""

    def __init__(
        self,
        backend: Backend,
        send: Callable[[Message], None],
        internal: Callable[[BaseException, int | None], Failed],
    ) -> None:
        self._backend = backend
        self._send = send
        self._internal = internal
        self._open: dict[int, asyncio.Future[None] | asyncio.Future[MemoryStatus]] = {}

    def begin(self, request: MemoryRequest) -> None:
        """Pass a request on, or answer at once what is wrong with it."""
        error = memory_limit_error(request)
        if error is not None:
            self._send(Failed("bad-value", error, request.id))
        elif request.id in self._open:
            message = f"id {request.id} is of a request that still runs; use another id"
            self._send(Failed("bad-value", message, request.id))
        elif len(self._open) >= MAX_OPEN_REQUESTS:
            message = f"{MAX_OPEN_REQUESTS} files of this client wait already; wait for an answer"
            self._send(Failed("busy", message, request.id))
        else:
            future = self._submit(request)
            self._open[request.id] = future
            future.add_done_callback(lambda done: self._answer(request.id, done))

    def close(self) -> None:
        """Answer nothing more. What the backend has is still done."""
        self._open.clear()

    def _submit(self, request: MemoryRequest) -> asyncio.Future[None] | asyncio.Future[MemoryStatus]:
        if isinstance(request, Learn):
            return self._backend.learn(request)
        if isinstance(request, Forget):
            return self._backend.forget(request)
        return self._backend.memory_status(request.workspace)

    def _answer(self, request_id: int, done: asyncio.Future[None] | asyncio.Future[MemoryStatus]) -> None:
        error = None if done.cancelled() else done.exception()
        if self._open.get(request_id) is not done:
            return  # nobody waits for it any more
        del self._open[request_id]
        if done.cancelled():
            self._send(Failed("cancelled", "the engine is ending; connect again and send the file again", request_id))
        elif isinstance(error, MidspanError):
            self._send(Failed(error.code, str(error), request_id))
        elif error is not None:
            self._send(self._internal(error, request_id))
        else:
            status = done.result()
            self._send(MemoryUpdated(request_id) if status is None else attrs.evolve(status, id=request_id))
