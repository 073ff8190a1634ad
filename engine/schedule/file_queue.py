"""The files that wait to enter the memory of a workspace. The worker thread takes them between the steps of fills."""

import asyncio
import re
import threading
import time
from collections.abc import Callable, Sequence
from typing import Protocol

import attrs
import numpy as np
from numpy.typing import NDArray

from engine.protocol.memory_messages import Forget, Learn, MemoryStatus

Tokenize = Callable[[str], Sequence[int] | NDArray[np.int32]]


_PIECE = 8_000
"""Characters that are read at once: some milliseconds, in which no hole can begin. Without a space they take longer."""
_LINE_END = re.compile(r"(?<=\S)(?=\n)")
"""Where a text can be cut so that its tokens stay the same: before all white space that follows a word or a mark."""


def _end_of_piece(text: str, start: int) -> int:
    """Return where to end the piece of a text that begins at `start`."""
    if len(text) - start <= _PIECE:
        return len(text)
    return max((end.start() for end in _LINE_END.finditer(text, start + 1, start + _PIECE)), default=start + _PIECE)


class FileMemory(Protocol):
    """What the queue writes to: memory.workspace.EngineMemories. Used on the worker thread only."""

    def begin(self, workspace: str, path: str, tokens: NDArray[np.int32]) -> bool:
        """Take a file's tokens [n], in place of the ones that it had for this path. Return whether it took only the
        first of many, so that `go_on` is to take more."""
        ...

    def go_on(self) -> bool:
        """Take some more tokens of the file that was begun. Return whether there are still more."""
        ...

    def forget(self, workspace: str, paths: Sequence[str] | None) -> None:
        """Drop these files of a workspace, or all of them."""

    def paths(self, workspace: str) -> Sequence[str]:
        """Return the files that are known of a workspace."""
        ...

    def status(self, workspace: str) -> MemoryStatus:
        """Count what is known of a workspace; of all together for ""."""
        ...

    def settle(self) -> bool:
        """Work for a few milliseconds to make lookups faster. Return whether there is more to do."""
        ...


@attrs.define(eq=False)
class _Waiting:
    """A Learn or Forget that waits, with the futures of all requests that it answers. `since` is a perf_counter."""

    message: Learn | Forget
    futures: list[asyncio.Future[None]]
    since: float = attrs.field(factory=time.perf_counter)
    error: Exception | None = None
    tokens: list[NDArray[np.int32]] = attrs.field(factory=list)
    """The tokens of the first `done` characters of a Learn's text."""
    done: int = 0
    is_begun: bool = False
    """Whether the memory has the first tokens of a Learn."""

    def replace(self, newer: Learn) -> None:
        """Have a newer text read from its start."""
        self.message, self.error, self.done, self.is_begun = newer, None, 0, False
        self.tokens.clear()


