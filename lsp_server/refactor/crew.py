"""Two processes that run a function over the parts of a long list, side by side, for as long as the list lasts."""

import os
import pickle
import queue
import subprocess
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import suppress
from typing import Any, Generic, TypeVar

import attrs

from engine.errors import MidspanError
from lsp_server.refactor.frames import COMMAND, framed, read_frame

_PROCESSES = 2
_BEAT_SECONDS = 0.1
_NICENESS = 10
"""Typing goes first: these processes have what it leaves of the processor."""

_Part = TypeVar("_Part")
_Result = TypeVar("_Result")


class CrewFailed(MidspanError):
    """A process died, or the function raised. The message has no user's code in it."""

    code = "crew"


@attrs.frozen
class Done(Generic[_Result]):
    """The result of a part; `part` is its index."""

    part: int
    result: _Result


@attrs.frozen
class _Failure:
    reason: str


def lower_priority() -> None:
    """Let other processes go first."""
    with suppress(AttributeError, OSError):
        os.nice(_NICENESS)


def side_by_side(
    function: Callable[[_Part], _Result], parts: Sequence[_Part]
) -> Generator[Done[_Result] | None, None, None]:
    """Yield the result of each part as it is done, and None ten times a second meanwhile.

    The parts begin in their order. The function must be one of a module; it and its results must be fit for pickle. The
    processes end with the generator, whatever they do then. Raises CrewFailed.
    """
    waiting: queue.SimpleQueue[int] = queue.SimpleQueue()
    for index in range(len(parts)):
        waiting.put(index)
    results: queue.SimpleQueue[Done[_Result] | _Failure] = queue.SimpleQueue()
    # A fork of a process with threads can deadlock, so the processes are started from nothing.
    processes = [_started() for _ in range(min(_PROCESSES, len(parts)))]
    threads = [
        threading.Thread(target=_work, args=(process, function, parts, waiting, results), daemon=True)
        for process in processes
    ]
    try:
        for thread in threads:
            thread.start()
        left = len(parts)
        while left:
            try:
                done = results.get(timeout=_BEAT_SECONDS)
            except queue.Empty:
                yield None
                continue
            if isinstance(done, _Failure):
                raise CrewFailed(f"a search process failed with {done.reason}; run the action again")
            left -= 1
            yield done
    finally:
        with suppress(queue.Empty):
            while True:
                waiting.get_nowait()
        for process in processes:
            process.kill()
        for thread in threads:
            if thread.ident is not None:
                thread.join()
        for process in processes:
            process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    with suppress(OSError):
                        pipe.close()


def _started() -> "subprocess.Popen[bytes]":
    return subprocess.Popen(COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)


def _work(
    process: "subprocess.Popen[bytes]",
    function: Callable[[_Part], _Result],
    parts: Sequence[_Part],
    waiting: "queue.SimpleQueue[int]",
    results: "queue.SimpleQueue[Done[_Result] | _Failure]",
) -> None:
    """Have one process do part after part."""
    try:
        _call(process, lower_priority)
        while True:
            try:
                index = waiting.get_nowait()
            except queue.Empty:
                return
            results.put(Done(index, _call(process, function, parts[index])))
    except (OSError, EOFError, pickle.PickleError) as error:
        results.put(_Failure(type(error).__name__))
    except CrewFailed as error:
        results.put(_Failure(str(error)))


def _call(process: "subprocess.Popen[bytes]", function: Callable[..., Any], *arguments: object) -> Any:
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(framed((function, arguments)))
        process.stdin.flush()
    except BrokenPipeError:
        raise EOFError from None  # a process that died is one failure, whether it is written to or read from
    result, failure = read_frame(process.stdout)
    if failure:
        raise CrewFailed(failure)
    return result
