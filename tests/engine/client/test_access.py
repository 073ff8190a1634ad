"""Who is let in: a client of the same user and protocol that greets, over the Unix socket or TCP with the token."""

import asyncio
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from wire import HOLE, Wire

from engine.client.address import RuntimePaths, runtime_paths_of
from engine.client.launcher import EngineOptions, connect_or_start
from engine.client.lock import LockRecord, read_record
from engine.errors import EngineUnavailable
from engine.models import load as registry
from engine.protocol.framing import pack
from engine.protocol.messages import PROTOCOL_VERSION, Filled, Hello, StatusRequest, Welcome
from engine.schedule.scheduler import Scheduler
from engine.server import client_session as session
from engine.server.listener import Listener
from engine.server.server import Server


async def test_hello_comes_first(running: EngineOptions) -> None:
    wire = await Wire.open(running)
    wire.send(StatusRequest())
    assert (await wire.failed()).code == "hello-expected"
    assert await wire.is_over()


async def test_another_protocol_version_is_told_both_versions_and_what_to_do(running: EngineOptions) -> None:
    wire = await Wire.open(running)
    wire.send(Hello(PROTOCOL_VERSION + 1, "from the future"))
    failed = await wire.failed()
    assert failed.code == "version"
    assert f"protocol {PROTOCOL_VERSION + 1} and this engine {PROTOCOL_VERSION}; update" in failed.message
    assert await wire.is_over()


async def test_half_a_hello_is_not_waited_for_for_ever(
    options: EngineOptions, place: RuntimePaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "HELLO_TIMEOUT_S", 0.2)
    family = registry.load(options.model, threads=1)
    listener = Listener(place, "unix")
    server = Server(Scheduler(family), Welcome(PROTOCOL_VERSION, "test", os.getpid(), family.info), "", 0)
    serving = asyncio.create_task(server.run(listener.socket))
    wire = Wire(*await asyncio.open_unix_connection(listener.address.path))
    wire.send_bytes(pack(Hello(PROTOCOL_VERSION, "test"))[:-1])
    failed = await wire.failed()
    assert failed.code == "hello-expected"
    assert "no whole Hello came within" in failed.message
    assert await wire.is_over()
    server.stop("the test is over")
    await serving
    await server.close()
    listener.remove()


def test_only_the_user_can_reach_the_socket(running: EngineOptions) -> None:
    place = runtime_paths_of(running.model)
    assert stat.S_IMODE(place.directory.stat().st_mode) == 0o700
    assert stat.S_IMODE(place.socket.stat().st_mode) == 0o600
    assert stat.S_IMODE(place.lock.stat().st_mode) == 0o600


@pytest.fixture
def public_place(options: EngineOptions, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A runtime directory that, unlike pytest's, another user can be let into."""
    directory = Path(tempfile.mkdtemp(prefix="midspan-test-"))
    monkeypatch.setenv("MIDSPAN_RUNTIME_DIR", str(directory))
    yield directory
    shutil.rmtree(directory, ignore_errors=True)


def open_to_all(directory: Path, socket: Path) -> None:
    directory.chmod(0o755)
    socket.chmod(0o666)


@pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="only root on Linux can be another user too")
async def test_another_user_is_refused_even_where_the_files_let_him_in(
    options: EngineOptions, public_place: Path
) -> None:
    client = await connect_or_start(options, "test")
    place = runtime_paths_of(options.model)
    open_to_all(public_place, place.socket)
    script = (
        "import os, socket, sys\n"
        "s = socket.socket(socket.AF_UNIX)\n"
        "os.setuid(65534)\n"
        "s.connect(sys.argv[1])\n"
        "sys.stdout.buffer.write(s.recv(1000))\n"
    )
    heard = await asyncio.to_thread(
        subprocess.run, [sys.executable, "-c", script, str(place.socket)], capture_output=True, check=True
    )
    assert b"refused" in heard.stdout
    assert b"belongs to user 0; user 65534 must start its own" in heard.stdout
    await client.shutdown()
    await client.close()


async def test_over_tcp_the_token_opens_the_door_and_nothing_else_does(
    options: EngineOptions, place: RuntimePaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MIDSPAN_TRANSPORT", "tcp")
    client = await connect_or_start(options, "test")
    token = runtime_paths_of(options.model).token
    assert stat.S_IMODE(token.stat().st_mode) == 0o600
    assert isinstance(await client.fill(HOLE), Filled)
    record = read_record(runtime_paths_of(options.model).lock)
    assert isinstance(record, LockRecord)
    for wrong in ("", "x" * len(token.read_text()), "ünïcode"):
        wire = Wire(*await asyncio.open_connection("127.0.0.1", record.port))
        wire.send(Hello(PROTOCOL_VERSION, "test", wrong))
        assert (await wire.failed()).code == "token"
        assert await wire.is_over()
        wire.close()
    await client.shutdown()
    await client.close()
    assert not token.exists()


def test_a_runtime_directory_that_others_can_write_to_is_not_used(
    options: EngineOptions, place: RuntimePaths, tmp_path: Path
) -> None:
    tmp_path.chmod(0o777)
    with pytest.raises(EngineUnavailable, match="others can write to the runtime directory"):
        asyncio.run(connect_or_start(options, "test"))
