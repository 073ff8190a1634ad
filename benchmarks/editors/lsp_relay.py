"""A relay in front of the language server for measured editors; it notes when inline completion passes by.

python benchmarks/editors/lsp_relay.py NOTES COMMAND [ARGUMENT ...]

Each line of NOTES is a JSON array: "asked" or "answered", the request's id, and the Unix time in milliseconds. No text
of a message is written down.
"""

import json
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import IO, Any

import attrs

_METHOD = "textDocument/inlineCompletion"


@attrs.frozen
class Passage:
    """A request and its answer: when it reached the server and when the answer left it, in Unix milliseconds."""

    asked: float
    answered: float


def read_notes(path: Path) -> list[Passage]:
    """Return the passages that a relay has noted so far; a cancelled request counts as answered."""
    asked: dict[str, float] = {}
    passages: list[Passage] = []
    for line in path.read_text("utf-8").splitlines():
        kind, number, time_ms = json.loads(line)
        if kind == "asked":
            asked[number] = time_ms
        else:
            passages.append(Passage(asked.pop(number), time_ms))
    return passages


def main() -> int:
    notes = Path(sys.argv[1]).open("a", buffering=1, encoding="utf-8")  # noqa: SIM115 - open as long as the process
    server = subprocess.Popen(sys.argv[2:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    open_requests: set[str] = set()

    def note(kind: str, message: dict[str, Any], time_ms: float) -> None:
        number = json.dumps(message.get("id"))
        if kind == "asked" and message.get("method") == _METHOD:
            open_requests.add(number)
        elif kind == "answered" and "method" not in message and number in open_requests:
            open_requests.remove(number)
        else:
            return
        notes.write(json.dumps([kind, number, time_ms]) + "\n")

    assert server.stdin is not None
    assert server.stdout is not None
    answering = threading.Thread(target=_relay, args=(server.stdout, sys.stdout.buffer, "answered", note))
    answering.start()
    _relay(sys.stdin.buffer, server.stdin, "asked", note)
    server.stdin.close()
    answering.join()
    return server.wait()


def _relay(source: IO[bytes], target: IO[bytes], kind: str, note: Any) -> None:
    while head := source.readline():
        length = 0
        frame = [head]
        while (line := frame[-1]) not in (b"\r\n", b""):
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
            frame.append(source.readline())
        body = source.read(length)
        # Read the clock before writing: an editor may draw the answer before this process runs again.
        time_ms = time.time() * 1000
        target.write(b"".join(frame) + body)
        target.flush()
        note(kind, json.loads(body), time_ms)


if __name__ == "__main__":
    sys.exit(main())
