"""A client that closes its connection ends its fill: in every dialect, streamed or not, one client or hundreds."""

import asyncio
import json
import os
import signal
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from http_service import HttpService, http_service
from support.engine_process import end, poll
from uvicorn.protocols.http.h11_impl import H11Protocol

from engine.client.address import runtime_paths_of
from engine.client.launcher import EngineOptions, connect_or_start
from engine.client.lock import read_record
from engine.http import app, server
from engine.http.engine_links import EngineLinks

_LONG = {"max_tokens": 2048, "prompt": "x = ", "model": "midspan"}
_REQUESTS: dict[str, tuple[str, dict[str, Any]]] = {
    "llama.vim": ("/infill", {"prompt": "x = ", "n_predict": 2048, "t_max_predict_ms": 600_000}),
    "OpenAI": ("/v1/completions", _LONG),
    "OpenAI, streamed": ("/v1/completions", {**_LONG, "stream": True}),
    "Mistral": ("/v1/fim/completions", _LONG),
    "Ollama, streamed": ("/api/generate", {"model": "midspan", "prompt": "x = ", "options": {"num_predict": 2048}}),
}
_CLIENTS, _WAVES = 32, 8


@pytest.fixture(scope="module")
def slow(slow_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpService]:
    """A service over an engine whose fills take seconds."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MIDSPAN_RUNTIME_DIR", str(tmp_path_factory.mktemp("runtime")))

        async def start() -> None:
            await (await connect_or_start(EngineOptions(model=str(slow_model), threads=1), "fixture")).close()

        asyncio.run(start())
        with http_service(slow_model, "--rate", "0") as service:
            yield service
        end(runtime_paths_of(str(slow_model)))


def _send(service: HttpService, path: str, body: dict[str, Any]) -> socket.socket:
    content = json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(content)}\r\n\r\n".encode()
    connection = socket.create_connection(("127.0.0.1", service.port), timeout=30)
    connection.sendall(head + content)
    return connection


def _at_work(service: HttpService) -> float:
    return service.metric("engine_fills_active") + service.metric("engine_fills_waiting")


@pytest.mark.parametrize("client", _REQUESTS)
def test_a_client_that_closes_ends_its_fill(
    slow: HttpService, eventually: Callable[[Callable[[], bool]], None], client: str
) -> None:
    path, body = _REQUESTS[client]
    filled, left = slow.metric("engine_fills_total"), slow.metric(f'requests_total{{route="{path}",status="499"}}')
    connection = _send(slow, path, body)
    eventually(lambda: _at_work(slow) == 1)
    connection.close()
    eventually(lambda: _at_work(slow) == 0)
    assert slow.metric("engine_fills_total") == filled, "the fill ran to its end"
    eventually(lambda: slow.metric(f'requests_total{{route="{path}",status="499"}}') == left + 1)


@pytest.mark.slow
def test_hundreds_of_killed_clients_leave_nothing_that_runs(
    slow: HttpService, eventually: Callable[[Callable[[], bool]], None]
) -> None:
    filled = slow.metric("engine_fills_total")
    requests = list(_REQUESTS.values())
    for wave in range(_WAVES):
        connections = [_send(slow, *requests[(wave + number) % len(requests)]) for number in range(_CLIENTS - 1)]
        eventually(lambda: _at_work(slow) > 0)
        for connection in connections:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")  # as a killed process: RST
            connection.close()
        eventually(lambda: _at_work(slow) == 0)
    assert slow.metric("engine_fills_total") == filled, "a fill ran to its end"
    eventually(lambda: slow.metric("requests_running") == 1)  # the one that asks
    assert slow.post("/infill", {"prompt": "x = ", "n_predict": 1}).json()["tokens_predicted"] <= 1


def test_too_many_at_once_are_refused_and_the_others_run(
    slow: HttpService, eventually: Callable[[Callable[[], bool]], None]
) -> None:
    path, body = _REQUESTS["OpenAI"]
    connections = [_send(slow, path, body) for _ in range(_CLIENTS + 1)]
    with connections[-1] as last:
        assert last.recv(12) == b"HTTP/1.1 429"
    for connection in connections:
        connection.close()
    eventually(lambda: slow.get("/metrics").status_code == 200 and _at_work(slow) == 0)


def test_an_engine_that_dies_is_replaced_and_the_request_is_answered(
    slow: HttpService, slow_model: Path, eventually: Callable[[Callable[[], bool]], None]
) -> None:
    path, _ = _REQUESTS["OpenAI"]
    record = read_record(runtime_paths_of(str(slow_model)).lock)
    assert record is not None
    connection = _send(slow, path, {**_LONG, "max_tokens": 64})
    eventually(lambda: _at_work(slow) == 1)
    os.kill(record.pid, signal.SIGKILL)
    connection.settimeout(60)
    with connection:
        assert connection.recv(12) == b"HTTP/1.1 200"


async def test_a_client_that_does_not_read_is_dropped_and_its_fill_ends(
    running: EngineOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app, "BODY_S", 0.5)
    connected = H11Protocol.connection_made

    def connect(protocol: H11Protocol, transport: asyncio.Transport) -> None:
        transport.set_write_buffer_limits(high=512)  # so that a short text does not fit into it
        connected(protocol, transport)

    monkeypatch.setattr(H11Protocol, "connection_made", connect)
    options = server.ServeOptions(port=0)
    links = EngineLinks(running)
    await links.start()
    serving_app = app.App(links, server.rules_of(options))
    with server.listen(options) as listening, socket.socket() as client:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        serving = uvicorn.Server(server.config_of(serving_app, options))
        serve = asyncio.create_task(serving.serve(sockets=[listening]))
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
        client.setblocking(False)
        loop = asyncio.get_running_loop()
        await loop.sock_connect(client, listening.getsockname())
        body = json.dumps({**_LONG, "stream": True}).encode()
        head = f"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n"
        await loop.sock_sendall(client, head.encode() + body)
        await asyncio.to_thread(poll, lambda: "requests_total{" in serving_app.metrics.text(None))
        assert 'status="499"' in serving_app.metrics.text(None), serving_app.metrics.text(None)
        assert (await links.status())[0].active == 0
        serving.should_exit = True
        await serve
    await links.close()
