"""The files that wait to enter the memory of a workspace. The worker thread takes them between the steps of fills."""

import asyncio
import threading
import time
from collections.abc import Callable, Sequence
from typing import Protocol

import attrs
import numpy as np
from numpy.typing import NDArray

from engine.protocol.memory_messages import Forget, Learn, MemoryStatus

Tokenize = Callable[[str], Sequence[int] | NDArray[np.int32]]


class MemorySize(Protocol):
    """How much is known of a workspace; `bytes` is the memory that it holds."""

    @property
    def files(self) -> int: ...
    @property
    def tokens(self) -> int: ...
    @property
    def bytes(self) -> int: ...


class FileMemory(Protocol):
    """What the queue writes to: memory.workspace.WorkspaceMemories. Used on the worker thread only."""

    def learn(self, workspace: str, path: str, tokens: NDArray[np.int32]) -> None:
        """Take a file's tokens [n], in place of the ones that it had for this path."""

    def forget(self, workspace: str, paths: Sequence[str] | None) -> None:
        """Drop these files of a workspace, or all of them."""

    def paths(self, workspace: str) -> Sequence[str]:
        """Return the files that are known of a workspace."""
        ...

    def status(self, workspace: str) -> MemorySize:
        """Count what is known of a workspace; of all together for ""."""
        ...

    def settle(self) -> bool:
        """Work for a few milliseconds to make lookups faster. Return whether there is more to do."""
        ...


class NoMemory:
    """A FileMemory that keeps nothing."""

    def learn(self, workspace: str, path: str, tokens: NDArray[np.int32]) -> None:
        pass

    def forget(self, workspace: str, paths: Sequence[str] | None) -> None:
        pass

    def paths(self, workspace: str) -> Sequence[str]:
        return []

    def status(self, workspace: str) -> MemorySize:
        return MemoryStatus(workspace, files=0, tokens=0, bytes=0)

    def settle(self) -> bool:
        return False


@attrs.define(eq=False)
class _Waiting:
    """A Learn or Forget that waits, with the futures of all requests that it answers. `since` is a perf_counter."""

    message: Learn | Forget
    futures: list[asyncio.Future[None]]
    since: float = attrs.field(factory=time.perf_counter)
    error: Exception | None = None


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
                older.message = message
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
            self._forgets.append(forget)
        return forget.futures[0]

    def work(self, budget_s: float, hurry: Callable[[], bool]) -> None:
        """Forget and learn for `budget_s` seconds, at least one file. Stop after a file when `hurry` returns True."""
        deadline = time.perf_counter() + budget_s
        self.work_forgets()
        while (file := self._next()) is not None:
            self._do(file)
            self.work_forgets()
            if hurry() or time.perf_counter() > deadline:
                return

    def work_forgets(self) -> None:
        """Do what waits to be forgotten."""
        with self._lock:
            forgets, self._forgets = self._forgets, []
        for forget in forgets:
            self._do(forget)

    def tighten(self) -> None:
        """Make the memory's lookups faster for a few milliseconds."""
        self.is_loose = self.memory.settle()

    def status(self, workspace: str) -> MemoryStatus:
        """Count what the memory of a workspace has, on the worker thread."""
        size = self.memory.status(workspace)
        return MemoryStatus(workspace, size.files, size.tokens, size.bytes)

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
            key = next(iter(self._files), None)
            return self._files.pop(key) if key is not None else None

    def _do(self, waiting: _Waiting) -> None:
        message = waiting.message
        try:
            if isinstance(message, Forget):
                self.memory.forget(message.workspace, self._named_by(message))
            else:
                # Fills read newlines in this form too.
                tokens = np.asarray(self._tokenize(message.text.replace("\r\n", "\n")), dtype=np.int32)
                self.memory.learn(message.workspace, message.path, tokens)
                self.is_loose = True
        except Exception as error:  # one file must not keep the others out
            waiting.error = error
        self._done.append(waiting)

    def _named_by(self, forget: Forget) -> Sequence[str] | None:
        """Return the files that a Forget names; None for all of its workspace."""
        if forget.paths or not forget.keep:
            return forget.paths or None
        keep = set(forget.keep)
        return [path for path in self.memory.paths(forget.workspace) if path not in keep]
