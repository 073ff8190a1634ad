"""Where the engine of one user and model lives: its runtime files, and the address at which it answers."""

import hashlib
import ipaddress
import os
import socket
import stat
import struct
import sys
import tempfile
import warnings
from asyncio.trsock import TransportSocket
from pathlib import Path

import attrs
import platformdirs

from engine.errors import EngineUnavailable
from engine.library.chosen_model import DEFAULT, EMBEDDED, chosen_model
from engine.library.store import is_pulled
from engine.protocol.messages import PROTOCOL_VERSION

LOOPBACK = "127.0.0.1"
# sun_path holds 104 bytes on macOS and 108 on Linux, the final NUL among them.
_SOCKET_PATH_BYTES = 103


@attrs.frozen
class RuntimePaths:
    """The runtime files of the one engine that a user has for a model in a precision."""

    directory: Path
    log_directory: Path
    stem: str

    @property
    def lock(self) -> Path:
        return self.directory / f"{self.stem}.lock"

    @property
    def token(self) -> Path:
        return self.directory / f"{self.stem}.token"

    @property
    def log(self) -> Path:
        return self.log_directory / f"{self.stem}.log"

    @property
    def socket(self) -> Path:
        """The path of the Unix socket; in a directory of ours under the temporary one where `directory` is too long."""
        path = self.directory / f"{self.stem}.sock"
        if len(os.fsencode(path)) <= _SOCKET_PATH_BYTES:
            return path
        owner = _digest(f"{user_id()}\n{self.directory}")
        return Path(tempfile.gettempdir()) / f"midspan-{owner}" / f"{self.stem}.sock"


@attrs.frozen
class Address:
    """Where an engine answers: the path of a Unix socket, or a loopback port with the token that Hello must carry."""

    path: str = ""
    port: int = 0
    token: str = attrs.field(default="", repr=False)

    def __str__(self) -> str:
        return self.path or f"{LOOPBACK}:{self.port}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()[:10]


def user_id() -> int | None:
    """The numeric id of the user we run as; None where the system has no such thing."""
    return None if sys.platform == "win32" else os.geteuid()


def is_loopback(host: str) -> bool:
    """Tell whether a host, written as in a URL, is this machine itself and not reached over any network."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def resolve_model(model: str) -> str:
    """Return `model`, a directory absolute and "default" looked up, so that every client means the same engine by it.

    The name of a model that is here is never taken for a directory.
    """
    if model == DEFAULT:
        model = chosen_model().model
    if model == EMBEDDED or is_pulled(model):
        return model
    directory = Path(model).expanduser()
    return str(directory.resolve()) if directory.is_dir() else model


def runtime_paths_of(model: str, precision: str = "auto") -> RuntimePaths:
    """Return where the engine of `model` in `precision` keeps its files: $MIDSPAN_RUNTIME_DIR, else the system's place.

    The protocol's version is part of the name, so that two versions of Midspan never fight over one engine; and so is a
    precision that was asked for, so that nobody gets int4 who asked for bf16.
    """
    asked = "" if precision == "auto" else f" {precision}"
    stem = f"engine-{_digest(f'{PROTOCOL_VERSION} {resolve_model(model)}{asked}')}"
    chosen = os.environ.get("MIDSPAN_RUNTIME_DIR")
    if chosen:
        directory = Path(chosen).expanduser().resolve()
        return RuntimePaths(directory, directory, stem)
    with warnings.catch_warnings():  # platformdirs warns when it falls back; we check what it falls back to ourselves
        warnings.simplefilter("ignore")
        directory = platformdirs.user_runtime_path("midspan")
    return RuntimePaths(directory, platformdirs.user_log_path("midspan"), stem)


def make_private(directory: Path) -> None:
    """Create `directory` with mode 0700, or check that the one there is ours and that nobody else can write to it.

    Raises EngineUnavailable, in one line.
    """
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = directory.lstat()
    except OSError as error:
        raise EngineUnavailable(
            f"cannot use the runtime directory {directory}: {error.strerror}; set MIDSPAN_RUNTIME_DIR to another one"
        ) from None
    if sys.platform == "win32":
        return
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        raise EngineUnavailable(
            f"the runtime directory {directory} is not a directory of yours; set MIDSPAN_RUNTIME_DIR to one that is"
        )
    if found.st_mode & 0o022:
        raise EngineUnavailable(
            f"others can write to the runtime directory {directory}; `chmod 700` it, or set MIDSPAN_RUNTIME_DIR"
        )


def peer_uid(sock: socket.socket | TransportSocket) -> int | None:
    """Return the user id of the process at the other end of a Unix socket; None where the system does not tell.

    Then the directory's mode 0700 and the socket's 0600 are the guard. macOS is read from xucred (its `cr_uid` follows
    a u32 version), Linux from ucred (pid, uid, gid).
    """
    if sys.platform == "linux":
        raw = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        return int(struct.unpack("iII", raw)[1])
    elif sys.platform == "darwin":
        local, peercred = 0, 1
        raw = sock.getsockopt(local, peercred, 76)
        return int(struct.unpack_from("II", raw)[1])
    else:
        return None
