"""An engine that does not answer is ended too, and no other process is."""

import asyncio
import os
import signal
import sys
from pathlib import Path

import attrs
import pytest
from support.lsp_editor import eventually

from engine.client import launcher
from engine.client.address import RuntimePaths, all_runtime_paths, make_private
from engine.client.launcher import EngineOptions, connect_or_start, kill_holder, stop_all, stop_running
from engine.client.lock import EngineLock, LockRecord, is_held, read_record
from engine.errors import EngineUnavailable


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="no process is suspended there")
async def test_a_suspended_engine_is_killed(
    options: EngineOptions, paths: RuntimePaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launcher, "ANSWER_S", 0.3)
    client = await connect_or_start(options, "test")
    os.kill(client.welcome.pid, signal.SIGSTOP)
    assert await stop_running(options, "test")
    assert not is_held(paths.lock)
    await client.closed.wait()
    assert not await stop_running(options, "test")


@pytest.mark.slow
async def test_a_process_that_is_no_engine_is_not_killed(
    options: EngineOptions, paths: RuntimePaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launcher, "ANSWER_S", 0.3)
    make_private(paths.directory)
    pipe = asyncio.subprocess.PIPE
    other = await asyncio.create_subprocess_exec(sys.executable, "-c", "input()", stdin=pipe)
    lock = EngineLock.acquire(paths.lock)
    assert lock is not None
    try:
        lock.write(LockRecord(other.pid, "model", "0", socket=str(paths.socket)))
        if sys.platform == "linux":
            with pytest.raises(EngineUnavailable, match="no process of yours"):
                await kill_holder(paths)
        assert other.returncode is None
        lock.write(LockRecord(os.getpid(), "model", "0", socket=str(paths.socket)))
        with pytest.raises(EngineUnavailable, match="no process of yours"):
            await kill_holder(paths)
    finally:
        lock.release()
        await other.communicate(b"\n")
    assert other.returncode == 0


@pytest.mark.slow
async def test_all_engines_of_the_user_are_ended(options: EngineOptions, paths: RuntimePaths) -> None:
    other = attrs.evolve(options, precision="fp32")
    assert other.paths != paths
    clients = [await connect_or_start(each, "test") for each in (options, other)]

    assert await stop_all("test") == [options.model] * 2

    for client in clients:
        await client.closed.wait()
    assert not is_held(paths.lock)
    assert not is_held(other.paths.lock)
    assert await stop_all("test") == []


async def test_an_engine_that_still_loads_is_ended(options: EngineOptions, paths: RuntimePaths) -> None:
    starting = asyncio.create_task(connect_or_start(options, "test"))
    await eventually(lambda: is_held(paths.lock) and read_record(paths.lock) is not None)

    stopped = await stop_all("test")
    starting.cancel()

    assert stopped == [options.model]


def test_a_precision_that_the_embedded_model_does_not_have_is_the_same_engine() -> None:
    plain = EngineOptions(model="embedded").paths
    assert EngineOptions(model="embedded", precision="int8").paths == plain
    assert EngineOptions(model="embedded", precision="fp8").paths == plain
    assert EngineOptions(model="embedded", precision="fp32").paths != plain


async def test_a_precision_that_does_not_apply_starts_no_second_engine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MIDSPAN_RUNTIME_DIR", str(tmp_path))
    plain = EngineOptions(model="embedded", threads=1)
    clients = [await connect_or_start(attrs.evolve(plain, precision=each), "test") for each in ("auto", "int8", "fp8")]
    try:
        assert len({client.welcome.pid for client in clients}) == 1
        assert len(all_runtime_paths()) == 1
    finally:
        for client in clients:
            await client.close()
        assert await stop_all("test") == ["embedded"]