class FileQueue:
    """Files wait in the order in which they came. A newer text of a file takes the place of the older one.

    `work`, `work_forgets`, `tighten` and `status` run on the worker thread, all other methods on the event loop. A
    Forget goes before all files that wait: those that came before it, and that it names, leave the queue with it.
    """

    def __init__(self, memory: FileMemory, tokenize: Tokenize) -> None:
        self.memory = memory
        self._tokenize = tokenize
        self._lock = threading.Lock()
        self._files: dict[tuple[str, str], _Waiting] = {}
        self._current: tuple[str, str] | None = None
        """The file that `work` has taken from the others; None once a Forget has named it."""
        self._forgets: list[_Waiting] = []
        self._done: list[_Waiting] = []
        self.is_loose = False
        """Whether the memory can be made faster."""

    @property
    def has_work(self) -> bool:
        return bool(self._files or self._forgets)

    @property
    def has_forgets(self) -> bool:
        return bool(self._forgets)

    @property
    def longest_wait_s(self) -> float:
        """How long the first file has waited, in seconds; 0.0 without one."""
        first = next(iter(self._files.values()), None)
        return time.perf_counter() - first.since if first is not None else 0.0

    def learn(self, message: Learn) -> asyncio.Future[None]:
        """Queue a file. The future ends once the memory has it, or once a Forget has taken it from the queue."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        key = message.workspace, message.path
        with self._lock:
            older = self._files.get(key)
            if older is None:
                self._files[key] = _Waiting(message, [future])
            else:
                older.replace(message)
                older.futures.append(future)
        return future

    def forget(self, message: Forget) -> asyncio.Future[None]:
        """Queue a Forget, and drop the waiting files that it names. The future ends once the memory has forgotten."""
        forget = _Waiting(message, [asyncio.get_running_loop().create_future()])
        with self._lock:
            if message.paths:
                keys = [(message.workspace, path) for path in message.paths]
            else:
                keep = set(message.keep)
                keys = [key for key in self._files if key[0] == message.workspace and key[1] not in keep]
            for dropped in [file for key in keys if (file := self._files.pop(key, None)) is not None]:
                forget.futures += dropped.futures
            if self._current is not None and _names(message, *self._current):
                self._current = None
            self._forgets.append(forget)
        return forget.futures[0]

    def work(self, budget_s: float, hurry: Callable[[], bool]) -> None:
        """Forget and learn for `budget_s` seconds, at least a step of a file. Stop after one if `hurry()`."""
        deadline = time.perf_counter() + budget_s
        self.work_forgets()
        while (file := self._next()) is not None:
            if self._has_learned(file):
                self._done.append(file)
            else:
                self._put_back(file)
            self.work_forgets()
            if hurry() or time.perf_counter() > deadline:
                return

    def work_forgets(self) -> None:
        """Do what waits to be forgotten."""
        with self._lock:
            forgets, self._forgets = self._forgets, []
        for forget in forgets:
            assert isinstance(forget.message, Forget)
            try:
                self.memory.forget(forget.message.workspace, self._named_by(forget.message))
            except Exception as error:  # one request must not keep the others out
                forget.error = error
            self._done.append(forget)

    def tighten(self) -> None:
        """Make the memory's lookups faster for a few milliseconds."""
        self.is_loose = self.memory.settle()

    def status(self, workspace: str) -> MemoryStatus:
        """Count what the memory of a workspace has, on the worker thread."""
        return self.memory.status(workspace)

    def settle(self) -> None:
        """End the futures of what is done. Call this after each `work`."""
        done, self._done = self._done, []
        for waiting in done:
            for future in waiting.futures:
                if future.done():
                    continue
                if waiting.error is None:
                    future.set_result(None)
                else:
                    future.set_exception(waiting.error)

    def close(self) -> None:
        """Cancel all that waits. Call this when the worker has ended."""
        self.settle()
        for waiting in [*self._files.values(), *self._forgets]:
            for future in waiting.futures:
                future.cancel()
        self._files.clear()
        self._forgets.clear()

    def _next(self) -> _Waiting | None:
        with self._lock:
            self._current = next(iter(self._files), None)
            return self._files.pop(self._current) if self._current is not None else None

    def _put_back(self, file: _Waiting) -> None:
        """Have a file that is not learned to its end come next, or the newer text of it that has come meanwhile. If it
        was forgotten meanwhile, it is done."""
        assert isinstance(file.message, Learn)
        key = file.message.workspace, file.message.path
        with self._lock:
            newer = self._files.pop(key, None)
            if newer is not None:
                newer.futures += file.futures
                file = newer
            elif self._current is None:
                self._done.append(file)
                return
            self._files = {key: file, **self._files}

    def _has_learned(self, file: _Waiting) -> bool:
        """Read a piece of a file, or learn some tokens of it. Return whether nothing is left of it."""
        assert isinstance(file.message, Learn)
        try:
            if file.is_begun:
                return not self.memory.go_on()
            if not self._read_piece(file, file.message):
                return False
            file.is_begun = self.is_loose = True
            tokens = file.tokens[0] if len(file.tokens) == 1 else np.concatenate(file.tokens)
            file.tokens.clear()
            return not self.memory.begin(file.message.workspace, file.message.path, tokens)
        except Exception as error:  # one file must not keep the others out
            file.error = error
            return True

    def _read_piece(self, file: _Waiting, message: Learn) -> bool:
        """Turn a piece of a file into tokens. Return whether that was the last one."""
        # Fills read newlines in this form too.
        text = message.text.replace("\r\n", "\n")
        end = _end_of_piece(text, file.done)
        file.tokens.append(np.asarray(self._tokenize(text[file.done : end]), dtype=np.int32))
        file.done = end
        return end == len(text)

    def _named_by(self, forget: Forget) -> Sequence[str] | None:
        """Return the files that a Forget names; None for all of its workspace."""
        if forget.paths or not forget.keep:
            return forget.paths or None
        keep = set(forget.keep)
        return [path for path in self.memory.paths(forget.workspace) if path not in keep]


def _names(forget: Forget, workspace: str, path: str) -> bool:
    """Return whether a Forget names this file."""
    return workspace == forget.workspace and (path in forget.paths if forget.paths else path not in forget.keep)
