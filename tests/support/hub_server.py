"""A hub on loopback. Like the real one it lists files, redirects to another host and sends parts of files."""

import hashlib
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit

import attrs

COMMIT = "1234567890abcdef1234567890abcdef12345678"
_API = re.compile(r"/api/models/([^/]+/[^/]+)(?:/revision/(.+))?")
_RESOLVE = re.compile(r"/([^/]+/[^/]+)/resolve/([^/]+)/(.+)")
_BLOCK = 65536


@attrs.define
class Repository:
    """A repository. `large` files are listed by sha256 and served from another host, as with Git LFS.

    `damaged` files arrive with their last byte changed. Each number in `drops` cuts one connection after so many bytes
    of the file; `stalls` stops sending after so many bytes, once. If `token` is set, every request needs it. `listing`
    is sent instead of the list of files, with `listing_status`, for ever if `endless`. It is said to be `encoded`.
    """

    files: dict[str, bytes] = attrs.field(factory=dict)
    commit: str = COMMIT
    large: set[str] = attrs.field(factory=set)
    damaged: set[str] = attrs.field(factory=set)
    drops: dict[str, list[int]] = attrs.field(factory=dict)
    stalls: dict[str, int] = attrs.field(factory=dict)
    gated: bool = False
    token: str = ""
    ranges: bool = True
    listing: bytes = b""
    listing_status: int = 200
    endless: bool = False
    encoded: str = "identity"


@attrs.define
class Hub:
    """The state of the server: its repositories, the requests it received and the bytes it sent."""

    url: str
    repositories: dict[str, Repository] = attrs.field(factory=dict)
    requests: list[str] = attrs.field(factory=list)
    sent: dict[str, int] = attrs.field(factory=dict)
    tokens_at_cdn: list[str | None] = attrs.field(factory=list)
    stalled: threading.Event = attrs.field(factory=threading.Event)
    over: threading.Event = attrs.field(factory=threading.Event)

    def sent_of(self, suffix: str) -> int:
        """Return the bytes sent of files whose name ends with `suffix`."""
        return sum(count for name, count in self.sent.items() if name.endswith(suffix))


@contextmanager
def serve() -> Iterator[Hub]:
    """Run a hub during the block."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.daemon_threads = True
    hub = Hub(f"http://127.0.0.1:{server.server_address[1]}")
    server.hub = hub  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        hub.over.set()
        server.shutdown()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def do_GET(self) -> None:
        self._answer(body=True)

    def log_message(self, format: str, *arguments: object) -> None:
        pass

    @property
    def _hub(self) -> Hub:
        hub: Hub = self.server.hub  # type: ignore[attr-defined]
        return hub

    def _answer(self, body: bool) -> None:
        path = unquote(urlsplit(self.path).path)
        self._hub.requests.append(f"{self.command} {path}")
        is_cdn = path.startswith("/cdn/")
        if is_cdn:
            self._hub.tokens_at_cdn.append(self.headers.get("Authorization"))
        listing, file = _API.fullmatch(path), _RESOLVE.fullmatch(path.removeprefix("/cdn"))
        match = listing or file
        repository = self._hub.repositories.get(match[1]) if match else None
        if match is None or repository is None:
            self._refuse(404, "RepoNotFound")
        elif repository.gated:
            self._refuse(403, "GatedRepo")
        elif not is_cdn and repository.token and self.headers.get("Authorization") != f"Bearer {repository.token}":
            self._refuse(401, "RepoNotFound")
        elif match[2] not in (None, "main", repository.commit):
            self._refuse(404, "RevisionNotFound")
        elif listing is not None:
            listed = repository.listing or json.dumps(_listing(match[1], repository)).encode()
            headers = {"Content-Type": "application/json", "Content-Encoding": repository.encoded}
            self._send(repository.listing_status, listed, headers, repository.endless)
        elif match[3] not in repository.files:
            self._refuse(404, "EntryNotFound")
        elif match[3] in repository.large and not is_cdn:
            location = f"http://localhost:{self.connection.getsockname()[1]}/cdn{path}"
            self._send(302, b"", {"Location": location, "X-Repo-Commit": repository.commit})
        else:
            self._send_file(repository, match[3], body)

    def _send_file(self, repository: Repository, name: str, body: bool) -> None:
        data = repository.files[name]
        if name in repository.damaged:
            data = data[:-1] + bytes([data[-1] ^ 1])
        headers = {"X-Repo-Commit": repository.commit, "ETag": f'"{_etag(repository, name)}"', "Accept-Ranges": "bytes"}
        byte_range = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", "")) if repository.ranges else None
        start, end = (int(byte_range[1]), min(int(byte_range[2]) + 1, len(data))) if byte_range else (0, len(data))
        if byte_range:
            headers["Content-Range"] = f"bytes {start}-{end - 1}/{len(data)}"
        self.send_response(206 if byte_range else 200)
        for header, value in {**headers, "Content-Length": str(end - start)}.items():
            self.send_header(header, value)
        self.end_headers()
        if body:
            self._send_bytes(repository, name, data, start, end)

    def _send_bytes(self, repository: Repository, name: str, data: bytes, start: int, end: int) -> None:
        drops = repository.drops.get(name, [])
        drop = drops.pop(0) if drops else None
        stop = min((limit for limit in (drop, repository.stalls.pop(name, None)) if limit is not None), default=end)
        with suppress(ConnectionError):
            while start < min(stop, end):
                block = data[start : min(start + _BLOCK, stop, end)]
                self.wfile.write(block)
                start += len(block)
                self._hub.sent[name] = self._hub.sent.get(name, 0) + len(block)
            if drop is None and stop < end:
                self.wfile.flush()
                self._hub.stalled.set()
                self._hub.over.wait()
        self.close_connection = self.close_connection or stop < end

    def _send(self, status: int, body: bytes, headers: dict[str, str], endless: bool = False) -> None:
        self.send_response(status)
        for header, value in {**headers, "Content-Length": str(len(body) if not endless else 1 << 40)}.items():
            self.send_header(header, value)
        self.end_headers()
        self.wfile.write(body)
        with suppress(ConnectionError):
            while endless:
                self.wfile.write(bytes(_BLOCK))

    def _refuse(self, status: int, code: str) -> None:
        self._send(status, b"{}", {"X-Error-Code": code, "X-Error-Message": "no"})


def _listing(name: str, repository: Repository) -> dict[str, object]:
    siblings = []
    for file, data in repository.files.items():
        sibling: dict[str, object] = {"rfilename": file, "size": len(data), "blobId": _git_sha1(data)}
        if file in repository.large:
            sibling["lfs"] = {"sha256": hashlib.sha256(data).hexdigest(), "size": len(data), "pointerSize": 134}
        siblings.append(sibling)
    return {"_id": "1", "id": name, "modelId": name, "sha": repository.commit, "siblings": siblings}


def _etag(repository: Repository, name: str) -> str:
    data = repository.files[name]
    return hashlib.sha256(data).hexdigest() if name in repository.large else _git_sha1(data)


def _git_sha1(data: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()
