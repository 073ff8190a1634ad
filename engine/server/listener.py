"""Where an engine listens: a Unix socket that only its user can open, or loopback TCP with a token."""

import logging
import os
import secrets
import socket
import sys
from pathlib import Path
from typing import Literal

from engine.client.address import LOOPBACK, Address, RuntimePaths, make_private
from engine.errors import EngineUnavailable

Transport = Literal["unix", "tcp"]
_BACKLOG = 64
_log = logging.getLogger(__name__)


def default_transport() -> Transport:
    """Return MIDSPAN_TRANSPORT, or else "unix" where the system has Unix sockets and "tcp" on Windows.

    Raises EngineUnavailable for any other value.
    """
    setting = os.environ.get("MIDSPAN_TRANSPORT", "")
    if setting not in ("", "unix", "tcp"):
        raise EngineUnavailable(f'MIDSPAN_TRANSPORT is {setting!r}; set it to "unix" or "tcp", or unset it')
    return "tcp" if setting == "tcp" or sys.platform == "win32" else "unix"


class Listener:
    """A listening socket and its files.

    Construct it only while you hold the engine's lock, because it replaces the files of an engine that died.
    """

    def __init__(self, paths: RuntimePaths, transport: Transport) -> None:
        """Bind and listen. Raises EngineUnavailable in one line."""
        self._files: list[Path] = []
        try:
            self.socket, self.address = self._unix_or_tcp(paths) if transport == "unix" else self._tcp(paths)
        except OSError as error:
            self.remove()
            raise EngineUnavailable(
                f"cannot listen for clients in {paths.directory}: {error.strerror}; "
                "set MIDSPAN_RUNTIME_DIR to another directory of yours"
            ) from None

    def remove(self) -> None:
        """Remove the socket and the token, so that no client finds this engine any more. Further calls do nothing."""
        while self._files:  # later, files with these names can belong to the next engine
            self._files.pop().unlink(missing_ok=True)

    def _unix_or_tcp(self, paths: RuntimePaths) -> tuple[socket.socket, Address]:
        """Listen on loopback where the file system has no Unix sockets, as some mounts of virtual machines."""
        try:
            return self._unix(paths)
        except OSError as error:
            _log.warning("no Unix socket at %s (%s); listening on loopback", paths.socket, error.strerror)
            return self._tcp(paths)

    def _unix(self, paths: RuntimePaths) -> tuple[socket.socket, Address]:
        path = paths.socket
        make_private(path.parent)
        path.unlink(missing_ok=True)
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        # bind() creates the file. Until a later chmod, other users could connect.
        old_mask = os.umask(0o177)
        try:
            listening.bind(str(path))
        finally:
            os.umask(old_mask)
        self._files.append(path)
        listening.listen(_BACKLOG)
        return listening, Address(path=str(path))

    def _tcp(self, paths: RuntimePaths) -> tuple[socket.socket, Address]:
        token = secrets.token_urlsafe(32)
        paths.token.unlink(missing_ok=True)
        self._files.append(paths.token)
        descriptor = os.open(paths.token, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(token)
        listening = listen_tcp(LOOPBACK, 0, _BACKLOG)
        return listening, Address(port=listening.getsockname()[1], token=token)


def listen_tcp(host: str, port: int, backlog: int) -> socket.socket:
    """Open a TCP socket for asyncio. Raises OSError.

    asyncio sends each write at once only if the socket names its protocol, which `create_server` leaves out. Else the
    second write of an answer, such as the body after the header, waits 40 ms until the first one is acknowledged.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    opened = socket.create_server((host, port), family=family, backlog=backlog)
    return socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP, opened.detach())
