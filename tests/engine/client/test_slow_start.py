"""Clients wait for an engine that loads slowly while its heart beats, and give it up when the heartbeat stops."""

import asyncio
import os
import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from engine_process import end
from support.lsp_editor import eventually

from engine.client import launcher
from engine.client.address import runtime_paths_of
from engine.client.launcher import EngineOptions, connect_or_start
from engine.client.lock import EngineLock, Heartbeat, LockRecord, last_heartbeat, read_record
from engine.errors import EngineUnavailable
from engine.models.load import load
from engine.schedule.scheduler import Scheduler

TIMEOUT_S = 4.0


# In the engine's process: it waits before it reads config.json, and its other threads go on.
HOOK = """
import os, sys, time
def wait(event, arguments):
    if event == "open" and str(arguments[0]) == {config!r} and not os.path.exists({go!r}):
        os.makedirs({begun!r}, exist_ok=True)
        while not os.path.exists({go!r}):
            time.sleep(0.02)
sys.addaudithook(wait)
"""


@pytest.fixture
def slow(tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[EngineOptions]:
    """A model whose loading waits until the file `go` is there; `begun` is there once it waits."""
    monkeypatch.setenv("MIDSPAN_RUNTIME_DIR", str(tmp_path / "runtime"))
    folder = tmp_path / "slow"
    shutil.copytree(tiny_model, folder)
    names = {"config": folder / "config.json", "go": tmp_path / "go", "begun": tmp_path / "begun"}
    (tmp_path / "hook").mkdir()
    (tmp_path / "hook" / "sitecustomize.py").write_text(
        HOOK.format(**{name: str(path) for name, path in names.items()})
    )
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path / "hook"), os.environ.get("PYTHONPATH", "")]))
    options = EngineOptions(model=str(folder), threads=1)
    yield options
    end(runtime_paths_of(options.model))


@pytest.mark.slow
async def test_a_client_waits_for_a_slow_start_longer_than_the_heartbeat_timeout(
    slow: EngineOptions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    states: list[str] = []
    starting = asyncio.create_task(connect_or_start(slow, "test", states.append))
    await eventually((tmp_path / "begun").exists)
    monkeypatch.setattr(launcher, "HEARTBEAT_TIMEOUT_S", TIMEOUT_S)
    begin = time.monotonic()
    await eventually(lambda: time.monotonic() > begin + 2 * TIMEOUT_S)
    assert not starting.done()
    monkeypatch.setattr(launcher, "HEARTBEAT_TIMEOUT_S", 60.0)
    (tmp_path / "go").touch()
    client = await starting
    await client.close()
    assert states[0] == "starting"
    assert states[-1] == "ready"


@pytest.mark.slow
async def test_a_start_whose_heartbeat_stops_is_given_up_with_one_clear_line(
    slow: EngineOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    states: list[str] = []
    starting = asyncio.create_task(connect_or_start(slow, "test", states.append))
    await eventually(lambda: "Loading the model." in states)
    record = read_record(runtime_paths_of(slow.model).lock)
    assert record is not None
    os.kill(record.pid, signal.SIGSTOP)
    monkeypatch.setattr(launcher, "HEARTBEAT_TIMEOUT_S", TIMEOUT_S)
    try:
        with pytest.raises(EngineUnavailable, match=f"for {TIMEOUT_S:.0f} s: it is still loading"):
            await starting
    finally:
        os.kill(record.pid, signal.SIGKILL)


async def test_the_heartbeat_changes_the_lock_file_until_it_is_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.client.lock.BEAT_S", 0.01)
    monkeypatch.setattr("engine.client.lock.PROGRESS_S", 1.0)
    lock = EngineLock.acquire(tmp_path / "lock")
    assert lock is not None
    record = LockRecord(1, "model", "0")
    with Heartbeat(lock, record) as beating:
        beating.set_stage("Reading")
        first = last_heartbeat(tmp_path / "lock")
        await eventually(lambda: last_heartbeat(tmp_path / "lock") > first)
        stages: list[str] = []

        def progress_is_reported() -> bool:
            current = read_record(tmp_path / "lock")
            stages.append(current.stage if current else "")
            return stages[-1] == "Reading: 1 s so far."

        await eventually(progress_is_reported)
        assert "Reading." in stages
        beating.stop()
        stopped = last_heartbeat(tmp_path / "lock")
        lock.write(record)
        beating.stop()
    assert last_heartbeat(tmp_path / "lock") >= stopped
    lock.release()
    assert last_heartbeat(tmp_path / "lock") == 0


async def test_waiting_clients_learn_of_the_warm_up(tiny_model: Path) -> None:
    stages: list[str] = []
    model = load(str(tiny_model), threads=1, device="cpu")
    scheduler = Scheduler(model, on_stage=stages.append)
    await scheduler.start()
    await scheduler.stop()
    assert stages == ["Warming the model up, 1 of 1"]
