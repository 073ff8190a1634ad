"""What is fed with fuzzed bytes. Each target raises Broken when the bytes do more than they may: one clear error."""

import asyncio
import os
import socket
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Protocol

import hypothesis.strategies as st

from engine.client.launcher import EngineOptions, connect_or_start
from engine.client.lock import LockRecord, read_record
from engine.errors import MidspanError, ModelError, ProtocolError
from engine.library.resolve import EMBEDDED_FOLDER
from engine.library.store import chosen_model
from engine.library.weights_header import read_safetensors
from engine.protocol.framing import pack, read_frame
from engine.protocol.messages import PROTOCOL_VERSION, Hello
from hardening import fuzzed_bytes, http_clients
from hardening.language_server import Broken, LanguageServer
from hardening.model_reader import ModelReader

_PATIENCE_S = 60.0
_SILENCE_S = 0.3
"""After so long a request counts as one that the server still waits for; an answer takes some milliseconds."""


class Target(Protocol):
    """A reader of foreign bytes. `name` is its folder in the corpus."""

    name: str
    inputs: st.SearchStrategy[bytes]

    def feed(self, data: bytes) -> None:
        """Feed it. Raises Broken."""

    def close(self) -> None:
        """End what was started."""


class _File:
    """A reader of a file, which may raise one kind of error, in one line."""

    def __init__(self, name: str, inputs: st.SearchStrategy[bytes], path: Path, read: Callable[[Path], object]) -> None:
        self.name = name
        self.inputs = inputs
        self._path = path
        self._read = read

    def feed(self, data: bytes) -> None:
        self._path.write_bytes(data)
        _one_line(lambda: self._read(self._path), ModelError)

    def close(self) -> None:
        self._path.unlink(missing_ok=True)


class _Frames:
    """The reader of frames, which both the client and the engine use."""

    name = "frames"
    inputs = fuzzed_bytes.FRAMES

    def feed(self, data: bytes) -> None:
        asyncio.run(self._feed(data))

    async def _feed(self, data: bytes) -> None:
        reader = asyncio.StreamReader()
        reader.feed_data(data)
        reader.feed_eof()
        try:
            while await read_frame(reader) is not None:
                pass
        except ProtocolError as error:
            if "\n" in str(error):
                raise Broken(f"an error of several lines: {error}") from None
        except Exception as error:
            raise Broken(f"{type(error).__name__}: {error}") from error

    def close(self) -> None:
        pass


class _Configs:
    """A model's config.json, beside the embedded model's weights."""

    name = "configs"
    inputs = fuzzed_bytes.CONFIGS

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._reader = ModelReader()
        folder.mkdir()
        for name in ("tokenizer.json.gz", "model.safetensors"):
            (folder / name).symlink_to(EMBEDDED_FOLDER / name)

    def feed(self, data: bytes) -> None:
        (self._folder / "config.json").write_bytes(data)
        self._reader.read(self._folder)

    def close(self) -> None:
        self._reader.close()


class _Engine:
    """A real engine's socket; the engine answers another client after each input."""

    name = "engine"
    inputs = fuzzed_bytes.FRAMES

    def __init__(self) -> None:
        self._options = EngineOptions(model="embedded", threads=1)
        self._loop = asyncio.new_event_loop()
        self._client = self._loop.run_until_complete(connect_or_start(self._options, "fuzz"))
        record = read_record(self._options.paths.lock)
        assert record is not None
        self._socket = record.socket

    def feed(self, data: bytes) -> None:
        with socket.socket(socket.AF_UNIX) as raw:
            raw.settimeout(_PATIENCE_S)
            raw.connect(self._socket)
            with suppress(OSError):  # The engine may close the connection before it has read all.
                raw.sendall(pack(Hello(PROTOCOL_VERSION, "fuzz")) + data)
                raw.shutdown(socket.SHUT_WR)
                while raw.recv(65536):
                    pass
        try:
            self._loop.run_until_complete(asyncio.wait_for(self._client.status(), _PATIENCE_S))
        except (MidspanError, TimeoutError) as error:
            raise Broken(f"the engine does not answer any more: {type(error).__name__}: {error}") from None

    def close(self) -> None:
        with suppress(MidspanError):
            self._loop.run_until_complete(self._client.shutdown())
        self._loop.run_until_complete(self._client.close())
        self._loop.close()


class _Messages:
    """A real language server, fed with whole messages; it answers a command after each."""

    name = "messages"
    inputs = fuzzed_bytes.MESSAGES

    def __init__(self, runtime: Path) -> None:
        self._runtime = runtime
        self._server = self._start()

    def _start(self) -> LanguageServer:
        return LanguageServer(self._runtime, {"enabled": False})

    def feed(self, data: bytes) -> None:
        try:
            self._server.write(b"Content-Length: %d\r\n\r\n" % len(data) + data)
            self._server.ask("workspace/executeCommand", {"command": "midspan.accepted", "arguments": []})
        except Broken:
            self._server.kill()
            self._server = self._start()
            raise

    def close(self) -> None:
        self._server.kill()


class _Http:
    """`midspan serve`, fed with whole requests; it answers another client after each, and no request is its mistake."""

    name = "http"
    inputs = fuzzed_bytes.HTTP

    def __init__(self) -> None:
        self._running = http_clients.server("--rate", "0")
        self._service = self._running.__enter__()

    def feed(self, data: bytes) -> None:
        answer = http_clients.exchange(self._service.port, data, _SILENCE_S)
        if wrong := http_clients.fault(answer):
            raise Broken(wrong)
        if b"200 OK" not in http_clients.exchange(self._service.port, http_clients.HEALTH):
            raise Broken("the server does not answer any more")
        if mistakes := [line for line in self._service.lines if "failed" in line or "Traceback" in line]:
            self._service.lines.clear()
            raise Broken(f"the server's log: {mistakes[0].strip()}")

    def close(self) -> None:
        self._running.__exit__(None, None, None)


def targets(folder: Path) -> list[Target]:
    """Return all targets; those that need an engine start the one of the current runtime folder."""
    chosen = Path(os.environ["MIDSPAN_CONFIG_DIR"]) / "model.json"
    return [
        _Frames(),
        _Engine(),
        _Messages(folder),
        _File("headers", fuzzed_bytes.HEADERS, folder / "model.safetensors", read_safetensors),
        _Configs(folder / "model"),
        _Http(),
        _File("records", fuzzed_bytes.RECORDS, folder / "engine.lock", _read_record),
        _File("choices", fuzzed_bytes.RECORDS, chosen, lambda _: chosen_model()),
    ]


def _read_record(path: Path) -> LockRecord | None:
    return read_record(path)


def _one_line(read: Callable[[], object], allowed: type[MidspanError]) -> None:
    try:
        read()
    except allowed as error:
        if "\n" in str(error):
            raise Broken(f"an error of several lines: {error}") from None
    except Exception as error:
        raise Broken(f"{type(error).__name__}: {error}"[:300]) from error
