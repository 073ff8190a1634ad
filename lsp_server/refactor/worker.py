"""Functions that run in other processes, so that typing never waits."""

import asyncio
import logging
import pickle
from collections.abc import AsyncGenerator, Callable, Sequence
from typing import Any, TypeVar, TypeVarTuple

import attrs

from engine.errors import MidspanError
from lsp_server.refactor.worker_process import COMMAND, LENGTH, framed

_logger = logging.getLogger(__name__)

_Arguments = TypeVarTuple("_Arguments")
_Result = TypeVar("_Result")
_Part = TypeVar("_Part")
_END_SECONDS = 2.0
_SIDE_BY_SIDE = 2
_MOST_SECONDS = 600.0
"""For a part of a list: the user can cancel it."""
NICENESS = 10
"""The niceness of processes that work while the user types."""


class WorkerFailed(MidspanError):
    """The worker process died or took too long, or the function raised."""

    code = "worker"


@attrs.define(eq=False)
class Worker:
    """Runs functions in one process, one after the other. The event loop never waits for it.

    The process is started by the first call, ends after `idle_seconds` without one, and is started again after it died.
    A call that takes more than `most_seconds` ends it. `niceness` is added to that of this process.
    """

    niceness: int = 0
    idle_seconds: float = 600.0
    most_seconds: float = 60.0
    _process: asyncio.subprocess.Process | None = None
    _lock: asyncio.Lock = attrs.field(factory=asyncio.Lock)
    _idle: asyncio.TimerHandle | None = None
    _exchanges: set[asyncio.Task[Any]] = attrs.field(factory=set)

    @property
    def pid(self) -> int | None:
        """The id of the process; None while there is none."""
        return self._process.pid if self._process is not None and self._process.returncode is None else None

    async def run(self, function: Callable[[*_Arguments], _Result], *args: *_Arguments) -> _Result:
        """Return `function(*args)` of the process. All of them, and the result, must be fit for pickle.

        A call that is cancelled while it waits for another one is never sent. One that runs goes on, and its result is
        dropped. Raises WorkerFailed.
        """
        await self._lock.acquire()
        exchange: asyncio.Task[_Result] = asyncio.create_task(self._exchange(function, args))
        self._exchanges.add(exchange)
        exchange.add_done_callback(self._done)
        return await asyncio.shield(exchange)

    async def close(self) -> None:
        """End the process, whatever it does. A later call starts it again."""
        for exchange in list(self._exchanges):
            exchange.cancel()
        await asyncio.gather(*self._exchanges, return_exceptions=True)
        await self._end()

    def _done(self, exchange: asyncio.Task[Any]) -> None:
        self._exchanges.discard(exchange)
        self._lock.release()
        if not exchange.cancelled():
            exchange.exception()  # nobody else asks for it if the call was cancelled

    async def _exchange(self, function: Callable[..., _Result], args: tuple[Any, ...]) -> _Result:
        self._keep()
        call = framed((function, args))
        try:
            process = await self._begin()
            assert process.stdin is not None
            assert process.stdout is not None
            async with asyncio.timeout(self.most_seconds):
                process.stdin.write(call)
                await process.stdin.drain()
                (length,) = LENGTH.unpack(await process.stdout.readexactly(LENGTH.size))
                reply = await process.stdout.readexactly(length)
            # The places of many files take longer to read than a key press may wait.
            result, failure = await asyncio.to_thread(pickle.loads, reply)
        except (OSError, EOFError, asyncio.CancelledError) as error:
            await self._end()  # also a reply without its call would be taken for the next one's
            if isinstance(error, asyncio.CancelledError):
                raise
            late = f" after {self.most_seconds:g} seconds" if isinstance(error, TimeoutError) else ""
            raise WorkerFailed(f"the process that did this ended{late}; try again") from None
        finally:
            self._keep()
        if failure:
            raise WorkerFailed(f"{function.__name__} failed in the worker process with {failure}; please report this")
        return result  # type: ignore[no-any-return]

    async def _begin(self) -> asyncio.subprocess.Process:
        if self._process is None or self._process.returncode is not None:
            pipe = asyncio.subprocess.PIPE
            command = (*COMMAND, str(self.niceness)) if self.niceness else COMMAND
            self._process = await asyncio.create_subprocess_exec(
                *command, stdin=pipe, stdout=pipe, start_new_session=True
            )
        return self._process

    def _keep(self) -> None:
        """Put the end of the process off."""
        if self._idle is not None:
            self._idle.cancel()
        loop = asyncio.get_running_loop()
        self._idle = loop.call_later(self.idle_seconds, lambda: self._exchanges or loop.create_task(self._end()))

    async def _end(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None
        process, self._process = self._process, None
        if process is None or process.returncode is not None:
            return
        process.kill()
        try:
            async with asyncio.timeout(_END_SECONDS):
                await process.wait()
        except TimeoutError:
            _logger.warning("the worker process does not end")


async def side_by_side(
    function: Callable[[_Part], _Result], parts: Sequence[_Part]
) -> AsyncGenerator[tuple[int, _Result], None]:
    """Yield the index and the result of each part as it is done, by two processes that give way to others.

    The parts begin in their order. The processes end with the generator, whatever they do then. Raises WorkerFailed.
    """
    workers = [Worker(NICENESS, most_seconds=_MOST_SECONDS) for _ in range(min(_SIDE_BY_SIDE, len(parts)))]
    left = iter(enumerate(parts))
    running: dict[asyncio.Task[_Result], tuple[Worker, int]] = {}

    def begin(worker: Worker) -> None:
        for index, part in left:
            running[asyncio.create_task(worker.run(function, part))] = worker, index
            return

    try:
        for worker in workers:
            begin(worker)
        while running:
            done, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                worker, index = running.pop(task)
                result = task.result()
                begin(worker)
                yield index, result
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        await asyncio.gather(*(worker.close() for worker in workers))
