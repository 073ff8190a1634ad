"""Clients of `midspan serve` that do what clients do: ask in every dialect, leave, stop reading, send halves."""

import json
import random
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import attrs
import psutil

from hardening.work import Row, Work

HEALTH = b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
_PATIENCE_S = 60.0
_READY = re.compile(r"midspan serve: http://\S+:(\d+) answers with")
_RESET = b"\1\0\0\0\0\0\0\0"
"""SO_LINGER of zero seconds: a close resets the connection, as that of a killed process."""
_CLIENTS = 8
_MOST_GROWTH = 1.15
_LONG = 600
_ASKED: dict[str, dict[str, Any]] = {
    "/infill": {"prompt": "x = ", "t_max_predict_ms": 60_000},
    "/v1/completions": {"prompt": "<fim_prefix>x = <fim_suffix>\n<fim_middle>", "model": "midspan"},
    "/v1/fim/completions": {"prompt": "x = ", "suffix": "\n"},
    "/api/generate": {"model": "midspan", "prompt": "x = "},
}
_COUNTS = {"/infill": "n_predict", "/v1/completions": "max_tokens", "/v1/fim/completions": "max_tokens"}
_HABITS = ("whole", "whole", "whole", "leaves", "is killed", "stops reading", "sends half")


@attrs.define
class Server:
    """A running `midspan serve`. `lines` is what it wrote to stderr."""

    port: int
    pid: int
    lines: list[str]


@contextmanager
def server(*arguments: str) -> Iterator[Server]:
    """Run it on a free port, over the embedded model's engine of the current runtime folder."""
    command = [sys.executable, "-P", "-m", "engine.cli", "serve", "--port", "0", *arguments]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    lines: list[str] = []
    found = None
    for line in process.stderr:
        if (found := _READY.search(line)) is not None:
            break
        lines.append(line)
    assert found is not None, "".join(lines)
    reading = threading.Thread(target=lambda: lines.extend(process.stderr or ()), daemon=True)
    reading.start()
    try:
        yield Server(int(found[1]), process.pid, lines)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(_PATIENCE_S)


def exchange(port: int, data: bytes, patience_s: float = _PATIENCE_S) -> bytes:
    """Send bytes, and return all that comes back until the server closes, or is silent for so long."""
    answer = b""
    with socket.create_connection(("127.0.0.1", port), patience_s) as raw, suppress(ConnectionError, TimeoutError):
        raw.sendall(data)
        while piece := raw.recv(65536):
            answer += piece
    return answer


def fault(answer: bytes) -> str:
    """Return what is wrong with an answer to foreign bytes; "" for none: a client that has left may get no answer."""
    head, _, body = answer.partition(b"\r\n\r\n")
    status = re.match(rb"HTTP/1\.1 (\d+)", head)
    if not answer:
        return ""
    if status is None:
        return f"the answer is not HTTP: {answer[:40]!r}"
    if int(status[1]) >= 500:
        return f"status {int(status[1])}: {body[:100]!r}"
    if int(status[1]) < 400 or b"application/json" not in head.lower():
        return ""
    try:
        said = json.dumps(json.loads(body.partition(b"HTTP/1.1")[0]))
    except ValueError:
        return f"an error that is no JSON: {body[:60]!r}"
    return "an error of several lines" if "\\n" in said or len(said) > 600 else ""


def soak(work: Work) -> list[Row]:
    """Let clients ask in all dialects and with all habits until the time is over; then nothing may be left of them."""
    counts: Counter[str] = Counter()
    lost: list[str] = []
    with server("--rate", "0") as served:
        _ask(served.port, random.Random(0), "whole")
        before = psutil.Process(served.pid).memory_info().rss
        shared = (served, work, counts, lost)
        clients = [threading.Thread(target=_live, args=(*shared, number)) for number in range(_CLIENTS)]
        for client in clients:
            client.start()
        for client in clients:
            client.join()
        deadline = time.monotonic() + _PATIENCE_S
        while (left := _at_work(served.port)) and time.monotonic() < deadline:
            time.sleep(0.1)
        after = psutil.Process(served.pid).memory_info().rss
    if left:
        lost.append(f"{left:g} fills of clients that are gone still run")
    if sum(counts.values()) > 5000 and after > _MOST_GROWTH * before:
        lost.append(f"the server grew from {before / 1e6:.0f} to {after / 1e6:.0f} MB")
    if mistakes := [line for line in served.lines if "failed" in line or "Traceback" in line]:
        lost.append(mistakes[0].strip())
    seen = ", ".join(f"{count:,} {habit}" for habit, count in sorted(counts.items()))
    row = Row("HTTP requests in all dialects", sum(counts.values()), sorted(set(lost))[:3])
    return [attrs.evolve(row, seen=f"{seen}; server {before / 1e6:.0f} to {after / 1e6:.0f} MB")]


def _live(served: Server, work: Work, counts: "Counter[str]", lost: list[str], number: int) -> None:
    rhythm = random.Random(work.seed + number)
    while work.left > 0:
        habit = rhythm.choice(_HABITS)
        try:
            status = _ask(served.port, rhythm, habit)
        except (OSError, ValueError) as error:
            lost.append(f"a client that {habit}: {type(error).__name__}")
            return
        if habit == "whole" and status != 200:
            lost.append(f"a whole request got {status}")
        counts[habit] += 1


def _ask(port: int, rhythm: random.Random, habit: str) -> int:
    """Ask once. Return the status of a whole request, and 0 for a client that does not wait for it."""
    path = rhythm.choice(sorted(_ASKED))
    tokens = rhythm.randrange(1, 4) if habit == "whole" else _LONG
    count = {_COUNTS[path]: tokens} if path in _COUNTS else {"options": {"num_predict": tokens}}
    body = json.dumps({**_ASKED[path], **count, "stream": rhythm.random() < 0.5}).encode()
    head = (
        f"POST {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    )
    with socket.create_connection(("127.0.0.1", port), _PATIENCE_S) as raw:
        raw.sendall(head + body if habit != "sends half" else (head + body)[: rhythm.randrange(1, len(head + body))])
        if habit == "whole":
            answer = b""
            while piece := raw.recv(65536):
                answer += piece
            return int(answer[9:12])
        time.sleep(rhythm.random() * 0.2)
        if habit == "stops reading":
            raw.recv(1)
            time.sleep(rhythm.random() * 0.5)
        elif habit == "is killed":
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    return 0


def _at_work(port: int) -> float:
    text = exchange(port, HEALTH.replace(b"/health", b"/metrics")).decode()
    found = re.findall(r"^midspan_engine_fills_(?:active|waiting) (\S+)$", text, re.MULTILINE)
    return sum(map(float, found)) if found else -1.0
