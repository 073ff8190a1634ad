"""Clients wait for an engine that loads slowly while its heart beats, and give it up when the heartbeat stops."""

import asyncio
import os
import re
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.engine_process import end
from support.gguf_files import tiny_network
from support.kernel_passes import skip_without
from support.lsp_editor import eventually
from support.masked_checkpoints import save_checkpoint

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


# In the engine's process: the stage that the lock file tells stays there once it has a percentage.
STAGE_HOOK = """
import os, sys, time
def wait(event, arguments):
    if event == "os.truncate" and b"%." in os.pread(arguments[0], 4096, 0):
        while not os.path.exists({go!r}):
            time.sleep(0.02)
sys.addaudithook(wait)
"""


def hook(code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run code at the start of each Python process that this test starts, and keep these in a folder of their own."""
    monkeypatch.setenv("MIDSPAN_RUNTIME_DIR", str(tmp_path / "runtime"))
    (tmp_path / "hook").mkdir()
    (tmp_path / "hook" / "sitecustomize.py").write_text(code)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path / "hook"), os.environ.get("PYTHONPATH", "")]))


@pytest.fixture
def slow(tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[EngineOptions]:
    """A model whose loading waits until the file `go` is there; `begun` is there once it waits."""
    folder = tmp_path / "slow"
    shutil.copytree(tiny_model, folder)
    names = {"config": folder / "config.json", "go": tmp_path / "go", "begun": tmp_path / "begun"}
    hook(HOOK.format(**{name: str(path) for name, path in names.items()}), tmp_path, monkeypatch)
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


SAVED: dict[str, Callable[[Path], object]] = {
    "tiny.gguf": lambda path: tiny_network("qwen2").save_gguf(path, "Q4_0"),
    "left-to-right": lambda path: tiny_network("llama").save_folder(path),
    "masked": lambda path: save_checkpoint("coda", path, hidden_size=64, intermediate_size=128),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SAVED)
async def test_a_waiting_client_learns_how_much_of_a_model_is_loaded(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    skip_without("plain")
    path = tmp_path / name
    SAVED[name](path)
    hook(STAGE_HOOK.format(go=str(tmp_path / "go")), tmp_path, monkeypatch)
    monkeypatch.setattr(launcher, "HEARTBEAT_TIMEOUT_S", 60.0)
    options, states = EngineOptions(model=str(path), threads=1), list[str]()
    try:
        starting = asyncio.create_task(connect_or_start(options, "test", states.append))
        await eventually(lambda: re.fullmatch(rf"Loading {re.escape(name)}, \d+%\.", states[-1] if states else ""))
        (tmp_path / "go").touch()
        client = await starting
        await client.close()
        assert states[-1] == "ready"
    finally:
        end(runtime_paths_of(options.model))


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
