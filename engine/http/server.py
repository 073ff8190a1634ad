"""The HTTP server of `midspan serve`: its socket, uvicorn, and a bound on how long a request's head may take."""

import asyncio
import logging
import socket
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import attrs
import h11
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from engine.bounds import HEAD_S, PIECE_BYTES
from engine.client.address import is_loopback
from engine.errors import MidspanError, ModelError
from engine.http.access import VARIABLE, Hosts, Limits, read_tokens
from engine.http.app import App, Rules
from engine.http.engine_links import Links
from engine.http.rewriting import NextEdit, no_next_edit
from engine.http.workspaces import Workspaces
from engine.protocol.messages import ModelInfo
from engine.server.listener import listen_tcp

_IDLE_S = 75
_END_S = 3
_BACKLOG = 512
_log = logging.getLogger(__name__)


@attrs.frozen
class ServeOptions:
    """Where to serve, and to whom. With `certificate` and `key` it is HTTPS."""

    host: str = "127.0.0.1"
    port: int = 8012
    names: tuple[str, ...] = ()
    token_file: Path | None = None
    workspaces: tuple[Path, ...] = ()
    limits: Limits = attrs.field(factory=Limits)
    certificate: Path | None = None
    key: Path | None = None


def rules_of(options: ServeOptions) -> Rules:
    """Return who may ask. Raises ModelError in one line, also for an address that others reach without a token."""
    tokens = read_tokens(options.token_file)
    if not is_loopback(options.host) and not tokens:
        raise ModelError(
            f"others can reach {options.host}, so a token is needed; name a file of tokens with --token-file, or set "
            f"{VARIABLE}"
        )
    for folder in options.workspaces:
        if not folder.is_dir():
            raise ModelError(f"{folder} is not a folder; name a workspace's folder with --workspace")
    return Rules(tokens, Hosts(options.host, *options.names), options.limits, Workspaces(options.workspaces))


async def serve(
    links_of: Callable[[Callable[[], None]], Links],
    options: ServeOptions,
    ready: Callable[[str, ModelInfo], None],
    learn: Callable[[Path], Coroutine[Any, Any, None]],
    next_edit: NextEdit = no_next_edit,
    edits: Links | None = None,
) -> None:
    """Serve until a signal ends the process. `ready` is called with the URL once requests are accepted.

    `links_of` makes the way to what fills; it gets what to call for each engine that is met, which knows nothing yet.
    edits: see App.

    `learn` has the engine learn a workspace's folder. It runs in the background, for each engine that is met. Raises
    MidspanError in one line.
    """
    rules = rules_of(options)
    listening = listen(options)
    learning: set[asyncio.Task[None]] = set()

    def learn_all() -> None:
        for task in learning:
            task.cancel()
        for folder in options.workspaces:
            task = asyncio.create_task(_learn(learn, folder))
            learning.add(task)
            task.add_done_callback(learning.discard)

    links = links_of(learn_all)
    try:
        model = await links.start()
        reading = asyncio.create_task(asyncio.to_thread(rules.workspaces.read))
        learning.add(reading)
        reading.add_done_callback(learning.discard)
        await serve_app(App(links, rules, next_edit, edits), options, listening, lambda url: ready(url, model))
    finally:
        listening.close()
        ending = list(learning)
        for task in ending:
            task.cancel()
        await asyncio.gather(*ending, return_exceptions=True)
        await links.close()
        if edits is not None:
            await edits.close()


async def serve_app(
    app: ASGIApp, options: ServeOptions, listening: socket.socket, ready: Callable[[str], None]
) -> None:
    """Serve an application on a socket until a signal ends the process. `ready` is called with the URL."""
    address = listening.getsockname()
    host = f"[{address[0]}]" if ":" in address[0] else address[0]
    url = f"{'https' if options.certificate else 'http'}://{host}:{address[1]}"
    await _Server(config_of(app, options), lambda: ready(url)).serve(sockets=[listening])


async def _learn(learn: Callable[[Path], Coroutine[Any, Any, None]], folder: Path) -> None:
    try:
        await learn(folder)
    except MidspanError as error:
        _log.warning("the workspace %s is not learned: %s", folder, error)


def listen(options: ServeOptions) -> socket.socket:
    """Open the server's socket. Raises ModelError in one line."""
    try:
        return listen_tcp(options.host, options.port, _BACKLOG)
    except OSError as error:
        reason = error.strerror or str(error)
        raise ModelError(
            f"cannot listen on {options.host} port {options.port}: {reason}; choose another with --host and --port"
        ) from None


def config_of(app: ASGIApp, options: ServeOptions) -> uvicorn.Config:
    """Return uvicorn's configuration. Raises ModelError for a certificate that it cannot use."""
    config = uvicorn.Config(
        app,
        http=_Protocol,
        ws="none",
        lifespan="off",
        log_config=None,
        log_level="critical",  # its errors hold tracebacks; ours say type and place
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=_IDLE_S,
        timeout_graceful_shutdown=_END_S,
        ssl_certfile=options.certificate,
        ssl_keyfile=options.key,
    )
    try:
        config.load()
    except OSError as error:  # ssl.SSLError is one
        raise ModelError(
            f"cannot use the certificate {options.certificate} with its key: {error.strerror or error}; give two PEM "
            "files that belong together"
        ) from None
    return config


class _Server(uvicorn.Server):
    """Tells when it accepts requests."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._ready()


class _Protocol(H11Protocol):
    """Drops a connection whose request does not come: uvicorn waits for half a head for ever.

    Input is parsed a piece at a time, between other events: 256 kB in chunks of one byte are 40,000 of them.
    """

    _head_timer: asyncio.TimerHandle | None = None
    _rest = b""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._arm()

    def data_received(self, data: bytes) -> None:
        if self._rest:
            self._rest += data
            self.transport.pause_reading()
        else:
            self._parse(data)

    def _go_on(self) -> None:
        rest, self._rest = self._rest, b""
        if not self.transport.is_closing():
            self._parse(rest)
            if not self._rest and not self.flow.read_paused:
                self.transport.resume_reading()

    def _parse(self, data: bytes) -> None:
        piece, self._rest = data[:PIECE_BYTES], data[PIECE_BYTES:]
        if self._rest:
            self.loop.call_soon(self._go_on)
        super().data_received(piece)
        if self.conn.their_state is not h11.IDLE:
            self._disarm()
        elif self._head_timer is None and self.conn.trailing_data[0]:
            self._arm()

    def connection_lost(self, exc: Exception | None) -> None:
        self._disarm()
        super().connection_lost(exc)

    def _arm(self) -> None:
        self._head_timer = self.loop.call_later(HEAD_S, self._give_up)

    def _disarm(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _give_up(self) -> None:
        if self.conn.their_state is h11.IDLE:
            self.transport.abort()
