"""The ASGI application: each request is checked, filled by the engine and answered in its dialect."""

import asyncio
import json
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

import attrs
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Message, Receive, Scope, Send

from engine import __version__
from engine.bounds import BODY_S
from engine.errors import MidspanError
from engine.http import llamacpp, ollama, openai, tabby
from engine.http.access import Hosts, Limits, Shares, Tokens
from engine.http.body import in_thread, json_object, read_body
from engine.http.completion import (
    NOTHING_FILLED,
    Answer,
    Asked,
    Pieces,
    answer_of,
    crlf,
    has_crlf,
    with_crlf,
    without_crlf,
)
from engine.http.connection import ClientGone, Problem, problem_of, while_there
from engine.http.engine_links import Links
from engine.http.exchange import EVENTS, Dialect, Exchange, Refusal, Served, event, to_json
from engine.http.metrics import CONTENT_TYPE, Metrics
from engine.http.rewriting import EDITS, NextEdit, Rewriting, no_next_edit
from engine.http.team import Team, scope_of
from engine.http.workspaces import Workspaces
from engine.http.zeta import written
from engine.protocol.framing import limit_error
from engine.protocol.messages import Fill, Filled, HoleRequest, Progress
from engine.remote.connection import MIND_HEADER
from engine.remote.team import FILL_PATH, MEMORY_PATH

CLIENT_LEFT = 499
_log = logging.getLogger(__name__)
access_log = logging.getLogger("midspan.access")

_DIALECTS = {
    "/infill": llamacpp.INFILL,
    "/v1/completions": openai.COMPLETIONS,
    "/v1/fim/completions": openai.MISTRAL,
    "/fim/completions": openai.MISTRAL,
    "/completions": openai.COMPLETIONS,
    "/api/generate": ollama.GENERATE,
}
_TABBY_HEALTH = "/v1/health"
"""Tabby's clients ask it by either method."""
_OPEN_ROUTES = ("/health",)
"""They tell nothing but that the server is there, and ask for no token."""


@attrs.frozen
class Rules:
    """The clients that may ask, and what they may ask for."""

    tokens: Tokens
    hosts: Hosts
    limits: Limits = attrs.field(factory=Limits)
    workspaces: Workspaces = attrs.field(factory=Workspaces)


@attrs.define
class _Visit:
    """A request, for the log and the metrics. `route` is the pattern that it matched, never what a client made up."""

    route: str = "other"
    owner: str = ""
    status: int = 0
    filled: Filled | None = None


