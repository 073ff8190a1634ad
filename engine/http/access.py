"""Access and its limits: tokens, the Host header, other sites' pages, other users, rate and concurrency."""

import hmac
import math
import os
import re
import socket
import stat
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import attrs

from engine.client.address import is_loopback
from engine.errors import ModelError
from engine.http.connection import Problem

VARIABLE = "MIDSPAN_SERVE_TOKEN"
LEAST_CHARACTERS = 16
LOCAL = "local"
"""The owner of requests where no token is asked for."""
_TOKEN = re.compile(rf"[!-~]{{{LEAST_CHARACTERS},256}}")
_MOST_FILE_BYTES = 65_536


@attrs.frozen
class Limits:
    """For each token: requests a second (0 means any number), with a burst of two seconds, and requests at once."""

    rate: float = 100.0
    at_once: int = 32


class Tokens:
    """The tokens that may ask, by the name of their owner. Without any, everybody who reaches the server may."""

    def __init__(self, secrets: dict[str, str]) -> None:
        self._secrets = {name: secret.encode() for name, secret in secrets.items()}

    def __bool__(self) -> bool:
        return bool(self._secrets)

    def owner_of(self, headers: dict[bytes, bytes]) -> str:
        """Return whose token a request has. Raises Problem without a known one."""
        if not self._secrets:
            return LOCAL
        scheme, _, token = headers.get(b"authorization", b"").partition(b" ")
        given = token.strip() if scheme.lower() == b"bearer" else headers.get(b"x-api-key", b"")
        # All are compared, so that the time tells nothing.
        matching = [name for name, secret in self._secrets.items() if hmac.compare_digest(secret, given)]
        if not matching:
            what = "is wrong" if given else "is missing"
            raise Problem(401, f"the token {what}; send the header `Authorization: Bearer TOKEN`")
        return matching[0]


