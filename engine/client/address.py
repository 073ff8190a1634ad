"""The runtime files of the engine of one user and model, and the address where it accepts clients.

And the other machines to which the user's code may be sent, because the user confirmed them.
"""

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
from urllib.parse import urlsplit

import attrs
import platformdirs

from engine.errors import EngineUnavailable
from engine.folders import OWN_NAME, config_folder
from engine.json_file import read_json, write_config
from engine.library.gguf_file import is_gguf
from engine.library.precision_names import TORCH_PRECISIONS
from engine.library.store import DEFAULT, EMBEDDED, chosen_model, is_pulled, path_of
from engine.protocol.messages import PROTOCOL_VERSION
from engine.whole_files import make_folder

LOOPBACK = "127.0.0.1"
# sun_path holds 104 bytes on macOS and 108 on Linux, including the final NUL.
_SOCKET_PATH_BYTES = 103
_OWN = "set MIDSPAN_RUNTIME_DIR to a directory that only you can write"


@attrs.frozen
class RuntimePaths:
    """The runtime files of an engine. A user has one engine for each model and precision."""

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
        """The path of the Unix socket. If it would be too long in `directory`, it is in our own temporary directory."""
        path = self.directory / f"{self.stem}.sock"
        if len(os.fsencode(path)) <= _SOCKET_PATH_BYTES:
            return path
        owner = _digest(f"{user_id()}\n{self.directory}")
        return Path(tempfile.gettempdir()) / f"midspan-{owner}" / f"{self.stem}.sock"


@attrs.frozen
class Address:
    """Where an engine accepts clients: the path of a Unix socket, or a loopback port and the token that Hello needs."""

    path: str = ""
    port: int = 0
    token: str = attrs.field(default="", repr=False)

    def __str__(self) -> str:
        return self.path or f"{LOOPBACK}:{self.port}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()[:10]


def user_id() -> int | None:
    """Return the numeric id of the user of this process; None on Windows."""
    return None if sys.platform == "win32" else os.geteuid()


def is_loopback(host: str) -> bool:
    """Tell whether a host, as written in a URL, is this machine, so that nothing leaves it."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def resolve_model(model: str) -> str:
    """Return `model` with "default" replaced by the chosen model and a directory or GGUF by its absolute path.

    So all clients find the same engine. A name is never read as a directory (`store.path_of`).
    """
    if model == DEFAULT:
        model = chosen_model().model
    if model == EMBEDDED or is_pulled(model):
        return model
    path = path_of(model)
    return str(path.resolve()) if path is not None and (path.is_dir() or is_gguf(path)) else model


def runtime_paths_of(model: str, precision: str = "auto") -> RuntimePaths:
    """Return the runtime files of the engine of `model` in `precision`.

    They are in $MIDSPAN_RUNTIME_DIR, or else in the system's runtime directory. Their name depends on the protocol
    version, so that two versions of Midspan never share an engine, and on the precision if it is not "auto", so that a
    client gets the precision that it asks for. A precision that the embedded model does not have changes nothing.
    """
    model = resolve_model(model)
    applies = precision != "auto" and (model != EMBEDDED or precision in TORCH_PRECISIONS)
    stem = f"engine-{_digest(f'{PROTOCOL_VERSION} {model}' + (f' {precision}' if applies else ''))}"
    return RuntimePaths(*runtime_folders(), stem)


def all_runtime_paths() -> list[RuntimePaths]:
    """Return the runtime files of all engines of the user that have a lock file, of other versions too."""
    directory, log_directory = runtime_folders()
    return [RuntimePaths(directory, log_directory, lock.stem) for lock in sorted(directory.glob("engine-*.lock"))]


def runtime_folders() -> tuple[Path, Path]:
    """Return the folder of locks and sockets, and that of logs."""
    configured = os.environ.get("MIDSPAN_RUNTIME_DIR")
    if configured:
        directory = Path(configured).expanduser().resolve()
        return directory, directory
    with warnings.catch_warnings():  # platformdirs warns about its fallback directory; make_private checks that one
        warnings.simplefilter("ignore")
        directory = platformdirs.user_runtime_path(OWN_NAME)
    try:
        return directory, platformdirs.user_log_path(OWN_NAME)
    except RuntimeError:  # a user without a home directory
        return directory, directory


def make_private(directory: Path) -> None:
    """Create `directory` with mode 0700. If it exists, check that it is ours and that nobody else can write to it.

    Raises EngineUnavailable in one line.
    """
    try:
        make_folder(directory)
        status = directory.lstat()
    except OSError as error:
        raise EngineUnavailable(f"cannot use the runtime directory {directory}: {error.strerror}; {_OWN}") from None
    _check_directory(directory, status)


def check_private(paths: RuntimePaths) -> None:
    """Check that nobody else could have written what says where the engine is: the directory, the lock and the token.

    They would get the code that we send. A path that does not exist yet is fine. Raises EngineUnavailable in one line.
    """
    if sys.platform == "win32":
        return
    for path in (paths.directory, paths.lock, paths.token):
        try:
            status = path.lstat()
        except FileNotFoundError:
            continue
        except OSError as error:
            raise EngineUnavailable(f"cannot use the runtime directory {path}: {error.strerror}; {_OWN}") from None
        if path == paths.directory:
            _check_directory(path, status)
        elif not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & 0o022:
            raise EngineUnavailable(f"{path} is not a file that only you can write; remove it, or {_OWN}")


def _check_directory(directory: Path, status: os.stat_result) -> None:
    if sys.platform == "win32":
        return
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
        raise EngineUnavailable(f"the runtime directory {directory} is not a directory of yours; {_OWN}")
    if status.st_mode & 0o022:
        raise EngineUnavailable(f"others can write to the runtime directory {directory}; `chmod 700` it, or {_OWN}")


def peer_uid(sock: socket.socket | TransportSocket) -> int | None:
    """Return the user id of the process at the other end of a Unix socket; None if the system does not tell it.

    Then only the modes of the directory (0700) and of the socket (0600) keep other users out. Linux returns a ucred
    (pid, uid, gid), macOS an xucred (a u32 version, then `cr_uid`).
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


