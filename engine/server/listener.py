"""The socket an engine listens on: a Unix one that only its user can reach, or loopback TCP behind a token."""

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


def default_transport() -> Transport:
    """Unix sockets where there are any, unless MIDSPAN_TRANSPORT says "tcp". EngineUnavailable for a wrong one."""
    chosen = os.environ.get("MIDSPAN_TRANSPORT", "")
    if chosen not in ("", "unix", "tcp"):
        raise EngineUnavailable(f'MIDSPAN_TRANSPORT is {chosen!r}; it can be "unix" or "tcp", or be left out')
    return "tcp" if chosen == "tcp" or sys.platform == "win32" else "unix"


class Listener:
    """A listening socket and the files that belong to it. Make one only with the lock held: it replaces leftovers."""

    def __init__(self, place: RuntimePaths, transport: Transport) -> None:
        """Bind and listen. Raises EngineUnavailable, in one line."""
        self._files: list[Path] = []
        try:
            self.socket, self.address = self._unix(place) if transport == "unix" else self._tcp(place)
        except OSError as error:
            self.remove()
            raise EngineUnavailable(
                f"cannot listen for clients in {place.directory}: {error.strerror}; set MIDSPAN_RUNTIME_DIR to another"
            ) from None

    def remove(self) -> None:
        """Remove the socket and the token, so that nobody finds this engine any more. A second call does nothing."""
        while self._files:  # without the lock, files of the same names may already be another engine's
            self._files.pop().unlink(missing_ok=True)

    def _unix(self, place: RuntimePaths) -> tuple[socket.socket, Address]:
        path = place.socket
        make_private(path.parent)
        path.unlink(missing_ok=True)
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        old_mask = os.umask(
            0o177
        )  # bind() makes the file; a chmod after it would leave a moment in which others get in
        try:
            listening.bind(str(path))
        finally:
            os.umask(old_mask)
        self._files.append(path)
        listening.listen(_BACKLOG)
        return listening, Address(path=str(path))

    def _tcp(self, place: RuntimePaths) -> tuple[socket.socket, Address]:
        token = secrets.token_urlsafe(32)
        place.token.unlink(missing_ok=True)
        self._files.append(place.token)
        descriptor = os.open(place.token, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(token)
        listening = socket.create_server((LOOPBACK, 0), backlog=_BACKLOG)
        return listening, Address(port=listening.getsockname()[1], token=token)
