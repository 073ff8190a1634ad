"""A real HTTP server on loopback: it answers in every dialect, records the requests, and misbehaves on demand."""

import asyncio
import json
import socket
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import attrs
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from support.engine_process import poll

TOKENS = (("width", -0.1), (" *", -0.2), (" height", -0.3))
TEXT = "".join(token for token, _ in TOKENS)
Behaviour = Callable[["ModelServer", Request, dict[str, Any]], Awaitable[Response]]


@attrs.frozen
class ReceivedRequest:
    """A request to the server."""

    path: str
    body: dict[str, Any]
    headers: dict[str, str]


class ModelServer:
    """Answers TEXT. Each behaviour in `script` applies to one request; later requests get `behaviour`."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.received: list[ReceivedRequest] = []
        self.script: deque[Behaviour] = deque()
        self.behaviour: Behaviour = answers
        self._arrivals = threading.Semaphore(0)
        self.client_left = threading.Event()
        """Set when a client closes a connection before its answer."""

    def model(self, dialect: str, name: str = "qwen") -> str:
        base = "" if dialect == "llamacpp" else "/v1"
        return f"{dialect}+http://127.0.0.1:{self.port}{base}#{name}"

    @property
    def bodies(self) -> list[dict[str, Any]]:
        return [request.body for request in self.received]

    async def has_received(self, count: int) -> None:
        """Wait until `count` more requests have arrived."""
        for _ in range(count):
            assert await asyncio.to_thread(self._arrivals.acquire, timeout=30), "a request did not arrive"

    async def handle(self, request: Request) -> Response:
        body = json.loads(await request.body())
        self.received.append(ReceivedRequest(request.url.path, body, dict(request.headers)))
        self._arrivals.release()
        behaviour = self.script.popleft() if self.script else self.behaviour
        return await behaviour(self, request, body)


async def answers(server: ModelServer, request: Request, body: dict[str, Any]) -> Response:
    """Answer in the dialect of the path."""
    if request.url.path == "/infill":
        return JSONResponse(
            {
                "content": TEXT,
                "stop_type": "eos",
                "timings": {"cache_n": 30, "prompt_n": 12},
                "completion_probabilities": [
                    {"token": token, "logprob": value, "bytes": list(token.encode())} for token, value in TOKENS
                ],
            }
        )
    if request.url.path == "/tokenize":
        return JSONResponse({"tokens": list(body["prompt"].encode())})
    return completion(TEXT, logprobs=body.get("logprobs") is not None, count=body.get("n") or 1)


def completion(text: str, *, logprobs: bool = False, count: int = 1, finish: str = "stop") -> JSONResponse:
    """Return an answer in OpenAI's format."""
    log_probabilities = {"tokens": [token for token, _ in TOKENS], "token_logprobs": [value for _, value in TOKENS]}
    choices = [
        {"index": number, "text": text, "finish_reason": finish, "logprobs": log_probabilities if logprobs else None}
        for number in range(count)
    ]
    return JSONResponse(
        {"choices": choices, "usage": {"prompt_tokens": 42, "prompt_tokens_details": {"cached_tokens": 30}}}
    )


def answers_text(text: str, finish: str = "stop") -> Behaviour:
    """Answer `text`, without probabilities."""

    async def behave(server: ModelServer, request: Request, body: dict[str, Any]) -> Response:
        return completion(text, finish=finish)

    return behave


def answers_status(status: int, text: str = "", **headers: str) -> Behaviour:
    """Answer with an HTTP status."""

    async def behave(server: ModelServer, request: Request, body: dict[str, Any]) -> Response:
        return Response(text, status, {name.replace("_", "-"): value for name, value in headers.items()})

    return behave


def answers_body(content: bytes) -> Behaviour:
    """Answer with any body."""

    async def behave(server: ModelServer, request: Request, body: dict[str, Any]) -> Response:
        return Response(content, media_type="application/json")

    return behave


async def hangs(server: ModelServer, request: Request, body: dict[str, Any]) -> Response:
    """Never answer, and set `client_left` when the client closes the connection."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
    server.client_left.set()
    return Response("too late")


@attrs.frozen
class _ProxyPaths:
    """Accepts requests to a proxy: their target is a whole URL, and this keeps only its path."""

    app: ASGIApp

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.app({**scope, "path": urlsplit(scope["path"]).path}, receive, send)


@contextmanager
def serving(**options: Any) -> Iterator[ModelServer]:
    """Run a server on a free port of loopback; `options` are uvicorn's, for TLS."""
    listening = socket.create_server(("127.0.0.1", 0))
    server = ModelServer(listening.getsockname()[1])
    paths = ("/v1/completions", "/v1/fim/completions", "/infill", "/tokenize")
    app = Starlette(routes=[Route(path, server.handle, methods=["POST"]) for path in paths])
    config = uvicorn.Config(
        _ProxyPaths(app),
        log_level="critical",
        server_header=False,
        lifespan="off",
        timeout_graceful_shutdown=1,
        **options,
    )
    running = uvicorn.Server(config)
    thread = threading.Thread(target=running.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    poll(lambda: running.started)
    yield server
    running.should_exit = True
    thread.join(30)
