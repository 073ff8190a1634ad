"""The files that a scheduler learns between the steps of fills, with a memory that records them."""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import attrs
import numpy as np
import pytest
import pytest_asyncio
from support.recording_memory import RecordingMemory, characters

from engine.fill.interface import Model
from engine.memory.workspace import STEP_TOKENS, WorkspaceMemories
from engine.models.load import load
from engine.protocol.memory_messages import Forget, Learn, MemoryStatus
from engine.protocol.messages import Fill, Progress
from engine.schedule import scheduler as scheduler_module
from engine.schedule.file_queue import FileQueue
from engine.schedule.scheduler import Scheduler

HOLE = Fill(1, "total = ", "\n", extent="lines", rule="left-to-right", max_tokens=40, budget_ms=60_000.0)
SLOW_FILE_S = 0.1


@pytest.fixture(scope="module")
def model(tiny_model: Path) -> Model:
    return load(str(tiny_model), threads=1, device="cpu")


@pytest.fixture
def memory() -> RecordingMemory:
    return RecordingMemory()


@pytest_asyncio.fixture
async def scheduler(model: Model, memory: RecordingMemory) -> AsyncIterator[Scheduler]:
    running = Scheduler(model, files=FileQueue(memory, characters))
    await running.start()
    yield running
    await running.stop()


async def test_a_learned_file_is_in_the_memory_of_its_workspace_only(
    scheduler: Scheduler, memory: RecordingMemory
) -> None:
    await scheduler.learn(Learn("/a", "x.py", "one\r\ntwo\r\n"))
    assert memory.texts == {"/a": {"x.py": "one\ntwo\n"}}
    assert await scheduler.memory_status("/a") == MemoryStatus("/a", files=1, tokens=8, bytes=32)
    assert (await scheduler.memory_status("/b")).files == 0
    assert memory.threads == {"model_0"}


async def test_a_newer_text_of_a_waiting_file_takes_the_place_of_the_older(
    scheduler: Scheduler, memory: RecordingMemory
) -> None:
    await asyncio.gather(*(scheduler.learn(Learn("/a", "x.py", f"version {number}")) for number in range(5)))
    assert memory.texts == {"/a": {"x.py": "version 4"}}
    assert len(memory.learned) == 1


async def test_a_forgotten_file_never_enters_though_it_was_waiting(
    scheduler: Scheduler, memory: RecordingMemory
) -> None:
    waiting = [scheduler.learn(Learn("/a", name, "text")) for name in ("x.py", "y.py")]
    elsewhere = scheduler.learn(Learn("/b", "x.py", "text"))
    await asyncio.gather(scheduler.forget(Forget("/a", ["x.py"])), *waiting, elsewhere)
    assert memory.texts == {"/a": {"y.py": "text"}, "/b": {"x.py": "text"}}
    assert ("/a", "x.py") not in memory.learned


async def test_a_workspace_is_forgotten_whole_and_can_be_learned_again(
    scheduler: Scheduler, memory: RecordingMemory
) -> None:
    await scheduler.learn(Learn("/a", "x.py", "old"))
    await scheduler.learn(Learn("/b", "x.py", "kept"))
    await asyncio.gather(scheduler.forget(Forget("/a")), scheduler.learn(Learn("/a", "y.py", "new")))
    assert memory.texts == {"/a": {"y.py": "new"}, "/b": {"x.py": "kept"}}


async def test_all_but_some_files_of_a_workspace_are_forgotten(scheduler: Scheduler, memory: RecordingMemory) -> None:
    for name in ("gone.py", "x.py"):
        await scheduler.learn(Learn("/a", name, "old"))
    await scheduler.learn(Learn("/b", "gone.py", "old"))
    waiting = [scheduler.learn(Learn("/a", name, "new")) for name in ("gone.py", "y.py")]
    await asyncio.gather(scheduler.forget(Forget("/a", keep=["x.py", "y.py"])), *waiting)
    assert memory.texts == {"/a": {"x.py": "old", "y.py": "new"}, "/b": {"gone.py": "old"}}


async def test_an_idle_scheduler_settles_what_it_learned_and_then_rests(
    scheduler: Scheduler, memory: RecordingMemory
) -> None:
    memory.to_settle = 3
    await scheduler.learn(Learn("/a", "x.py", "text"))
    deadline = time.monotonic() + 60
    while memory.to_settle:
        assert time.monotonic() < deadline, "nothing was settled"
        await asyncio.sleep(0.01)
    assert memory.threads == {"model_0"}
    await scheduler.submit(HOLE, None).result


async def test_a_file_that_cannot_be_learned_harms_no_other(model: Model, memory: RecordingMemory) -> None:
    def refuse_bad_text(text: str) -> list[int]:
        if text == "bad":
            raise ValueError("a tokenizer's error")
        return characters(text)

    scheduler = Scheduler(model, files=FileQueue(memory, refuse_bad_text))
    await scheduler.start()
    bad, good = scheduler.learn(Learn("/a", "bad.py", "bad")), scheduler.learn(Learn("/a", "good.py", "good"))
    with pytest.raises(ValueError, match="a tokenizer's error"):
        await bad
    await good
    assert memory.texts == {"/a": {"good.py": "good"}}
    await scheduler.stop()


class SlowMemory(RecordingMemory):
    """Takes SLOW_FILE_S for each file."""

    def begin(self, workspace: str, path: str, tokens: object) -> bool:
        time.sleep(SLOW_FILE_S)
        self.learned.append((workspace, path))
        return False


