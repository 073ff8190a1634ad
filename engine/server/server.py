"""The engine's server: the clients it accepts, and its end when nobody uses it."""

import asyncio
import logging
import os
import socket
import time

import attrs

from engine.client.address import peer_uid, user_id
from engine.protocol.framing import pack
from engine.protocol.messages import Failed, Status, Welcome
from engine.schedule.backend import Backend
from engine.server.client_session import ClientSession, WorkspaceUsers

MAX_CLIENTS = 64
_CLOSE_S = 2.0
_log = logging.getLogger(__name__)


class Server:
    """Serves clients over one listening socket. Construct it inside the event loop.

    A client's Hello must contain `token`; it is "" for a Unix socket, whose permissions keep other users out. After
    `idle_s` seconds without a request the server stops, even while clients are connected: they start a new engine when
    they need one. 0 means never.
    """

    def __init__(self, backend: Backend, welcome: Welcome, token: str, idle_s: float) -> None:
        self.backend = backend
        self.workspace_users = WorkspaceUsers()
        self.welcome = welcome
        self.token = token
        self.stopping = False
        self._idle_s = idle_s
        self._stopped = asyncio.Event()
        self._started = self._last_use = time.monotonic()
        self._sessions: dict[ClientSession, asyncio.Task[None]] = {}
        self._client_count = 0

    async def run(self, listening: socket.socket) -> None:
        """Serve until `stop`. Then accept no more clients and answer every open fill with Failed."""
        self.touch()  # the time to load and warm up the model does not count as idle
        accepting: asyncio.Server
        if listening.family == getattr(socket, "AF_UNIX", None):
            accepting = await asyncio.start_unix_server(self._accept, sock=listening)
        else:
            accepting = await asyncio.start_server(self._accept, sock=listening)
        idle = asyncio.create_task(self._stop_when_idle())
        await self._stopped.wait()
        idle.cancel()
        accepting.close()
        for session in self._sessions:
            session.fail("shutting-down", "the engine is ending; connect again to start a new one")

    def stop(self, reason: str) -> None:
        """Ask `run` to end."""
        if not self.stopping:
            _log.info("ending: %s", reason)
        self.stopping = True
        self._stopped.set()

    async def close(self) -> None:
        """End all connections. Call this last: clients take the end of the connection as the end of the engine."""
        tasks = list(self._sessions.values())
        for session in self._sessions:
            session.close()
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=_CLOSE_S)
            for session in list(self._sessions) if late else ():
                session.abort()

    def touch(self) -> None:
        """Note that a client uses the engine, so that it does not end as idle."""
        self._last_use = time.monotonic()

    def status(self) -> Status:
        """Return the state of the engine."""
        return Status(
            **attrs.asdict(self.backend.report()),
            version=self.welcome.version,
            pid=self.welcome.pid,
            model=self.welcome.model,
            uptime_s=time.monotonic() - self._started,
            clients=len(self._sessions),
        )

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        refusal = self._refusal(writer)
        if refusal is not None:
            _log.warning("refused a client: %s", refusal.code)
            writer.write(pack(refusal))
            writer.close()
            return
        self._client_count += 1
        session = ClientSession(self._client_count, self, reader, writer)
        task = asyncio.current_task()
        assert task is not None
        self._sessions[session] = task
        try:
            await session.run()
        finally:
            del self._sessions[session]

    def _refusal(self, writer: asyncio.StreamWriter) -> Failed | None:
        sock = writer.get_extra_info("socket")
        if sock.family == getattr(socket, "AF_UNIX", None):
            peer = peer_uid(sock)
            if peer is not None and peer != user_id():
                return Failed("refused", f"this engine belongs to user {os.geteuid()}; user {peer} must start its own")
        if len(self._sessions) >= MAX_CLIENTS:
            return Failed("busy", f"{MAX_CLIENTS} clients are connected already; close some")
        return Failed("shutting-down", "the engine is ending; connect again") if self.stopping else None

    async def _stop_when_idle(self) -> None:
        if self._idle_s <= 0:
            return
        while True:
            seconds_left = self._last_use + self._idle_s - time.monotonic()
            if any(session.open_fills for session in self._sessions):
                seconds_left = self._idle_s
            if seconds_left <= 0:
                break
            await asyncio.sleep(seconds_left)
        self.stop(f"nobody used the engine for {self._idle_s / 60:g} minutes")
