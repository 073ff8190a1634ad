"""What may ask: tokens, the Host header, other sites' pages, limits, and what a bad request is told."""

import asyncio
import contextlib
import json
import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
import uvicorn
from http_service import PREFIX, SUFFIX, HttpService, http_service, infill

from engine.client.launcher import EngineOptions
from engine.errors import ModelError
from engine.http import server
from engine.http.app import App
from engine.http.engine_links import EngineLinks

_ANN, _BOB = "ann-" + "a" * 32, "bob-" + "b" * 32


@pytest.fixture(scope="module")
def guarded(running: EngineOptions, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpService]:
    """A service with two owners' tokens, one request at once and two a second for each."""
    file = tmp_path_factory.mktemp("tokens") / "tokens"
    file.write_text(f"# the team\nann {_ANN}\n\nbob {_BOB}\n")
    file.chmod(0o600)
    arguments = ["--token-file", str(file), "--at-once", "1", "--rate", "2", "--name", "team.example", "--log"]
    with http_service(Path(running.model), *arguments) as service:
        yield service


def _serve(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-P", "-m", "engine.cli", "serve", "--port", "0", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_another_address_than_loopback_needs_a_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refused = _serve("--host", "0.0.0.0")
    assert refused.returncode == 2
    assert "a token is needed" in refused.stderr
    assert refused.stderr.count("\n") == 1
    options = server.ServeOptions("0.0.0.0", token_file=tmp_path / "open")
    open_file = tmp_path / "open"
    open_file.write_text(_ANN)
    open_file.chmod(0o644)
    with pytest.raises(ModelError, match="chmod 600"):
        server.rules_of(options)
    if os.geteuid() == 0:
        open_file.chmod(0o600)
        os.chown(open_file, 65534, 65534)
        with pytest.raises(ModelError, match="are another user's"):
            server.rules_of(options)
    monkeypatch.setenv("MIDSPAN_SERVE_TOKEN", "short")
    with pytest.raises(ModelError, match="too short") as short:
        server.rules_of(server.ServeOptions("0.0.0.0"))
    assert "'short'" not in str(short.value)


def test_with_a_certificate_it_is_https(running: EngineOptions, certificate: tuple[Path, Path]) -> None:
    key, file = certificate
    with http_service(Path(running.model), "--certificate", str(file), "--key", str(key)) as service:
        assert service.url.startswith("https://")
        assert service.post("/infill", infill()).status_code == 200
    model = ["--model", running.model]
    assert "both --certificate and --key" in _serve("--certificate", str(file), *model).stderr
    wrong = _serve("--certificate", str(key), "--key", str(key), *model)
    assert wrong.returncode == 1
    assert wrong.stderr.startswith("midspan: cannot use the certificate")
    assert wrong.stderr.count("\n") == 1


def test_other_commands_load_no_server_and_the_server_no_torch() -> None:
    script = """
import sys, engine.cli
print(sorted({"starlette", "uvicorn", "torch"} & set(sys.modules)))
import engine.http.server
print(sorted({"starlette", "uvicorn", "torch"} & set(sys.modules)))
"""
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert ended.stdout.splitlines() == ["[]", "['starlette', 'uvicorn']"]


def test_an_address_in_use_is_told_in_one_line() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        refused = _serve("--port", str(taken.getsockname()[1]))
    assert refused.returncode == 1
    assert re.fullmatch(r"midspan: cannot listen on 127.0.0.1 port \d+: .*; choose another.*\n", refused.stderr)


@pytest.mark.parametrize("path", ["/infill", "/v1/completions", "/api/generate", "/v1/models", "/metrics", "/props"])
def test_without_the_token_nothing_is_told(guarded: HttpService, path: str) -> None:
    for headers in ({}, {"authorization": f"Bearer {_ANN}x"}, {"authorization": f"Basic {_ANN}"}, {"x-api-key": "é"}):
        encoded = [(name.encode(), value.encode()) for name, value in headers.items()]
        answer = guarded.client().request("POST" if "models" not in path else "GET", path, headers=encoded, json={})
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"] == "Bearer"
        assert "token" in json.dumps(answer.json())
        assert _ANN not in answer.text


def test_health_needs_no_token_and_tells_nothing(guarded: HttpService) -> None:
    assert guarded.get("/health").json() == {"status": "ok"}


def test_another_sites_name_or_page_is_refused(service: HttpService, guarded: HttpService) -> None:
    for headers in (
        {"host": "evil.example"},
        {"host": "127.0.0.1.evil.example"},
        {"host": ""},
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"sec-fetch-site": "cross-site"},
    ):
        answer = service.client().post("/v1/completions", json={"prompt": "x"}, headers=headers)
        assert answer.status_code == 403, headers
        assert answer.json()["error"]["type"] == "permission_error"
    preflight = service.client().options(
        "/v1/completions", headers={"origin": "https://evil.example", "access-control-request-method": "POST"}
    )
    assert preflight.status_code == 403
    assert not [name for name in preflight.headers if name.startswith("access-control")]
    for host in ("localhost:1", "[::1]:1", "127.0.0.1"):
        assert service.get("/health", host=host).status_code == 200
    assert guarded.get("/health", host="team.example").status_code == 200


