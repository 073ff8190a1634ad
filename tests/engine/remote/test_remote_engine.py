"""A remote model from end to end: a client, a real engine process and a server on loopback."""

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import nullcontext
from pathlib import Path

import attrs
import psutil
import pytest
from support.engine_process import end
from support.remote_server import TEXT, ModelServer, answers, answers_status, hangs

from engine.client.connection import EngineClient, EngineFailure
from engine.client.launcher import EngineOptions, connect_or_start, connect_running
from engine.errors import EngineUnavailable
from engine.protocol.memory_messages import Learn
from engine.protocol.messages import Fill, Progress
from lsp_server.engine_link.link import EngineLink
from lsp_server.engine_link.status import StatusBoard
from lsp_server.wire import StatusParams

MARKER = "s3cr3t_marker_of_the_user"
HOLE = Fill(0, prefix=f"{MARKER} = ", suffix=f"\nprint({MARKER})\n", budget_ms=20_000)


@pytest.fixture
def remote(server: ModelServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[EngineOptions]:
    """The options of an engine whose model is on the server. The engine is ended after the test."""
    monkeypatch.setenv("MIDSPAN_RUNTIME_DIR", str(tmp_path))
    options = EngineOptions(model=server.model("openai"), log_level="debug")
    yield options
    end(options.paths)


@pytest.fixture
async def client(remote: EngineOptions) -> AsyncIterator[EngineClient]:
    client = await connect_or_start(remote, "test")
    yield client
    await client.close()


async def test_a_fill_goes_through_the_engine_to_the_server_and_back(server: ModelServer, client: EngineClient) -> None:
    model = client.welcome.model
    assert (model.name, model.family, model.device) == ("qwen", "remote", "remote")
    assert model.server == f"127.0.0.1:{server.port}"
    seen: list[Progress] = []
    filled = await client.fill(HOLE, seen.append)
    assert filled.candidates[0].text == TEXT
    assert "".join(piece or "" for piece in seen[-1].canvas) == TEXT
    status = await client.status()
    assert (status.fills, status.passes, status.model) == (1, 1, model)


async def test_nothing_of_a_learned_file_reaches_the_server(server: ModelServer, client: EngineClient) -> None:
    known = f"{MARKER} = known_elsewhere({MARKER})\nprint({MARKER})\n"
    await client.learn(Learn("/home/project", "elsewhere.py", known * 3))
    await client.fill(attrs.evolve(HOLE, workspace="/home/project", path="here.py"))
    assert len(server.bodies) == 1
    assert "elsewhere" not in str(server.bodies)
    assert (await client.memory_status("/home/project")).files == 0


async def test_the_engine_of_a_remote_model_never_loads_torch(client: EngineClient) -> None:
    await client.fill(HOLE)
    loaded = {Path(mapped.path).name for mapped in psutil.Process(client.welcome.pid).memory_maps()}
    assert any("msgpack" in name or "_cmsgpack" in name for name in loaded), "the maps show no extension module at all"
    assert not any(name.startswith("libtorch") for name in loaded)


async def test_every_client_means_the_same_engine_by_one_name(remote: EngineOptions, client: EngineClient) -> None:
    second = await connect_running(remote, "second")
    assert second is not None
    assert second.welcome.pid == client.welcome.pid
    await second.close()


async def test_a_cancelled_fill_reaches_the_server_as_a_closed_connection(
    server: ModelServer, client: EngineClient
) -> None:
    server.behaviour = hangs
    filling = asyncio.create_task(client.fill(attrs.evolve(HOLE, budget_ms=600_000)))
    await server.has_received(1)
    filling.cancel()
    assert await asyncio.to_thread(server.client_left.wait, 20)


async def test_an_engine_that_is_stopped_closes_its_connection_to_the_server(
    server: ModelServer, client: EngineClient
) -> None:
    server.behaviour = hangs
    filling = asyncio.create_task(client.fill(attrs.evolve(HOLE, budget_ms=600_000)))
    await server.has_received(1)
    await client.shutdown()
    with pytest.raises(EngineFailure, match="the engine is ending"):
        await filling
    assert await asyncio.to_thread(server.client_left.wait, 20)


async def test_the_log_contains_the_servers_failures_but_no_code_and_no_key(
    server: ModelServer, remote: EngineOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MIDSPAN_API_KEY", "k3y_of_the_user")
    client = await connect_or_start(remote, "test")
    await client.fill(HOLE)
    server.behaviour = answers_status(500, f"cannot complete {MARKER}")
    with pytest.raises(EngineFailure) as failure:
        await client.fill(HOLE)
    assert failure.value.code == "remote"
    server.script.append(answers_status(400, f"bad prompt {MARKER}"))
    with pytest.raises(EngineFailure):
        await client.fill(HOLE)
    await client.close()
    log = remote.paths.log.read_text()
    assert f"127.0.0.1:{server.port} failed (status 500)" in log
    assert MARKER not in log
    assert "k3y" not in log


async def test_a_wrong_model_string_is_one_clear_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MIDSPAN_RUNTIME_DIR", str(tmp_path))
    options = EngineOptions(model="openai+https://me:s3cr3t@host/v1")
    with pytest.raises(EngineUnavailable) as failure:
        await connect_or_start(options, "test")
    assert "leave them out, and put its key into the environment variable" in str(failure.value)
    assert "\n" not in str(failure.value)
    assert "s3cr3t" not in options.paths.log.read_text()


async def test_the_command_line_shows_the_engine_of_a_remote_model(remote: EngineOptions, client: EngineClient) -> None:
    command = [sys.executable, "-m", "engine.cli", "engine", "status", "--model", remote.model]
    environment = {**os.environ, "COLUMNS": "200"}
    shown = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, env=environment)
    assert shown.returncode == 0, shown.stderr
    assert "the server 127.0.0.1:" in shown.stdout
    assert "parameters" not in shown.stdout


async def test_the_status_says_that_the_code_stays_and_reports_a_failing_server(
    server: ModelServer, remote: EngineOptions
) -> None:
    shown: list[StatusParams] = []
    link = EngineLink(StatusBoard(shown.append), lambda: nullcontext(_HiddenProgress()))
    link.configure(remote)
    client = await link.client()
    ready = shown[-1]
    assert ready.state == "ready"
    where = f"Its server 127.0.0.1:{server.port} is on this machine, which your code does not leave."
    assert ready.message == f"Ready: qwen. {where}"
    assert ready.model == f"qwen at 127.0.0.1:{server.port}"
    server.behaviour = answers_status(500)
    with pytest.raises(EngineFailure):
        await link.fill(client, HOLE)
    assert shown[-1].state == "error"
    assert f"127.0.0.1:{server.port} failed (status 500)" in shown[-1].message
    server.behaviour = answers
    await link.fill(client, HOLE)
    last = shown[-1]
    assert (last.state, last.message) == ("ready", ready.message)
    await link.close()


async def test_the_status_says_that_code_leaves_the_machine_and_names_the_host(
    remote: EngineOptions,
) -> None:
    shown: list[StatusParams] = []
    options = attrs.evolve(remote, model="mercury+https://models.example/v1#mercury-edit-2")
    link = EngineLink(StatusBoard(shown.append), lambda: nullcontext(_HiddenProgress()))
    link.configure(options)
    client = await link.client()
    ready = shown[-1]
    assert ready.state == "ready"
    assert ready.message == "Ready: mercury-edit-2. Your code leaves this machine: it is sent to models.example."
    assert ready.model == "mercury-edit-2 at models.example"
    with pytest.raises(EngineFailure):
        await link.fill(client, attrs.evolve(HOLE, budget_ms=50))
    busy = next(params for params in shown if params.state == "busy")
    assert busy.message == "Filling a hole. Your code leaves this machine: it is sent to models.example."
    await link.close()
    end(options.paths)


class _HiddenProgress:
    """A progress bar that shows nothing."""

    def report(self, message: str) -> None:
        pass