class App:
    """An ASGI application over one engine."""

    def __init__(
        self, links: Links, rules: Rules, next_edit: NextEdit = no_next_edit, edits: Links | None = None
    ) -> None:
        """`next_edit` repeats the user's last edit in a region that a client wants rewritten; `edits` leads to a model
        for edits, which is asked where there is nothing to repeat."""
        self._links, self._rules, self._next_edit, self._edits = links, rules, next_edit, edits
        self._shares = Shares(rules.limits)
        self._team = Team(links)
        self.metrics = Metrics()
        posts: dict[str, _Answerer] = {
            **{path: partial(self._complete, dialect) for path, dialect in _DIALECTS.items()},
            FILL_PATH: self._fill_frames,
            MEMORY_PATH: self._memory_frames,
            "/api/show": self._show,
            "/v1/events": self._events,
        }
        facts: dict[str, Callable[[], object]] = {
            "/health": lambda: {"status": "ok"},
            "/props": lambda: llamacpp.props(links.model, __version__),
            "/v1/models": lambda: openai.models(links.model),
            "/models": lambda: openai.models(links.model),
            "/api/tags": lambda: ollama.tags(links.model),
            "/api/ps": lambda: ollama.running(links.model),
            "/api/version": lambda: {"version": __version__},
            _TABBY_HEALTH: lambda: tabby.health(links.model, __version__),
            "/v1beta/server_setting": lambda: {"disable_client_side_telemetry": True},
        }
        routes = [Route(path, _Endpoint(answer), methods=["POST"]) for path, answer in posts.items()]
        routes += [
            Route(path, _json(values), methods=["GET", "POST"] if path == _TABBY_HEALTH else ["GET"])
            for path, values in facts.items()
        ]
        routes += [Route("/metrics", self._metrics, methods=["GET"]), Route("/", _root, methods=["GET"])]
        self._routes = frozenset(route.path for route in routes)
        self._starlette = Starlette(routes=routes, exception_handlers={HTTPException: _not_served})
        self._starlette.router.redirect_slashes = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, and count and log it."""
        if scope["type"] != "http":
            return
        visit = _Visit(scope["path"] if scope["path"] in self._routes else "other")
        scope["state"]["visit"] = visit
        begun = time.perf_counter()
        self.metrics.running += 1

        async def note(message: Message) -> None:
            if message["type"] == "http.response.start":
                visit.status = message["status"]
            await send(message)

        try:
            await self._checked(scope, receive, note, visit)
        except ClientGone:
            visit.status = CLIENT_LEFT
        finally:
            self.metrics.running -= 1
            seconds = time.perf_counter() - begun
            self.metrics.done(visit.route, visit.status or CLIENT_LEFT, seconds)
            _log_visit(visit, scope["method"], seconds)

    async def _checked(self, scope: Scope, receive: Receive, send: Send, visit: _Visit) -> None:
        headers = dict(scope["headers"])
        try:
            self._rules.hosts.check(headers)
            if visit.route in _OPEN_ROUTES:
                await self._starlette(scope, receive, send)
                return
            visit.owner = self._rules.tokens.owner_of(headers)
            with self._shares.share(visit.owner):
                await self._starlette(scope, receive, send)
        except Problem as problem:
            await _refusal(problem, scope["path"])(scope, receive, send)

    async def _fill_frames(self, visit: _Visit, body: bytes, send: Send) -> Response:
        """Answer a language server's fill, in the frames of its own protocol."""
        return _frames(*await self._team.fill(visit.owner, body, lambda request: self._ask(request, visit)))

    async def _memory_frames(self, visit: _Visit, body: bytes, send: Send) -> Response:
        """Answer a language server's requests about the memory."""
        return _frames(*await self._team.remember(visit.owner, body))

    async def _complete(self, dialect: Dialect, visit: _Visit, body: bytes, send: Send) -> Response | None:
        """Answer a request for a text in its dialect; None if the answer is streamed, and so sent but for its end."""
        exchange = await in_thread(_opened, dialect, body, self._served)
        asked = exchange.asked
        if asked.rewriting is not None:
            answer = await self._rewrite(asked, asked.rewriting, visit)
        elif asked.stream:
            await self._stream(exchange, dialect.refusal, send, visit)
            return None
        else:
            answer = answer_of(asked, await self._ask(asked.request, visit))
        if asked.stream:
            return Response(exchange.end(answer, answer.texts[0].text), media_type=exchange.stream_type)
        return Response(to_json(exchange.whole(answer)), media_type="application/json")

    @property
    def _served(self) -> Served:
        return Served(self._links.model, self._rules.workspaces)

    async def _show(self, visit: _Visit, body: bytes, send: Send) -> Response:
        asked = await in_thread(json_object, body)
        return Response(to_json(ollama.shown(asked, self._served)), media_type="application/json")

    async def _events(self, visit: _Visit, body: bytes, send: Send) -> Response:
        """Keep nothing of what a client of Tabby tells about its suggestions: it holds code."""
        return Response()

    async def _rewrite(self, asked: Asked, rewriting: Rewriting, visit: _Visit) -> Answer:
        """Rewrite a region: repeat the user's last edit in it, else have a model do it, or else fill at the cursor."""
        region = await self._next_edit(rewriting)
        if region is not None:
            return Answer([written(asked, region)], NOTHING_FILLED)
        filled = await self._by_model(rewriting.asked_of(asked.fill), visit)
        region = rewriting.answered(filled.candidates[0].text) if filled is not None else None
        if filled is None or region is None:
            filled = await self._ask(asked.fill, visit)
            region = rewriting.filled(filled.candidates[0].text if filled.candidates else "")
        return Answer([written(asked, region)], filled)

    async def _by_model(self, fill: Fill | None, visit: _Visit) -> Filled | None:
        """Return what a model for edits makes of a region; None without one, or if it cannot be asked."""
        if self._edits is None or fill is None:
            return None
        try:
            filled = await self._edits.ask(visit.owner, attrs.evolve(fill, scope=f"{scope_of(visit.owner)}{EDITS}"))
        except MidspanError as error:
            _log.warning("no region is rewritten: %s", error)
            return None
        visit.filled = filled
        self.metrics.filled(filled)
        return filled

    async def _ask(
        self, request: HoleRequest, visit: _Visit, on_progress: Callable[[Progress], None] | None = None
    ) -> Filled:
        owner = visit.owner
        if converts := has_crlf(request):
            request, on_progress = without_crlf(request), on_progress and partial(_crlf_progress, on_progress)
        filled = await self._links.ask(owner, attrs.evolve(request, scope=scope_of(owner)), on_progress)
        filled = with_crlf(filled) if converts else filled
        visit.filled = filled
        self.metrics.filled(filled)
        return filled

    async def _stream(self, exchange: Exchange, refusal: Refusal, send: Send, visit: _Visit) -> None:
        """Send the text while it is written. Raises MidspanError only before the first byte is sent."""
        asked, pieces = exchange.asked, Pieces(exchange.asked)
        canvases: asyncio.Queue[list[str | None] | None] = asyncio.Queue()
        head: Message = {
            "type": "http.response.start",
            "status": 200,
            "headers": [(b"content-type", exchange.stream_type.encode()), (b"cache-control", b"no-cache")],
        }
        begun = False

        async def send_piece(piece: bytes) -> None:
            nonlocal begun
            if not begun:
                await send(head)
                begun = True
            async with asyncio.timeout(BODY_S):
                await send({"type": "http.response.body", "body": piece, "more_body": True})

        filling = asyncio.create_task(
            self._ask(asked.request, visit, lambda progress: canvases.put_nowait(progress.canvas))
        )
        filling.add_done_callback(lambda _: canvases.put_nowait(None))
        try:
            while (canvas := await canvases.get()) is not None:
                if piece := pieces.grown(canvas):
                    await send_piece(exchange.piece(piece))
            answer = answer_of(asked, await filling)
            text = answer.texts[0].text if answer.texts else ""  # there is none for a request that only reads
            await send_piece(exchange.end(answer, pieces.rest(text)))
        except TimeoutError:  # a client that does not read
            raise ClientGone from None
        except MidspanError as error:
            if not begun:
                raise
            failure = refusal(problem_of(error))
            await send_piece(event(failure) if exchange.stream_type == EVENTS else to_json(failure) + b"\n")
        finally:
            filling.cancel()
            with suppress(asyncio.CancelledError, MidspanError):
                await filling

    async def _metrics(self, request: Request) -> Response:
        try:
            engine = await self._links.status()
        except MidspanError:
            engine = None
        return Response(self.metrics.text(engine), headers={"content-type": CONTENT_TYPE})