def test_an_owner_cannot_take_more_than_its_share(guarded: HttpService) -> None:
    ann = {"authorization": f"Bearer {_ANN}"}
    statuses = [guarded.get("/v1/models", **ann).status_code for _ in range(12)]
    assert statuses[0] == 200
    assert 429 in statuses
    refused = next(answer for _ in range(20) if (answer := guarded.get("/v1/models", **ann)).status_code == 429)
    assert refused.headers["retry-after"] == "1"
    assert refused.json()["error"]["type"] == "rate_limit_error"
    assert guarded.get("/v1/models", authorization=f"Bearer {_BOB}").status_code == 200


_BAD = {
    "no JSON": b"{",
    "a list": b"[]",
    "nested": b"[" * 100_000,
    "a long number": b'{"prompt": "x", "max_tokens": ' + b"9" * 5000 + b"}",
    "text for a number": b'{"prompt": "x", "max_tokens": "8"}',
    "a boolean for a number": b'{"prompt": "x", "max_tokens": true}',
    "a number for text": b'{"prompt": 5}',
    "tokens for text": b'{"prompt": [1, 2]}',
    "two prompts": b'{"prompt": ["a", "b"]}',
    "no prompt": b"{}",
    "negative": b'{"prompt": "x", "max_tokens": -5}',
    "huge": b'{"prompt": "x", "max_tokens": 100000000000000000000}',
    "not a number": b'{"prompt": "x", "temperature": NaN}',
    "infinite": b'{"prompt": "x", "temperature": Infinity}',
    "half a character": b'{"prompt": "\\ud800"}',
    "no UTF-8": b'{"prompt": "\xff"}',
    "many stops": b'{"prompt": "x", "stop": ' + json.dumps(["a"] * 1000).encode() + b"}",
    "a million tokens": b'{"prompt": "' + b"word " * 300_000 + b'"}',
}


@pytest.mark.parametrize("kind", _BAD)
def test_a_bad_body_is_told_what_is_wrong(service: HttpService, kind: str) -> None:
    answer = service.client().post("/v1/completions", content=_BAD[kind])
    assert answer.status_code == 400, answer.text
    error = answer.json()["error"]
    assert error["type"] == "invalid_request_error"
    assert "\n" not in error["message"]
    assert 10 < len(error["message"]) < 300


def test_a_bad_field_is_named(service: HttpService) -> None:
    refused = service.post("/infill", infill(input_extra=[{"text": 5}]))
    assert refused.status_code == 400
    assert refused.json()["error"]["code"] == 400
    assert "input_extra[0].text" in refused.json()["error"]["message"]


@pytest.mark.parametrize("size", [5_000_000, 10_000_000])
def test_a_body_that_is_too_long_is_refused_with_a_reason(service: HttpService, size: int) -> None:
    answer = service.client().post("/infill", content=b"x" * size)
    assert answer.status_code == 413
    assert "too long" in answer.json()["error"]["message"]


def test_a_body_without_end_is_cut_off(service: HttpService) -> None:
    def endless() -> Iterator[bytes]:
        while True:
            yield b"x" * 65536

    with contextlib.suppress(httpx2.TransportError):  # it may still write when the server closes
        assert service.client().post("/infill", content=endless()).status_code == 413
    assert service.get("/health").status_code == 200


