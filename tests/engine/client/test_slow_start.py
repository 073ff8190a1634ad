"""An engine that takes long to load is waited for as long as it lives, and one that is silent is not."""

import asyncio
import os
import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from engine_process import end
from lsp_editor import eventually

from engine.client import launcher as lifecycle
from engine.client.address import runtime_paths_of
from engine.client.launcher import EngineOptions, connect_or_start
from engine.client.lock import EngineLock, LockRecord, last_sign, read_record
from engine.errors import EngineUnavailable
from engine.fill.interface import Model
from engine.models.load import load
from engine.schedule.scheduler import Scheduler
from engine.server import heartbeat
from engine.server.heartbeat import Heartbeat

pytestmark = pytest.mark.slow

SILENCE_S = 4.0


@pytest.fixture
def slow(tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[EngineOptions]:
    """A model whose loading waits: its config.json is a pipe, and nothing comes out of it yet."""
    monkeypatch.setenv("MIDSPAN_RUNTIME_DIR", str(tmp_path / "runtime"))
    folder = tmp_path / "slow"
    shutil.copytree(tiny_model, folder)
    (folder / "config.json").unlink()
    os.mkfifo(folder / "config.json")
    options = EngineOptions(model=str(folder), threads=1)
    yield options
    end(runtime_paths_of(options.model))


class Config:
    """Writes into the pipe. The engine reads once this is open, and does not go on before it is closed."""

    def __init__(self, pipe: Path) -> None:
        self._pipe, self._descriptor = pipe, -1

    def is_awaited(self) -> bool:
        """Open the pipe, and tell whether the engine has done so too."""
        try:
            self._descriptor = os.open(self._pipe, os.O_WRONLY | os.O_NONBLOCK)
        except OSError:
            return False
        return True

    def give(self, body: bytes) -> None:
        os.write(self._descriptor, body)
        os.close(self._descriptor)


async def test_a_start_that_takes_longer_than_any_silence_may_is_waited_for(
    slow: EngineOptions, tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    states: list[str] = []
    starting = asyncio.create_task(connect_or_start(slow, "test", states.append))
    config = Config(Path(slow.model) / "config.json")
    await eventually(config.is_awaited)
    monkeypatch.setattr(lifecycle, "START_TIMEOUT_S", SILENCE_S)
    begun = time.monotonic()
    await eventually(lambda: time.monotonic() > begun + 2 * SILENCE_S)
    assert not starting.done()
    monkeypatch.setattr(lifecycle, "START_TIMEOUT_S", 60.0)
    config.give((tiny_model / "config.json").read_bytes())
    client = await starting
    await client.close()
    assert states[0] == "starting"
    assert states[-1] == "ready"


async def test_a_start_that_falls_silent_is_given_up_with_one_clear_line(
    slow: EngineOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    states: list[str] = []
    starting = asyncio.create_task(connect_or_start(slow, "test", states.append))
    await eventually(lambda: "Loading the model." in states)
    record = read_record(runtime_paths_of(slow.model).lock)
    assert record is not None
    os.kill(record.pid, signal.SIGSTOP)
    monkeypatch.setattr(lifecycle, "START_TIMEOUT_S", SILENCE_S)
    try:
        with pytest.raises(EngineUnavailable, match=f"for {SILENCE_S:.0f} s: it is still loading"):
            await starting
    finally:
        os.kill(record.pid, signal.SIGKILL)


async def test_a_heart_beats_through_the_lock_file_until_it_is_told_to_stop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(heartbeat, "BEAT_S", 0.01)
    monkeypatch.setattr(heartbeat, "TELL_S", 1.0)
    lock = EngineLock.acquire(tmp_path / "lock")
    assert lock is not None
    record = LockRecord(1, "model", "0")
    with Heartbeat(lock, record) as heart:
        heart.say("Reading")
        first = last_sign(tmp_path / "lock")
        await eventually(lambda: last_sign(tmp_path / "lock") > first)
        stages: list[str] = []

        def told() -> bool:
            found = read_record(tmp_path / "lock")
            stages.append(found.stage if found else "")
            return stages[-1] == "Reading: 1 s so far."

        await eventually(told)
        assert "Reading." in stages
        heart.stop()
        stopped = last_sign(tmp_path / "lock")
        lock.write(record)
        heart.stop()
    assert last_sign(tmp_path / "lock") >= stopped
    lock.release()
    assert last_sign(tmp_path / "lock") == 0


async def test_who_waits_is_told_of_the_warm_up(tiny_model: Path) -> None:
    stages: list[str] = []
    family: Model = load(str(tiny_model), threads=1, device="cpu")
    scheduler = Scheduler(family, on_stage=stages.append)
    await scheduler.start()
    await scheduler.stop()
    assert stages == ["Warming the model up, 1 of 1"]