_TRUSTED_VARIABLE = "MIDSPAN_TRUSTED_HOSTS"
_FILE = "trusted-hosts.json"


def remote_host_of(model: str) -> str | None:
    """Return the host of a model's server on another machine, with the port that the URL names.

    None for a model or a server on this machine, and for a URL that is wrong: the engine refuses that.
    """
    url = model.partition("+")[2]
    if "://" not in url:
        return None
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return None
    if not host or is_loopback(host):
        return None
    host = f"[{host}]" if ":" in host else host
    return host if port is None else f"{host}:{port}"


def trusted_hosts() -> frozenset[str]:
    """Return what the user confirmed: in the file of the configuration folder, and in $MIDSPAN_TRUSTED_HOSTS."""
    named = (host.strip().lower() for host in os.environ.get(_TRUSTED_VARIABLE, "").split(","))
    return frozenset((*_kept(), *(host for host in named if host)))


def is_trusted(host: str) -> bool:
    """Whether the user confirmed this host, with this port if it has one."""
    return host.lower() in trusted_hosts()


def trust(host: str) -> None:
    """Keep that the user confirmed a host. Raises ModelError in one line."""
    write_config(_path(), sorted({*_kept(), host.lower()}))


def distrust(host: str) -> None:
    """Forget that. Raises ModelError in one line."""
    write_config(_path(), sorted(_kept() - {host.lower()}))


def trust_for_now(model: str) -> None:
    """Confirm the host of a model that the user typed, for this process and those that it starts."""
    if (host := remote_host_of(model)) is not None:
        os.environ[_TRUSTED_VARIABLE] = f"{os.environ.get(_TRUSTED_VARIABLE, '')},{host}".lstrip(",")


def _kept() -> frozenset[str]:
    try:
        hosts = read_json(_path())
    except (OSError, ValueError):
        return frozenset()
    return frozenset(host for host in hosts if isinstance(host, str)) if isinstance(hosts, list) else frozenset()


def _path() -> Path:
    return config_folder() / _FILE