_Answerer = Callable[[_Visit, bytes, Send], Coroutine[Any, Any, Response | None]]
"""Answers a request with this body, or sends its answer but for the end and returns None."""


@attrs.frozen
class _Endpoint:
    """An ASGI endpoint. Starlette gives a class's instance the bare ASGI call, and a function a Request."""

    answer: _Answerer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        visit: _Visit = scope["state"]["visit"]
        try:
            body = await read_body(scope, receive)
            response = await while_there(receive, self.answer(visit, body, send))
        except ClientGone:
            visit.status = CLIENT_LEFT
        except Exception as error:
            await _refusal(problem_of(error), scope["path"])(scope, receive, send)
        else:
            if response is not None:
                await response(scope, receive, send)
            else:
                await send({"type": "http.response.body", "body": b"", "more_body": False})


def _json(values: Callable[[], object]) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        return Response(to_json(values()), media_type="application/json")

    return answer


async def _root(request: Request) -> Response:
    return Response("Midspan is running", media_type="text/plain")


def _frames(mind: str, answer: bytes) -> Response:
    return Response(answer, headers={MIND_HEADER: mind}, media_type="application/msgpack")


def _opened(dialect: Dialect, body: bytes, served: Served) -> Exchange:
    """Return what a body asks for. Raises Problem, also for what the engine would refuse."""
    exchange = dialect.open(json_object(body), served)
    if (wrong := limit_error(exchange.asked.fill)) is not None:
        raise Problem(400, wrong)
    return exchange


def _crlf_progress(on_progress: Callable[[Progress], None], progress: Progress) -> None:
    canvas = [token and crlf(token) for token in progress.canvas]
    on_progress(attrs.evolve(progress, canvas=canvas))


def refusal_of(path: str) -> Refusal:
    """Return how a problem is said to a client of this path."""
    if path in _DIALECTS:
        return _DIALECTS[path].refusal
    if path.startswith("/api/"):
        return ollama.refusal
    return openai.refusal if path.startswith("/v1") else llamacpp.refusal


def _refusal(problem: Problem, path: str, headers: Mapping[str, str] | None = None) -> Response:
    if problem.status in (408, 413):
        headers = {"connection": "close"}
    elif problem.status == 401:
        headers = {"www-authenticate": "Bearer"}
    elif problem.status in (429, 503):
        headers = {"retry-after": "1"}
    return Response(to_json(refusal_of(path)(problem)), problem.status, headers, "application/json")


async def _not_served(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    what = "this path takes another method" if error.status_code == 405 else "nothing is served at this path"
    problem = Problem(error.status_code, f"{what}; docs/http.md names the paths and their methods")
    return _refusal(problem, request.scope["path"], error.headers)


def _log_visit(visit: _Visit, method: str, seconds: float) -> None:
    """Log a request as a line of JSON, with numbers and names of our own only."""
    if not access_log.isEnabledFor(logging.INFO):
        return
    filled = visit.filled
    line = {
        "at": round(time.time(), 3),
        "owner": visit.owner,
        "method": method if method in ("GET", "POST", "HEAD", "OPTIONS") else "other",
        "route": visit.route,
        "status": visit.status or CLIENT_LEFT,
        "ms": round(seconds * 1000, 1),
    }
    if filled is not None:
        line |= {
            "read": filled.context_tokens,
            "cached": filled.cached_tokens,
            "written": sum(len(candidate.tokens) for candidate in filled.candidates),
            "queue_ms": filled.ms.queue,
            "engine_ms": filled.ms.total,
        }
    access_log.info("%s", json.dumps(line, separators=(",", ":")))
