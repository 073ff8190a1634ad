"""HTTP to the server that the user named: each request has a deadline, one retry, and errors of one line.

An error names the server and the status. It never quotes what was sent or answered.
"""

import asyncio
import email.utils
import math
import ssl
import time

import attrs
import httpx2

from engine.bounds import CONNECT_S, MAX_ANSWER_BYTES, TOKEN_BYTES
from engine.errors import RemoteError
from engine.remote.endpoint import Endpoint, variable_of

MIND_HEADER = "x-midspan-mind"
_DEFAULT_PAUSE_S = 1.0
_MAX_PAUSE_S = 3600.0
_REFUSALS = (400, 422)
_TEMPORARY = (429, 502, 503)


class _ConnectionLost(RemoteError):
    """The connection failed or broke; a second one may succeed."""


@attrs.frozen
class Reply:
    """An answer with status 200, or one that refuses the request (400, 422). `program` is the header Server.

    `mind` names the memory that a server of our own answered with; "" for other servers.
    """

    status: int
    body: bytes
    program: str
    mind: str = ""

    @property
    def refused(self) -> bool:
        return self.status in _REFUSALS


class Connection:
    """Keeps connections to one server open between requests. Construct it inside the event loop.

    Redirects are not followed, so that code goes only where the user said. Certificates are verified. The proxies of
    the environment are used, except for a server on this machine: those requests must not leave it.
    """

    def __init__(self, endpoint: Endpoint, key: str | None) -> None:
        self.requests = 0
        self._endpoint = endpoint
        self._paused_until = 0.0
        headers = {"Accept-Encoding": "identity", "User-Agent": "midspan"}
        self._key = "" if key is None else "held back" if not endpoint.private else "sent"
        if self._key == "sent":
            headers["Authorization"] = f"Bearer {key}"
        self._client = httpx2.AsyncClient(headers=headers, follow_redirects=False, trust_env=not endpoint.loopback)

    async def close(self) -> None:
        await self._client.aclose()

    async def post(self, url: str, body: str | bytes, deadline: float, tokens: int = 0) -> Reply:
        """Send `body`, a JSON text or our own frames, to a URL of the server and return its answer.

        It may have `tokens` tokens. `deadline` is in seconds of the event loop's clock. A broken connection and the
        statuses 429, 502 and 503 lead to one retry before the deadline. If the server asks for a pause, the next
        request waits for it. When this is cancelled, the connection closes at once, so that the server can stop its
        work. Raises RemoteError, and TimeoutError at the deadline.
        """
        await self._wait_for_turn(deadline)
        try:
            reply = await self._send(url, body, deadline, tokens)
            retry = reply.status in _TEMPORARY
        except _ConnectionLost:
            retry = True
        if retry:
            await self._wait_for_turn(deadline)
            reply = await self._send(url, body, deadline, tokens)
        if reply.status != 200 and not reply.refused:
            raise RemoteError(self._error_line(reply.status))
        return reply

    async def _wait_for_turn(self, deadline: float) -> None:
        now = asyncio.get_running_loop().time()
        if self._paused_until > deadline:
            raise RemoteError(f"{self._endpoint.server} has too much to do and asks for a pause; try again later")
        await asyncio.sleep(max(0.0, self._paused_until - now))

    def _note_pause(self, status: int, retry_after: str) -> None:
        """Remember the pause that the server asks for; a 429 without Retry-After means one second."""
        if status == 429 or (status == 503 and retry_after):
            pause = min(_seconds(retry_after), _MAX_PAUSE_S)
            self._paused_until = asyncio.get_running_loop().time() + pause

    async def _send(self, url: str, body: str | bytes, deadline: float, tokens: int) -> Reply:
        seconds_left = deadline - asyncio.get_running_loop().time()
        if seconds_left <= 0:
            raise TimeoutError
        timeout = httpx2.Timeout(seconds_left, connect=min(seconds_left, CONNECT_S))
        server = self._endpoint.server
        most = MAX_ANSWER_BYTES + 2 * len(body) + tokens * TOKEN_BYTES
        self.requests += 1
        content = body.encode() if isinstance(body, str) else body
        kind = {"Content-Type": "application/json" if isinstance(body, str) else "application/msgpack"}
        try:
            async with self._client.stream("POST", url, content=content, headers=kind, timeout=timeout) as response:
                answer = bytearray()
                async for piece in response.aiter_raw():
                    answer += piece
                    if len(answer) > most:
                        raise RemoteError(f"the answer of {server} is larger than {most} bytes; dropped")
                headers = response.headers
                self._note_pause(response.status_code, headers.get("retry-after", ""))
                program, mind = headers.get("server", ""), headers.get(MIND_HEADER, "")
                return Reply(response.status_code, bytes(answer), program, mind)
        except httpx2.ConnectTimeout:
            if seconds_left > CONNECT_S:
                raise RemoteError(f"{server} cannot be reached within {CONNECT_S:g} s; is it running?") from None
            raise TimeoutError from None
        except httpx2.TimeoutException:
            raise TimeoutError from None
        except httpx2.ConnectError as error:
            if _is_about_tls(error):
                raise RemoteError(f"no trusted TLS connection to {server}: its certificate does not verify") from None
            raise _ConnectionLost(f"{server} cannot be reached; is its server running?") from None
        except httpx2.TransportError as error:
            raise _ConnectionLost(
                f"{server} broke the connection ({type(error).__name__}) before it answered"
            ) from None

    def _error_line(self, status: int) -> str:
        server = self._endpoint.server
        if status in (401, 403) and self._key == "held back":
            return f"{server} wants a key ({status}), and none is sent over plain http; use https"
        if status in (401, 403) and self._key:
            return f"{server} does not accept the key it was sent ({status}); see {variable_of(self._endpoint)}"
        if status in (401, 403):
            return f"{server} wants a key ({status}); put it into {variable_of(self._endpoint)} and restart the engine"
        if status == 404:
            return f"{server} has nothing there (404); check the path of the URL and the model after the #"
        if status == 429:
            return f"{server} has too much to do (429); ask it less often"
        if 300 <= status < 400:
            return f"{server} answers with a redirect ({status}), which is not followed; name the server it leads to"
        if status == 501:
            return (
                f"{server} serves a model that cannot fill holes (501); have it serve one trained to fill in the middle"
            )
        return f"{server} failed (status {status}); its own log may say why"


def _seconds(retry_after: str) -> float:
    """Return the seconds that the header Retry-After asks for, as a number or a date; 1 s when it is not readable."""
    try:
        pause = float(retry_after)
    except ValueError:
        date = email.utils.parsedate_tz(retry_after)
        try:
            pause = _DEFAULT_PAUSE_S if date is None else email.utils.mktime_tz(date) - time.time()
        except (ValueError, OverflowError):  # a year that no calendar has
            return _DEFAULT_PAUSE_S
    return _DEFAULT_PAUSE_S if math.isnan(pause) else max(0.0, pause)


def _is_about_tls(error: BaseException | None) -> bool:
    while error is not None:
        if isinstance(error, ssl.SSLError):
            return True
        error = error.__cause__ or error.__context__
    return False
