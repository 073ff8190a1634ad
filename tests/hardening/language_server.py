"""A real midspan-lsp process on stdio, to which a test writes any message or bytes, and which it may find dead."""

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import attrs

COMMAND = (sys.executable, "-m", "lsp_server", "--stdio")
HANG_S = 60.0
"""An answer that takes longer counts as lost. A bound of hangs on a busy machine, and no figure."""


class Broken(AssertionError):
    """The server broke a promise."""


@attrs.frozen
class Answer:
    """The answer to a request: `order` counts all messages that came from the server until then."""

    result: Any
    error: dict[str, Any] | None
    order: int


class LanguageServer:
    """A server process. A thread reads it, so that its output never fills the pipe; requests are answered by number."""

    def __init__(
        self, runtime: Path, settings: Mapping[str, Any], *, pull: bool = False, command: Sequence[str] = COMMAND
    ) -> None:
        """Start the server. With `pull` it asks for its settings, and gets `settings`, which may be replaced."""
        self.settings = settings
        self.warnings: list[str] = []
        self.states: list[str] = []
        self._stderr: list[bytes] = []
        self._answers: dict[int | str, Answer] = {}
        self._came = threading.Condition()
        self._received = 0
        self._numbers = 0
        self._ended = False
        self._writing = threading.Lock()
        environment = {**os.environ, "MIDSPAN_RUNTIME_DIR": str(runtime)}
        environment["MIDSPAN_DATA_DIR"] = environment["MIDSPAN_CONFIG_DIR"] = str(runtime)
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
        )
        for read in (self._read, self._read_errors):
            threading.Thread(target=read, daemon=True).start()
        capabilities = {
            "general": {"positionEncodings": ["utf-16"]},
            "workspace": {"configuration": pull, "didChangeConfiguration": {"dynamicRegistration": True}},
            "window": {"workDoneProgress": True},
            "notebookDocument": {"synchronization": {}},
        }
        options = {"capabilities": capabilities, "initializationOptions": dict(settings), "rootUri": None}
        self.ask("initialize", {**options, "processId": os.getpid()})
        self.notify("initialized", {})

    @property
    def alive(self) -> bool:
        return self.process.poll() is None and not self._ended

    @property
    def last_words(self) -> str:
        """The last lines on stderr."""
        return b"".join(self._stderr[-4:]).decode(errors="replace")

    def notify(self, method: str, params: object) -> None:
        """Send a notification."""
        self.write(framed({"jsonrpc": "2.0", "method": method, "params": params}))

    def request(self, method: str, params: object) -> int:
        """Send a request, and return its number."""
        self._numbers += 1
        self.write(framed({"jsonrpc": "2.0", "id": self._numbers, "method": method, "params": params}))
        return self._numbers

    def ask(self, method: str, params: object) -> Answer:
        """Send a request, and wait for its answer."""
        return self.answer(self.request(method, params))

    def cancel(self, number: int) -> None:
        """Cancel a request, which is answered all the same."""
        self.notify("$/cancelRequest", {"id": number})

    def write(self, data: bytes) -> None:
        """Send any bytes."""
        assert self.process.stdin is not None
        with self._writing:
            try:
                self.process.stdin.write(data)
                self.process.stdin.flush()
            except OSError:
                raise Broken(self._epitaph()) from None

    def answer(self, number: int | str, patience_s: float = HANG_S) -> Answer:
        """Wait for the answer to a request. Raises Broken when the server ends, or does not answer in time."""
        with self._came:
            self._came.wait_for(lambda: number in self._answers or self._ended, patience_s)
            if number not in self._answers:
                raise Broken(self._epitaph() if self._ended else f"no answer within {patience_s:.0f} s")
            return self._answers.pop(number)

    def came(self, number: int | str) -> bool:
        """Tell whether the answer to a request is here."""
        with self._came:
            return number in self._answers

    def close(self) -> None:
        """End the session as an editor does; kill the process if that fails."""
        with suppress(Broken):
            self.ask("shutdown", None)
            self.notify("exit", None)
            self.process.wait(10)
        self.kill()

    def end_input(self) -> None:
        """Close the server's input, as an editor that crashes does."""
        assert self.process.stdin is not None
        with suppress(OSError):
            self.process.stdin.close()

    def kill(self) -> None:
        """End the process at once."""
        self.process.kill()
        self.process.wait()

    def _epitaph(self) -> str:
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(2)
        time.sleep(0.05)  # The last lines are on their way.
        return f"the server ended with status {self.process.poll()}: {self.last_words}"

    def _read(self) -> None:
        assert self.process.stdout is not None
        stream = self.process.stdout
        with suppress(OSError, ValueError, Broken):
            while header := stream.readline():
                name, _, value = header.partition(b":")
                if name.lower() != b"content-length":
                    continue
                while stream.readline().strip():
                    pass
                self._take(json.loads(stream.read(int(value))))
        with self._came:
            self._ended = True
            self._came.notify_all()

    def _take(self, message: dict[str, Any]) -> None:
        self._received += 1
        method, number = message.get("method"), message.get("id")
        if method is None:
            with self._came:
                self._answers[number if isinstance(number, int | str) else "null"] = Answer(
                    message.get("result"), message.get("error"), self._received
                )
                self._came.notify_all()
        elif number is not None:
            result = [self.settings] if method == "workspace/configuration" else None
            self.write(framed({"jsonrpc": "2.0", "id": number, "result": result}))
        elif method == "midspan/status":
            self.states.append(message["params"]["state"])
        elif method == "window/showMessage":
            self.warnings.append(message["params"]["message"])

    def _read_errors(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self._stderr.append(line)
            del self._stderr[:-50]


def framed(message: object) -> bytes:
    """Return a message as it goes over the wire."""
    body = json.dumps(message).encode()
    return b"Content-Length: %d\r\n\r\n" % len(body) + body
