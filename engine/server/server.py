"""The engine's socket side: accepts clients, keeps count of them, and knows when it is time to leave."""

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
from engine.server.client_session import ClientSession

MAX_CLIENTS = 64
_CLOSE_S = 2.0
_log = logging.getLogger(__name__)


class Server:
    """Serves clients over one listening socket. Make it inside the event loop.

    `token` is what Hello must carry, "" where the socket's permissions guard it. After `idle_s` seconds without any
    fill or request the server stops by itself, clients connected or not: they come back when they need it. 0 is never.
    """

    def __init__(self, scheduler: Backend, welcome: Welcome, token: str, idle_s: float) -> None:
        self.scheduler = scheduler
        self.welcome = welcome
        self.token = token
        self.stopping = False
        self._idle_s = idle_s
        self._stopped = asyncio.Event()
        self._started = self._used = time.monotonic()
        self._sessions: dict[ClientSession, asyncio.Task[None]] = {}
        self._accepted = 0

    async def run(self, listening: socket.socket) -> None:
        """Serve until `stop`; then no client is accepted any more and every open fill has been answered."""
        self.touch()  # loading and warming up the model was no idleness
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
            session.fail("shutting-down", "the engine is leaving; connect again to start a new one")

    def stop(self, reason: str) -> None:
        """Ask `run` to end."""
        if not self.stopping:
            _log.info("leaving: %s", reason)
        self.stopping = True
        self._stopped.set()

    async def close(self) -> None:
        """End all connections. A client sees its end as the sign that the engine is gone, so call this last."""
        tasks = list(self._sessions.values())
        for session in self._sessions:
            session.close()
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=_CLOSE_S)
            for session in list(self._sessions) if late else ():
                session.abort()

    def touch(self) -> None:
        """Note that somebody uses the engine."""
        self._used = time.monotonic()

    def status(self) -> Status:
        """Return how the engine is doing."""
        return Status(
            **attrs.asdict(self.scheduler.report()),
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
        self._accepted += 1
        session = ClientSession(self._accepted, self, reader, writer)
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
        return Failed("shutting-down", "the engine is leaving; connect again") if self.stopping else None

    async def _stop_when_idle(self) -> None:
        if self._idle_s <= 0:
            return
        while True:
            left = self._used + self._idle_s - time.monotonic()
            if any(session.open_fills for session in self._sessions):
                left = self._idle_s
            if left <= 0:
                break
            await asyncio.sleep(left)
        self.stop(f"nobody used the engine for {self._idle_s / 60:g} minutes")
