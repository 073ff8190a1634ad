"""What one client sends costs nobody else anything: while it is read, /health keeps answering."""

import json
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx2
import pytest
from http_service import HttpService, http_service
from support.slow_bodies import MARK, SlowBodies

from engine.bounds import MOST_BODY_BYTES
from engine.client.launcher import EngineOptions

LONGEST_S = 2.0
"""For one answer of /health. On a quiet machine it is some milliseconds; the machines of CI are busy."""
_ANSWERED_S = 30.0
_MANY = 600_000


def _zeta(above: str, history: str, related: str = "") -> bytes:
    prompt = (
        f"<[fim-suffix]>\n<[fim-prefix]>{related}<filename>edit_history\n--- a/a.py\n+++ b/a.py\n{history}"
        f"<filename>a.py\n{above}<<<<<<< CURRENT\nx<|user_cursor|>\n=======\n<[fim-middle]>"
    )
    return json.dumps({"prompt": prompt, "max_tokens": 1}, ensure_ascii=False).encode()


def _list_in(field: str, item: str) -> bytes:
    count = (MOST_BODY_BYTES - 200) // (len(item) + 1)
    return (
        f'{{"prompt": "x", "input_prefix": "x", "model": "midspan", "{field}": [{",".join([item] * count)}]}}'.encode()
    )


def _tabby(**segments: object) -> bytes:
    return json.dumps({"segments": {"prefix": "x", **segments}}).encode()


ATTACKS = {
    "wrong items": ("/infill", _list_in("input_extra", "1")),
    "items without text": ("/infill", _list_in("input_extra", "{}")),
    "many small items": ("/infill", _list_in("input_extra", '{"text":"x"}')),
    "empty lists": ("/infill", _list_in("samplers", "[]")),
    "many keys": ("/infill", json.dumps({f"k{number}": 0 for number in range(300_000)}).encode()),
    "many prompts": ("/v1/completions", _list_in("prompt", '"x"')),
    "many stops": ("/api/generate", _list_in("stop", '"x"')),
    "many names of fields": ("/infill", _list_in("response_fields", '"a/b"')),
    "escapes": ("/infill", b'{"input_prefix": "' + b"\\u0041" * _MANY + b'"}'),
    "a long number": ("/infill", b'{"n_predict": 0.' + b"1" * 4_000_000 + b"}"),
    "a path of a million parts": ("/v1/completions", _tabby(filepath="/a" * 1_000_000)),
    "a long name": ("/v1/completions", _tabby(declarations=[{"filepath": "a" * 3_000_000, "body": "x"}])),
    "many declarations": ("/v1/completions", _tabby(declarations=[{"filepath": "a", "body": "b"}] * 100_000)),
    "a long hunk": ("/v1/completions", _zeta("a\n" * 400_000, "@@\n" + " a\n" * 400_000)),
    "a hunk that nearly fits": ("/v1/completions", _zeta("a\n" * 400_000, "@@\n" + " a\n" * 200_000 + "+b\n")),
    "many hunks": ("/v1/completions", _zeta("a\n" * 400_000, "@@\n-b\n+a\n" * 200_000)),
    "many edits": ("/v1/completions", _zeta("a\n", "--- a/a.py\n+++ b/a.py\n" * 120_000)),
    "many files": ("/v1/completions", _zeta("a\n", "", "<filename>b\nc\n" * 200_000)),
    "many marks": (
        "/v1/completions",
        json.dumps({"prompt": "<file_sep>" * 300_000 + "<fim_prefix>x<fim_suffix><fim_middle>"}).encode(),
    ),
    "many short frames": ("/midspan/memory", b"\0\0\0\1\x80" * 800_000),
    "a frame of lists": ("/midspan/fill", (1 << 21).to_bytes(4, "big") + b"\xdd\0\x10\0\0" + b"\x90" * (1 << 20)),
}


@pytest.fixture
def client(service: HttpService) -> Iterator[httpx2.Client]:
    with service.client() as client:
        yield client


def _longest_health(attacking: threading.Thread, client: httpx2.Client) -> float:
    """Return the seconds of the slowest answer of /health while a thread attacks."""
    attacking.start()
    longest, begun = 0.0, time.monotonic()
    while attacking.is_alive() and time.monotonic() - begun < _ANSWERED_S:
        asked = time.monotonic()
        assert client.get("/health").status_code == 200
        longest = max(longest, time.monotonic() - asked)
    attacking.join()
    print(f"/health {1000 * longest:.0f} ms, all over after {time.monotonic() - begun:.1f} s")
    return longest


@pytest.mark.parametrize("kind", ATTACKS)
def test_a_hostile_request_costs_nobody_else_more_than_a_moment(
    kind: str, service: HttpService, client: httpx2.Client
) -> None:
    path, body = ATTACKS[kind]
    assert len(body) <= MOST_BODY_BYTES
    answers: list[int] = []

    def attack() -> None:
        answers.append(service.client().post(path, content=body).status_code)

    assert _longest_health(threading.Thread(target=attack), client) < LONGEST_S
    assert answers[0] in (200, 400, 413), answers


@pytest.mark.parametrize("size", [1, 300], ids=["of one byte", "of some bytes"])
def test_a_body_in_many_chunks_costs_nobody_else_more_than_a_moment(
    size: int, service: HttpService, client: httpx2.Client
) -> None:
    head = b"POST /infill HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
    chunk = b"%x\r\n%b\r\n" % (size, b"x" * size)
    answers: list[bytes] = []

    def attack() -> None:
        with socket.create_connection(("127.0.0.1", service.port)) as raw:
            raw.sendall(head + chunk * (600_000 // len(chunk)) + b"0\r\n\r\n")
            answers.append(raw.recv(4000))

    assert _longest_health(threading.Thread(target=attack), client) < LONGEST_S
    assert answers[0].split()[1] in (b"400", b"408")  # it may take longer than a body's time


def test_while_a_body_is_worked_on_others_get_their_answers(running: EngineOptions, tmp_path: Path) -> None:
    slow = SlowBodies.of(tmp_path / "slow")
    with http_service(Path(running.model), **slow.environment) as service, ThreadPoolExecutor(1) as thread:
        answer = thread.submit(service.post, "/infill", {"prompt": MARK, "n_predict": "no"})
        slow.begun()
        try:
            assert service.client().get("/health", timeout=20).status_code == 200
        finally:
            slow.end()
        assert answer.result().status_code == 400
