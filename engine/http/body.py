"""The body of a request: it is read within its bounds, and never worked on in the event loop.

Whoever sends one may mean harm. So its values are counted before anything is made of them, and all that can take long
runs in a few threads: others get their answers meanwhile.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from starlette.types import Receive, Scope

from engine.bounds import BODY_S, MOST_BODY_BYTES
from engine.http.connection import ClientGone, Problem
from engine.json_file import parse_small_json

_MOST_READ_BYTES = 4 * MOST_BODY_BYTES
"""A longer body is not read to its end; the client of a shorter one reads why it is refused."""
_THREADS = ThreadPoolExecutor(4, "body")
_Result = TypeVar("_Result")


async def in_thread(work: Callable[..., _Result], *arguments: Any) -> _Result:
    """Do work that a body causes in one of a few threads, and return its result. Raises what `work` raises."""
    return await asyncio.get_running_loop().run_in_executor(_THREADS, work, *arguments)


async def read_body(scope: Scope, receive: Receive) -> bytes:
    """Return a request's body. Raises Problem for one that is too long or too slow, ClientGone for half a one."""
    announced = int(dict(scope["headers"]).get(b"content-length", b"0"))
    body, size = bytearray(), 0
    try:
        async with asyncio.timeout(BODY_S):
            more = True
            while more and max(size, announced) <= _MOST_READ_BYTES:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise ClientGone
                piece = message.get("body", b"")
                size += len(piece)
                if size <= MOST_BODY_BYTES:
                    body += piece
                more = message.get("more_body", False)
    except TimeoutError:
        raise Problem(408, f"the body did not come within {BODY_S:.0f} s; send it whole") from None
    if more or size > MOST_BODY_BYTES:
        raise Problem(413, f"the body is too long; at most {MOST_BODY_BYTES} bytes are allowed")
    return bytes(body)


def json_object(body: bytes) -> dict[str, Any]:
    """Return the JSON object in a body. Raises Problem."""
    try:
        fields = parse_small_json(body)
    except ValueError as error:
        raise Problem(400, f"the body is no JSON that is served: {error}; send a JSON object") from None
    if not isinstance(fields, dict):
        raise Problem(400, f"the body is a JSON {_json_name(fields)}; send a JSON object")
    return fields


def _json_name(value: object) -> str:
    if value is None:
        return "null"
    return {list: "list", str: "string", bool: "boolean"}.get(type(value), "number")