async def test_a_hole_waits_for_one_file_at_most(model: Model) -> None:
    memory = SlowMemory()
    scheduler = Scheduler(model, files=FileQueue(memory, characters))
    await scheduler.start()
    files = [scheduler.learn(Learn("/a", f"{number}.py", "text")) for number in range(8)]
    await asyncio.sleep(0)

    learned_at_each_step: list[int] = []

    def count(progress: Progress) -> None:
        learned_at_each_step.append(len(memory.learned))

    await scheduler.submit(HOLE, count).result

    assert learned_at_each_step[-1] <= 1
    await asyncio.gather(*files)
    assert len(memory.learned) == 8
    await scheduler.stop()


async def test_a_file_does_not_wait_for_ever_while_there_are_always_holes(
    model: Model, memory: RecordingMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scheduler_module, "FILE_PATIENCE_S", 0.0)
    scheduler = Scheduler(model, files=FileQueue(memory, characters))
    await scheduler.start()
    fill = scheduler.submit(attrs.evolve(HOLE, max_tokens=2000), None)
    await asyncio.sleep(0)
    files = [scheduler.learn(Learn("/a", f"{number}.py", "text")) for number in range(3)]
    await files[0]
    assert not fill.result.done(), "the file waited for the end of the hole"
    assert len(memory.learned) == 1, "the hole was delayed by more than one file"
    scheduler.cancel(fill)
    await asyncio.gather(*files)
    await scheduler.stop()


async def test_a_stopped_scheduler_leaves_no_file_waiting(model: Model, memory: RecordingMemory) -> None:
    scheduler = Scheduler(model, files=FileQueue(memory, characters))
    await scheduler.start()
    waiting = scheduler.learn(Learn("/a", "x.py", "text"))
    await scheduler.stop()
    assert waiting.done()


async def test_a_scheduler_without_a_memory_drops_files(model: Model) -> None:
    scheduler = Scheduler(model)
    await scheduler.start()
    await scheduler.learn(Learn("/a", "x.py", "text"))
    assert await scheduler.memory_status("/a") == MemoryStatus("/a", 0, 0, 0)
    await scheduler.stop()


async def test_a_hole_waits_for_a_piece_of_a_file_only_and_the_pieces_are_the_whole(memory: RecordingMemory) -> None:
    text = "".join(f"def f{number}(a):\r\n    return '文é'\r\n\r\n" for number in range(2000)) + "文" * 30_000
    pieces: list[str] = []

    def tokenize(piece: str) -> Sequence[int]:
        pieces.append(piece)
        return characters(piece)

    queue = FileQueue(memory, tokenize)
    learned = queue.learn(Learn("/a", "x.py", text))
    while queue.has_work:
        before = len(pieces)
        queue.work(0.0, lambda: True)
        assert len(pieces) == before + 1
        queue.settle()
    await learned
    assert max(map(len, pieces)) <= 8_000
    assert memory.texts == {"/a": {"x.py": text.replace("\r\n", "\n")}}


async def test_a_newer_text_takes_the_place_of_one_that_is_half_read(memory: RecordingMemory) -> None:
    queue = FileQueue(memory, characters)
    older = queue.learn(Learn("/a", "x.py", "a b\n" * 10_000))
    queue.work(0.0, lambda: True)
    newer = queue.learn(Learn("/a", "x.py", "new"))
    while queue.has_work:
        queue.work(0.0, lambda: True)
    queue.settle()
    await asyncio.gather(older, newer)
    assert memory.texts == {"/a": {"x.py": "new"}}


async def test_a_file_that_is_forgotten_while_a_piece_of_it_is_read_never_enters(memory: RecordingMemory) -> None:
    forgotten: list[asyncio.Future[None]] = []

    def forget_and_tokenize(piece: str) -> Sequence[int]:
        if not forgotten:
            forgotten.append(queue.forget(Forget("/a", ["x.py"])))
        return characters(piece)

    queue = FileQueue(memory, forget_and_tokenize)
    learned = queue.learn(Learn("/a", "x.py", "a b\n" * 10_000))
    while queue.has_work:
        queue.work(0.0, lambda: True)
    queue.settle()
    await asyncio.gather(learned, *forgotten)
    assert memory.learned == []


async def test_many_tokens_enter_the_memory_in_steps_and_a_newer_text_ends_them() -> None:
    memories, entered = WorkspaceMemories(64 << 20), []
    queue = FileQueue(memories, characters)
    older = queue.learn(Learn("/a", "x.py", "".join(f"{number}\n" for number in range(9_000))))
    while memories.status("/a").tokens < 2 * STEP_TOKENS:
        entered.append(memories.status("/a").tokens)
        queue.work(0.0, lambda: True)
    assert entered == sorted(entered)
    assert max(np.diff([*entered, memories.status("/a").tokens])) <= STEP_TOKENS
    newer = queue.learn(Learn("/a", "x.py", "new"))
    other = queue.learn(Learn("/a", "y.py", "other"))
    while queue.has_work:
        queue.work(0.0, lambda: True)
    queue.settle()
    await asyncio.gather(older, newer, other)
    assert memories.status("/a").tokens == len("newother")


async def test_a_file_that_is_forgotten_half_learned_is_gone() -> None:
    memories = WorkspaceMemories(64 << 20)
    queue = FileQueue(memories, characters)
    learned = queue.learn(Learn("/a", "x.py", "x" * 7_000))
    queue.work(0.0, lambda: True)
    assert memories.status("/a").tokens == STEP_TOKENS
    forgotten = queue.forget(Forget("/a"))
    while queue.has_work:
        queue.work(0.0, lambda: True)
    queue.settle()
    await asyncio.gather(learned, forgotten)
    assert memories.status("/a") == MemoryStatus("/a", 0, 0, 0)
    assert not memories.go_on()
