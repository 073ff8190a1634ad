"""One engine for each user and model: started on demand, shared, replaced when it dies, ended when idle."""

import asyncio
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import attrs
import pytest
from raw_client import HOLE, LONG, RawClient
from support.processes import niceness_of

from engine.client.address import RuntimePaths, runtime_paths_of
from engine.client.connection import EngineFailure
from engine.client.launcher import EngineOptions, connect_or_start, connect_running
from engine.client.lock import EngineLock, LockRecord, is_held, read_record
from engine.errors import EngineUnavailable
from engine.protocol.messages import Cancel

pytestmark = pytest.mark.slow

Eventually = Callable[[Callable[[], bool]], None]
RACER = """
import asyncio, sys
from engine.client.launcher import EngineOptions, connect_or_start
async def main():
    client = await connect_or_start(EngineOptions(model=sys.argv[1], threads=1), "racer")
    print(client.welcome.pid)
    await client.close()
asyncio.run(main())
"""


def test_clients_that_start_at_the_same_time_share_one_engine(options: EngineOptions, paths: RuntimePaths) -> None:
    command = [sys.executable, "-c", RACER, options.model]
    racers = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    pids = {racer.communicate(timeout=60)[0].strip() for racer in racers}
    record = read_record(paths.lock)
    assert record is not None
    assert pids == {str(record.pid)}


async def test_an_engine_that_is_started_for_the_background_gives_way(options: EngineOptions) -> None:
    client = await connect_or_start(attrs.evolve(options, niceness=5), "test")
    assert niceness_of(client.welcome.pid) == {os.nice(0) + 5}
    await client.close()


async def test_an_engine_that_is_killed_during_a_fill_is_replaced_despite_its_files(
    options: EngineOptions, paths: RuntimePaths
) -> None:
    states: list[str] = []
    first = await connect_or_start(options, "test", states.append)
    assert (states[0], states[-1]) == ("starting", "ready")
    filling = asyncio.create_task(first.fill(LONG))
    await first.status()
    os.kill(first.welcome.pid, signal.SIGKILL)
    with pytest.raises(EngineUnavailable, match="connection to the engine was lost"):
        await filling
    assert first.closed.is_set()
    assert paths.lock.exists()
    assert paths.socket.exists()
    assert await connect_running(options, "test") is None

    second = await connect_or_start(options, "test")
    assert second.welcome.pid != first.welcome.pid
    assert (await second.fill(HOLE)).candidates
    await second.close()


async def test_on_sigterm_the_engine_answers_open_fills_and_removes_its_files(
    options: EngineOptions, paths: RuntimePaths, eventually: Eventually
) -> None:
    client = await connect_or_start(options, "test")
    filling = asyncio.create_task(client.fill(LONG))
    await client.status()
    os.kill(client.welcome.pid, signal.SIGTERM)
    with pytest.raises(EngineFailure, match="the engine is ending") as failure:
        await filling
    assert failure.value.code == "shutting-down"
    await client.closed.wait()
    assert not paths.socket.exists()
    assert not paths.lock.exists()
    eventually(lambda: not is_running(client.welcome.pid))
    with pytest.raises(EngineUnavailable, match="the engine is ending"):
        await client.fill(HOLE)


async def test_a_client_that_sends_before_it_reads_still_learns_that_the_engine_ends(options: EngineOptions) -> None:
    client = await connect_or_start(options, "test")
    late = await RawClient.greeted(options)
    os.kill(client.welcome.pid, signal.SIGTERM)
    time.sleep(0.5)  # noqa: ASYNC251  the engine has said that it ends, and nothing was read yet
    late.send(Cancel(1))
    assert (await late.failed()).code == "shutting-down"
    late.close()
    await client.closed.wait()
    assert client.was_shut_down


async def test_an_idle_engine_ends_even_while_a_client_is_connected(
    options: EngineOptions, paths: RuntimePaths
) -> None:
    client = await connect_or_start(attrs.evolve(options, idle_minutes=1.5 / 60), "test")
    async with asyncio.timeout(30):
        await client.closed.wait()
    assert not is_held(paths.lock)
    assert "nobody used the engine for" in options.paths.log.read_text()


async def test_a_model_that_cannot_be_loaded_is_one_clear_line(paths: RuntimePaths, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(EngineUnavailable, match=re.escape(str(empty))) as error:
        await connect_or_start(EngineOptions(model=str(empty)), "test")
    assert "\n" not in str(error.value)
    assert "ended with status" not in str(error.value)


async def test_an_engine_runs_even_if_its_log_cannot_be_written(options: EngineOptions, paths: RuntimePaths) -> None:
    options.paths.log.symlink_to("/dev/full")
    client = await connect_or_start(options, "test")
    assert (await client.fill(HOLE)).candidates
    await client.shutdown()
    await client.close()
    assert not paths.lock.exists()


async def test_a_runtime_directory_that_cannot_be_created_is_one_clear_line(
    options: EngineOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MIDSPAN_RUNTIME_DIR", "/dev/null/midspan")
    with pytest.raises(
        EngineUnavailable, match=r"cannot use the runtime directory /dev/null/midspan: .*MIDSPAN_RUNTIME"
    ):
        await connect_or_start(options, "test")


def test_a_process_that_finds_the_lock_held_ends_without_a_word(options: EngineOptions, paths: RuntimePaths) -> None:
    lock = EngineLock.acquire(paths.lock)
    assert lock is not None
    try:
        second = subprocess.run(
            [sys.executable, "-m", "engine", "--model", options.model], capture_output=True, timeout=60, check=False
        )
        assert (second.returncode, second.stdout, second.stderr) == (75, b"", b"")
    finally:
        lock.release()
    assert not paths.lock.exists()


def test_a_lock_is_free_after_its_holder_released_it(tmp_path: Path) -> None:
    path = tmp_path / "engine.lock"
    lock = EngineLock.acquire(path)
    assert lock is not None
    assert is_held(path)
    assert EngineLock.acquire(path) is None
    lock.write(LockRecord(1, "a model with a long name", "1", port=7))
    lock.write(LockRecord(2, "m", "1"))
    assert read_record(path) == LockRecord(2, "m", "1")
    lock.release()
    assert not is_held(path)
    again = EngineLock.acquire(path)
    assert again is not None
    again.release()


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"pid": "x"}', b"\xff\xfe"])
def test_a_damaged_lock_file_counts_as_no_engine(paths: RuntimePaths, body: bytes) -> None:
    paths.lock.write_bytes(body)
    assert read_record(paths.lock) is None
    lock = EngineLock.acquire(paths.lock)
    assert lock is not None
    lock.release()


def test_the_socket_path_is_short_enough_in_a_long_runtime_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MIDSPAN_RUNTIME_DIR", str(tmp_path / ("long" * 40)))
    assert len(os.fsencode(runtime_paths_of("embedded").socket)) < 104


def test_every_path_to_a_model_leads_to_the_same_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = tmp_path / "model"
    model.mkdir()
    monkeypatch.chdir(tmp_path)
    assert runtime_paths_of("./model") == runtime_paths_of(str(model)) == runtime_paths_of(f"{model}/../model/")
    assert runtime_paths_of("./model") != runtime_paths_of("embedded")


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