def test_events_that_are_too_long_are_refused_too(service: HttpService) -> None:
    answer = service.client().post("/v1/events", content=b"x" * 5_000_000)
    assert answer.status_code == 413
    assert "too long" in answer.json()["error"]["message"]


def test_unknown_paths_and_methods_are_told_in_the_dialects_form(service: HttpService) -> None:
    assert service.get("/v1/nothing").json()["error"]["type"] == "not_found_error"
    assert service.get("/v1/completions").status_code == 405
    assert isinstance(service.get("/api/nothing").json()["error"], str)
    assert service.get("/nothing").json()["error"]["code"] == 404


def test_the_log_has_no_code_and_no_token(guarded: HttpService, service: HttpService) -> None:
    secret = "zanzibar_flotilla"
    body = {"prompt": f"{PREFIX}{secret} + ", "suffix": SUFFIX, "max_tokens": 4}
    assert service.post(f"/v1/completions?{secret}=1", body).status_code == 200
    service.get(f"/{secret}")
    service.post("/infill", infill(n_predict=secret))
    service.get("/health")
    lines = [line for line in list(service.lines) if line.startswith("{")]
    logged = [json.loads(line) for line in lines]
    assert {"route": "other", "status": 404}.items() <= next(each for each in logged if each["status"] == 404).items()
    assert next(each for each in logged if each["route"] == "/v1/completions" and each["status"] == 200)["read"] > 0
    assert secret not in "".join(service.lines)
    assert _ANN not in "".join(guarded.lines)


def test_metrics_are_what_prometheus_reads(service: HttpService) -> None:
    service.post("/infill", infill())
    answer = service.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    sample = re.compile(r'midspan_\w+(\{\w+="[^"]*"(,\w+="[^"]*")*\})? -?[0-9.e+-]+')
    for line in answer.text.splitlines():
        assert line.startswith(("# HELP midspan_", "# TYPE midspan_")) or sample.fullmatch(line), line
    assert service.metric('requests_total{route="/infill",status="200"}') >= 1
    assert service.metric('request_seconds_bucket{route="/infill",le="+Inf"}') >= 1
    assert service.metric("engine_up") == 1
    assert service.metric("engine_fills_total") >= 1
    assert service.metric('tokens_total{kind="written"}') > 0


async def test_a_request_whose_head_does_not_come_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "HEAD_S", 0.3)
    options = server.ServeOptions(port=0)
    app = App(EngineLinks(EngineOptions()), server.rules_of(options))
    with server.listen(options) as listening:
        serving = uvicorn.Server(server.config_of(app, options))
        running = asyncio.create_task(serving.serve(sockets=[listening]))
        reader, writer = await asyncio.open_connection(*listening.getsockname())
        whole = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
        writer.write(whole)
        async with asyncio.timeout(30):
            assert await reader.readuntil(b'{"status":"ok"}')
            writer.write(whole[:20])
            with contextlib.suppress(ConnectionResetError):
                assert await reader.read() == b"", "a half head after a whole request"
        writer.close()
        serving.should_exit = True
        await running


def test_half_a_request_holds_nobody_up(service: HttpService) -> None:
    halves = [b"POST /infill HTTP/1.1\r\nHost: ", b"POST /infill HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n{"]
    open_ones = []
    for half in halves * 20:
        connection = socket.create_connection(("127.0.0.1", service.port))
        connection.sendall(half)
        open_ones.append(connection)
    assert service.post("/infill", infill()).status_code == 200
    for connection in open_ones:
        connection.close()


async def test_each_write_of_an_answer_is_sent_at_once() -> None:
    """Else the body waits 40 ms for the acknowledgement of the header."""
    accepted: asyncio.Queue[int] = asyncio.Queue()

    async def note(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        own = writer.get_extra_info("socket")
        accepted.put_nowait(own.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
        writer.close()

    listening = server.listen(server.ServeOptions(port=0))
    async with await asyncio.start_server(note, sock=listening):
        _, writer = await asyncio.open_connection(*listening.getsockname())
        assert await accepted.get()
        writer.close()
