"""A client's connection: whether it is still there, and what is wrong with a request."""

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any, TypeVar

from starlette.types import Receive

from engine.client.connection import EngineFailure
from engine.errors import EngineUnavailable, MidspanError, ProtocolError, describe

_log = logging.getLogger(__name__)
_Result = TypeVar("_Result")
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


def problem_of(error: Exception) -> Problem:
    """Return an error as a Problem. Our own mistake must not show code, neither to the client nor in a log."""
    if isinstance(error, Problem):
        return error
    if isinstance(error, EngineFailure | ProtocolError):
        return Problem(_STATUSES.get(error.code, 500), str(error))
    if isinstance(error, MidspanError):
        return Problem(503 if isinstance(error, EngineUnavailable) else 500, str(error))
    _log.error("a request failed: %s", describe(error))
    return Problem(500, "this failed in Midspan itself; its log, or the terminal that it runs in, says where")


async def while_there(receive: Receive, work: Coroutine[Any, Any, _Result]) -> _Result:
    """Return what comes of the work while the client is there. If it closes, the work is cancelled, ClientGone raised.

    Send the end of the answer after it: then uvicorn reports the connection as closed too.
    """
    working, leaving = asyncio.create_task(work), asyncio.create_task(_left(receive))
    try:
        await asyncio.wait((working, leaving), return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise ClientGone
        return working.result()
    finally:
        for task in (working, leaving):
            task.cancel()
        await asyncio.gather(working, leaving, return_exceptions=True)


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
