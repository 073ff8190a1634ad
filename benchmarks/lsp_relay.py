"""A language server for editors that are measured: runs the real one, and notes when inline completion passes by.

    python benchmarks/lsp_relay.py NOTES COMMAND [ARGUMENT ...]

Each line of NOTES is a JSON array: "asked" or "answered", the request's id, and the Unix time in milliseconds. Nothing
of what is said is written down.
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
    """A request that was answered: when it reached the server and when the answer left it, in Unix milliseconds."""

    asked: float
    answered: float


def read_notes(path: Path) -> list[Passage]:
    """Return what a relay has noted so far; a request that was cancelled counts as answered."""
    asked: dict[str, float] = {}
    passages: list[Passage] = []
    for line in path.read_text("utf-8").splitlines():
        kind, number, at = json.loads(line)
        if kind == "asked":
            asked[number] = at
        else:
            passages.append(Passage(asked.pop(number), at))
    return passages


def main() -> int:
    notes = Path(sys.argv[1]).open("a", buffering=1, encoding="utf-8")  # noqa: SIM115 - it lives as long as we do
    server = subprocess.Popen(sys.argv[2:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    open_requests: set[str] = set()

    def note(kind: str, message: dict[str, Any], at: float) -> None:
        number = json.dumps(message.get("id"))
        if kind == "asked" and message.get("method") == _METHOD:
            open_requests.add(number)
        elif kind == "answered" and "method" not in message and number in open_requests:
            open_requests.remove(number)
        else:
            return
        notes.write(json.dumps([kind, number, at]) + "\n")

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
        # Not behind the writing: an editor can have drawn the answer before we run again.
        at = time.time() * 1000
        target.write(b"".join(frame) + body)
        target.flush()
        note(kind, json.loads(body), at)


if __name__ == "__main__":
    sys.exit(main())
