"""A client's connection: whether it is still there, and what is wrong with a request."""

import asyncio
from contextlib import suppress
from types import TracebackType

from starlette.types import Receive

from engine.client.connection import EngineFailure
from engine.errors import EngineUnavailable, MidspanError, ProtocolError

_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    405: "invalid_request_error",
    408: "timeout_error",
    413: "invalid_request_error",
    429: "rate_limit_error",
    503: "unavailable_error",
}
_STATUSES = {
    "bad-value": 400,
    "malformed": 400,
    "unknown-type": 400,
    "too-large": 413,
    "busy": 429,
    "shutting-down": 503,
    "remote": 502,
}


class Problem(MidspanError):
    """A request that is not answered with a text. `status` is HTTP's, the message one line."""

    code = "http"

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status

    @property
    def type(self) -> str:
        """The kind of problem, in the words of OpenAI and llama.cpp."""
        return _TYPES.get(self.status, "server_error")


class ClientGone(Exception):
    """The client closed its connection before it had its answer."""


def problem_of(error: MidspanError) -> Problem:
    """Return an error of the engine or of the way to it as a Problem."""
    if isinstance(error, Problem):
        return error
    if isinstance(error, EngineFailure | ProtocolError):
        return Problem(_STATUSES.get(error.code, 500), str(error))
    return Problem(503 if isinstance(error, EngineUnavailable) else 500, str(error))


class WhileThere:
    """Runs its body while the client is there. If the client closes, the body is cancelled and ClientGone raised.

    Send the end of the answer after it: then uvicorn reports the connection as closed too.
    """

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._gone = False

    async def __aenter__(self) -> None:
        self._task = asyncio.current_task()
        self._watcher = asyncio.create_task(self._watch())

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._watcher.cancel()
        if not self._gone:
            return
        assert self._task is not None
        if kind is not asyncio.CancelledError:  # the body ended before it saw the cancel, which is still under way
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(0)
        self._task.uncancel()
        raise ClientGone from None

    async def _watch(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self._gone = True
        assert self._task is not None
        self._task.cancel()
