"""Which clients the engine accepts: those of the same user and protocol that send Hello, with the token on TCP."""

import asyncio
import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest
from raw_client import HOLE, RawClient

from engine.client.address import RuntimePaths, runtime_paths_of
from engine.client.launcher import EngineOptions, connect_or_start
from engine.client.lock import LockRecord, read_record
from engine.errors import EngineUnavailable
from engine.models.load import load
from engine.protocol.framing import pack
from engine.protocol.messages import PROTOCOL_VERSION, Filled, Hello, StatusRequest, Welcome
from engine.schedule.scheduler import Scheduler
from engine.server import client_session as session
from engine.server.listener import Listener
from engine.server.server import Server
from engine.whole_files import try_lock


async def test_a_client_must_send_hello_first(running: EngineOptions) -> None:
    raw = await RawClient.open(running)
    raw.send(StatusRequest())
    assert (await raw.failed()).code == "hello-expected"
    assert await raw.has_ended()


async def test_a_client_of_another_protocol_version_learns_both_versions_and_what_to_do(running: EngineOptions) -> None:
    raw = await RawClient.open(running)
    raw.send(Hello(PROTOCOL_VERSION + 1, "from the future"))
    failed = await raw.failed()
    assert failed.code == "version"
    assert f"protocol {PROTOCOL_VERSION + 1} and this engine {PROTOCOL_VERSION}; update" in failed.message
    assert await raw.has_ended()


async def test_the_engine_does_not_wait_forever_for_the_rest_of_a_hello(
    options: EngineOptions, paths: RuntimePaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "HELLO_TIMEOUT_S", 0.2)
    model = load(options.model, threads=1)
    listener = Listener(paths, "unix")
    server = Server(Scheduler(model), Welcome(PROTOCOL_VERSION, "test", os.getpid(), model.info), "", 0)
    serving = asyncio.create_task(server.run(listener.socket))
    raw = RawClient(*await asyncio.open_unix_connection(listener.address.path))
    raw.send_bytes(pack(Hello(PROTOCOL_VERSION, "test"))[:-1])
    failed = await raw.failed()
    assert failed.code == "hello-expected"
    assert "no whole Hello came within" in failed.message
    assert await raw.has_ended()
    server.stop("the test is over")
    await serving
    await server.close()
    listener.remove()


def test_only_the_user_can_reach_the_socket(running: EngineOptions) -> None:
    paths = runtime_paths_of(running.model)
    assert stat.S_IMODE(paths.directory.stat().st_mode) == 0o700
    assert stat.S_IMODE(paths.socket.stat().st_mode) == 0o600
    assert stat.S_IMODE(paths.lock.stat().st_mode) == 0o600


@pytest.fixture
def public_directory(options: EngineOptions, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A runtime directory that another user can be allowed to enter, unlike pytest's."""
    directory = Path(tempfile.mkdtemp(prefix="midspan-test-"))
    monkeypatch.setenv("MIDSPAN_RUNTIME_DIR", str(directory))
    yield directory
    shutil.rmtree(directory, ignore_errors=True)


def open_to_all(directory: Path, socket: Path) -> None:
    directory.chmod(0o755)
    socket.chmod(0o666)


@pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="only root on Linux can be another user too")
async def test_another_user_is_refused_even_if_the_file_modes_admit_them(
    options: EngineOptions, public_directory: Path
) -> None:
    client = await connect_or_start(options, "test")
    paths = runtime_paths_of(options.model)
    open_to_all(public_directory, paths.socket)
    script = (
        "import os, socket, sys\n"
        "s = socket.socket(socket.AF_UNIX)\n"
        "os.setuid(65534)\n"
        "s.connect(sys.argv[1])\n"
        "sys.stdout.buffer.write(s.recv(1000))\n"
    )
    output = await asyncio.to_thread(
        subprocess.run, [sys.executable, "-c", script, str(paths.socket)], capture_output=True, check=True
    )
    assert b"refused" in output.stdout
    assert b"belongs to user 0; user 65534 must start its own" in output.stdout
    await client.shutdown()
    await client.close()


async def test_over_tcp_a_client_needs_the_right_token(
    options: EngineOptions, paths: RuntimePaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MIDSPAN_TRANSPORT", "tcp")
    client = await connect_or_start(options, "test")
    token = runtime_paths_of(options.model).token
    assert stat.S_IMODE(token.stat().st_mode) == 0o600
    assert isinstance(await client.fill(HOLE), Filled)
    record = read_record(runtime_paths_of(options.model).lock)
    assert isinstance(record, LockRecord)
    for wrong_token in ("", "x" * len(token.read_text()), "ünïcode"):
        raw = RawClient(*await asyncio.open_connection("127.0.0.1", record.port))
        raw.send(Hello(PROTOCOL_VERSION, "test", wrong_token))
        assert (await raw.failed()).code == "token"
        assert await raw.has_ended()
        raw.close()
    await client.shutdown()
    await client.close()
    assert not token.exists()


def test_a_runtime_directory_that_others_can_write_to_is_refused(
    options: EngineOptions, paths: RuntimePaths, tmp_path: Path
) -> None:
    tmp_path.chmod(0o777)
    with pytest.raises(EngineUnavailable, match="others can write to the runtime directory"):
        asyncio.run(connect_or_start(options, "test"))


async def _listening(received: list[bytes]) -> asyncio.Server:
    """A server in the place of an engine, which keeps what clients send."""

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        received.append(await reader.read(1000))
        writer.close()

    return await asyncio.start_server(take, "127.0.0.1", 0)


def _prepare(kind: str, paths: RuntimePaths, port: int, elsewhere: Path) -> None:
    """Write a record of an engine at `port` as somebody could who is not the user."""
    record = json.dumps(attrs.asdict(LockRecord(os.getpid(), "m", "0", port=port)))
    paths.directory.mkdir(mode=0o700, exist_ok=True)
    paths.token.write_text("token")
    paths.token.chmod(0o600)
    if kind == "a link":
        elsewhere.write_text(record)
        paths.lock.symlink_to(elsewhere)
        return
    paths.lock.write_text(record)
    paths.lock.chmod(0o666 if kind == "a lock that others can write" else 0o600)
    if kind == "a token that others can write":
        paths.token.chmod(0o622)
    if kind == "a directory that others can write":
        paths.directory.chmod(0o777)
    if kind == "a lock of another user":
        os.chown(paths.lock, 65534, 65534)
    if kind == "a directory of another user":
        os.chown(paths.directory, 65534, 65534)


_NEEDS_ROOT = pytest.mark.skipif(
    sys.platform != "linux" or os.geteuid() != 0, reason="only root on Linux can give files to another user"
)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no modes")
@pytest.mark.parametrize(
    "kind",
    [
        "a link",
        "a lock that others can write",
        "a token that others can write",
        "a directory that others can write",
        pytest.param("a lock of another user", marks=_NEEDS_ROOT),
        pytest.param("a directory of another user", marks=_NEEDS_ROOT),
    ],
)
async def test_an_engine_that_somebody_else_may_have_named_gets_nothing(
    kind: str, options: EngineOptions, paths: RuntimePaths, tmp_path: Path
) -> None:
    received: list[bytes] = []
    server = await _listening(received)
    port = server.sockets[0].getsockname()[1]
    _prepare(kind, paths, port, tmp_path.parent / "record.json")
    with paths.lock.open("r+") as held:
        assert try_lock(held.fileno()), "the engine's process holds its lock"
        with pytest.raises(EngineUnavailable, match=r"only you can write|others can write|not a directory of yours"):
            await connect_or_start(options, "test")
    server.close()
    await server.wait_closed()
    assert received == []
