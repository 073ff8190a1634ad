"""Worker processes: one runs call after call, started when it is needed; two share the parts of a list."""

import asyncio
import os
import signal
import subprocess
import sys
import time
import timeit
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import psutil
import pytest
from support.lsp_editor import eventually
from support.processes import children, lives, niceness_of

from lsp_server.refactor.worker import NICENESS, Worker, WorkerFailed, side_by_side
from lsp_server.refactor.worker_process import COMMAND, framed


@pytest.fixture
async def worker() -> AsyncIterator[Worker]:
    made = Worker()
    yield made
    await made.close()


async def test_calls_run_in_one_other_process(worker: Worker) -> None:
    pids = await asyncio.gather(*[worker.run(os.getpid) for _ in range(3)])
    assert set(pids) == {worker.pid}
    assert worker.pid != os.getpid()


async def test_a_process_of_low_priority_gives_way_to_other_sessions_too() -> None:
    worker = Worker(NICENESS)
    assert niceness_of(await worker.run(os.getpid)) == {os.nice(0) + NICENESS}
    await worker.close()


async def test_a_process_that_dies_fails_its_call_and_the_next_one_starts_another(worker: Worker) -> None:
    call = asyncio.create_task(worker.run(time.sleep, 60))
    await eventually(lambda: worker.pid)
    first = worker.pid
    psutil.Process(first).kill()
    with pytest.raises(WorkerFailed, match="ended"):
        await call
    assert await worker.run(os.getpid) != first


async def test_a_call_to_a_process_that_died_meanwhile_fails_too(worker: Worker) -> None:
    process = psutil.Process(await worker.run(os.getpid))
    process.kill()
    # It blocks the event loop, which must not learn of this before the call is written.
    psutil.wait_procs([process], timeout=10)
    with pytest.raises(WorkerFailed, match="the process that did this ended; try again"):
        await worker.run(os.getpid)
    assert await worker.run(os.getpid) != process.pid


async def test_a_function_that_fails_is_told_without_its_message(worker: Worker) -> None:
    with pytest.raises(WorkerFailed, match="listdir failed in the worker process with FileNotFoundError"):
        await worker.run(os.listdir, "/no/such/folder")
    assert await worker.run(os.getpid) == worker.pid


async def test_a_call_that_was_cancelled_does_not_answer_the_next_one(worker: Worker) -> None:
    slow = asyncio.create_task(worker.run(time.sleep, 0.3))
    await eventually(lambda: worker.pid)
    waiting = asyncio.create_task(worker.run(os.getpid))
    slow.cancel()
    assert await waiting == worker.pid


async def test_a_call_that_takes_too_long_ends_the_process() -> None:
    worker = Worker(most_seconds=0.3)
    with pytest.raises(WorkerFailed, match=r"ended after 0\.3 seconds"):
        await worker.run(time.sleep, 60)
    assert worker.pid is None


async def test_it_ends_when_nobody_calls_and_when_it_is_closed() -> None:
    worker = Worker(idle_seconds=0.1)
    process = psutil.Process(await worker.run(os.getpid))
    await eventually(lambda: not process.is_running())
    process = psutil.Process(await worker.run(os.getpid))
    await worker.close()
    assert not process.is_running()


async def test_it_ends_with_its_parent(worker: Worker) -> None:
    process = psutil.Process(await worker.run(os.getpid))
    assert worker._process is not None
    worker._process.stdin.close()  # type: ignore[union-attr]
    await eventually(lambda: not lives(process))


def test_a_process_that_spins_ends_with_its_parent() -> None:
    process = subprocess.Popen(COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin is not None
    process.stdin.write(framed((timeit.timeit, ("pass", "pass", time.perf_counter, 10**12))))
    process.stdin.flush()
    running = psutil.Process(process.pid)
    while running.cpu_times().user < 0.5:
        assert process.poll() is None
    process.stdin.close()
    assert process.wait(30) == 0


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such limit")
def test_a_process_that_never_comes_back_to_python_ends_by_its_processor_time() -> None:
    code = "from lsp_server.refactor.worker_process import _limit_processor_time as limit; limit(1)"
    spin = "import collections, itertools; collections.deque(itertools.count(), 0)"
    process = subprocess.Popen([sys.executable, "-c", f"{code}; {spin}"])
    assert process.wait(60) == -signal.SIGXCPU


async def _results(function: Callable[[Any], Any], parts: Sequence[object]) -> dict[int, object]:
    return {index: result async for index, result in side_by_side(function, parts)}


async def test_each_part_of_a_list_has_its_result() -> None:
    assert await _results(abs, [-1, 2, -3]) == {0: 1, 1: 2, 2: 3}


@pytest.mark.parametrize(
    ("function", "parts", "problem"),
    [
        (os._exit, [1], "the process that did this ended; try again"),
        (os.listdir, ["/no/such/folder"], "listdir failed in the worker process with FileNotFoundError"),
    ],
)
async def test_a_part_that_fails_ends_the_list_with_one_line(
    function: Callable[[Any], Any], parts: Sequence[object], problem: str
) -> None:
    with pytest.raises(WorkerFailed, match=problem):
        await _results(function, parts)
    await eventually(lambda: not children(os.getpid(), lambda child: child.nice() > 0))