def read_tokens(file: Path | None) -> Tokens:
    """Return the tokens of a file, and the one of the environment, whose owner is "user".

    A line of the file is a token, or a name and a token. Raises ModelError in one line that repeats no token.
    """
    secrets: dict[str, str] = {}
    if token := os.environ.get(VARIABLE, "").strip():
        secrets["user"] = _checked(token, f"${VARIABLE}")
    for number, line in enumerate(_lines(file) if file is not None else [], 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        place = f"line {number} of {file}"
        if len(words) > 2:
            raise ModelError(f"{place} has {len(words)} words; write a token, or a name and a token")
        name = words[0] if len(words) == 2 else f"user{number}"
        if name in secrets:
            raise ModelError(f"{place} names {name} again; give each token a name of its own")
        secrets[name] = _checked(words[-1], place)
    if file is not None and not secrets:
        raise ModelError(f"{file} has no token; write one into it, as `openssl rand -hex 32` makes them")
    return Tokens(secrets)


def _lines(file: Path) -> list[str]:
    try:
        status = file.stat()
        if not stat.S_ISREG(status.st_mode) or status.st_size > _MOST_FILE_BYTES:
            raise ModelError(f"{file} is not a file of tokens; it may have {_MOST_FILE_BYTES} bytes")
        if sys.platform != "win32" and status.st_mode & 0o077:
            raise ModelError(f"others can read the tokens in {file}; run `chmod 600 {file}`")
        if sys.platform != "win32" and status.st_uid not in (0, os.geteuid()):
            raise ModelError(f"the tokens in {file} are another user's; name a file of your own")
        return file.read_text("utf-8").splitlines()
    except OSError as error:
        raise ModelError(f"cannot read {file}: {error.strerror}; name a file of tokens that you can read") from None
    except UnicodeDecodeError:
        raise ModelError(f"{file} is not UTF-8 text; write one token on each line") from None


def _checked(token: str, place: str) -> str:
    if _TOKEN.fullmatch(token) is None:
        raise ModelError(
            f"the token in {place} is too short or has odd characters; it needs {LEAST_CHARACTERS} to 256 of ASCII, as "
            "`openssl rand -hex 32` makes them"
        )
    return token


class Hosts:
    """The names under which this server may be asked.

    A page of another site can have its own name point to this machine (DNS rebinding). Its requests then carry that
    name in Host. An address cannot be bent like that, so every address is fine.
    """

    def __init__(self, *names: str) -> None:
        self._names = frozenset(name.lower() for name in names if name)

    def check(self, headers: dict[bytes, bytes]) -> None:
        """Raise Problem for a request that another site's page caused."""
        host = _host_of("//" + headers.get(b"host", b"").decode("latin-1"))
        if not (is_loopback(host) or host in self._names or _is_address(host)):
            raise Problem(403, "the Host header names another machine; start the server with --name for this name")
        origin = headers.get(b"origin")
        own = origin is not None and headers.get(b"host", b"") == origin.partition(b"://")[2]
        site = headers.get(b"sec-fetch-site", b"none")
        if (origin is not None and not own) or site not in (b"none", b"same-origin"):
            raise Problem(403, "requests of web pages are not served")


def _host_of(url: str) -> str:
    try:
        return (urlsplit(url).hostname or "").rstrip(".")
    except ValueError:
        return ""


def _is_address(host: str) -> bool:
    return ":" in host or re.fullmatch(r"[0-9]{1,3}(\.[0-9]{1,3}){3}", host) is not None


_SOCKETS = Path("/proc/net/tcp")
_LOOKS = 3
"""The list is read in parts, and may leave out a line while others come and go."""


def knows_users() -> bool:
    """Return whether this system says whose a connection is."""
    return sys.platform == "linux" and os.access(_SOCKETS, os.R_OK)


def check_user(client: tuple[str, int], own: tuple[str, int]) -> None:
    """Raise Problem for a connection of another user of this machine than us and root, where the system can say it.

    Both are addresses of IPv4: the client's end of a connection over loopback, and ours. A token can become known: a
    browser is started with the page's address, and all users can read command lines.
    """
    if not knows_users():
        return
    ends = [_hexadecimal(client), _hexadecimal(own)]
    for _ in range(_LOOKS):
        for line in _SOCKETS.read_text("ascii").splitlines():
            fields = line.split()
            # A socket that nobody has open any more has the number 0, and root for its user.
            if fields[1:3] == ends and fields[9] != "0" and int(fields[7]) in (0, os.geteuid()):
                return
    raise Problem(403, "the connection is another user's; start midspan play yourself")


def _hexadecimal(address: tuple[str, int]) -> str:
    host = int.from_bytes(socket.inet_aton(address[0]), sys.byteorder)
    return f"{host:08X}:{address[1]:04X}"


class Shares:
    """What each owner uses now, held within the limits."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._at_once: Counter[str] = Counter()
        self._buckets: dict[str, tuple[float, float]] = {}

    @contextmanager
    def share(self, owner: str) -> Iterator[None]:
        """Count a request while it runs. Raises Problem when its owner has too many, or too many a second."""
        if self._at_once[owner] >= self._limits.at_once:
            raise Problem(429, f"{self._limits.at_once} requests run already; wait for one, or close one")
        self._take(owner)
        self._at_once[owner] += 1
        try:
            yield
        finally:
            self._at_once[owner] -= 1

    def _take(self, owner: str) -> None:
        rate = self._limits.rate
        if not rate:
            return
        now, most = time.monotonic(), max(1.0, 2 * rate)
        left, at = self._buckets.get(owner, (most, now))
        left = min(most, left + (now - at) * rate)
        if left < 1.0:
            self._buckets[owner] = (left, now)
            raise Problem(429, f"more than {rate:g} requests a second; ask again in {math.ceil((1 - left) / rate)} s")
        self._buckets[owner] = (left - 1.0, now)
