"""The backend that asks a server: it needs no network of its own, no worker thread and no torch."""

import asyncio
import logging
import statistics
from collections import deque
from collections.abc import Callable, Sequence
from typing import TypeVar

from engine.errors import RemoteError
from engine.protocol.memory_messages import Forget, Learn, MemoryStatus
from engine.protocol.messages import Candidate, Fill, Filled, HoleRequest, Progress, Read, SchedulerReport, Timings
from engine.remote.completions import Completions, Mercury
from engine.remote.connection import Connection
from engine.remote.endpoint import DialectName, Endpoint, find_key
from engine.remote.llamacpp import LlamaCpp
from engine.remote.request import (
    Dialect,
    ServerAnswer,
    candidate_of,
)
from engine.remote.vllm import Vllm
from engine.schedule.backend import Ticket, settle_cancelled

MAX_ACTIVE = 8
"""Fills that the server works on at the same time. The others wait, and their budget runs meanwhile."""
_DIALECTS: dict[DialectName, Callable[[Endpoint, Connection], Dialect]] = {
    "openai": Completions,
    "mercury": Mercury,
    "llamacpp": LlamaCpp,
    "vllm": Vllm,
}
_Result = TypeVar("_Result")
_log = logging.getLogger(__name__)


class RemoteBackend:
    """Runs one task for each fill. Construct it inside the event loop. It sends nothing before the first fill."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._slots = asyncio.Semaphore(MAX_ACTIVE)
        self._tasks: dict[Ticket, asyncio.Task[Filled]] = {}
        self._connection: Connection | None = None
        self._dialect: Dialect | None = None
        self._latencies: deque[float] = deque(maxlen=200)
        self._active = self._fills = self._cancelled = 0

    async def start(self) -> None:
        """Look for the server's key. Raises ModelError when the key contains characters that no key has."""
        # A keyring may wait for the user. In a thread, so that the event loop still receives signals.
        key = await asyncio.to_thread(find_key, self._endpoint)
        if key is not None and not self._endpoint.private:
            _log.warning("the key for %s is not sent: anybody can read plain http; use https", self._endpoint.server)
        self._connection = Connection(self._endpoint, key)
        if (dialect := _DIALECTS.get(self._endpoint.dialect)) is not None:
            self._dialect = dialect(self._endpoint, self._connection)

    async def stop(self) -> None:
        """Cancel all fills and close all connections."""
        tasks = list(self._tasks.values())
        for ticket in list(self._tasks):
            self.cancel(ticket)
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._connection is not None:
            await self._connection.close()

    def submit(self, request: HoleRequest, on_progress: Callable[[Progress], None] | None, owner: int = 0) -> Ticket:
        """Send a request to the server once a slot is free. The whole text is reported as one step of progress."""
        loop = asyncio.get_running_loop()
        ticket = Ticket(request, loop.create_future(), on_progress, loop.time(), owner)
        task = asyncio.create_task(self._fill(ticket))
        self._tasks[ticket] = task
        task.add_done_callback(lambda done: self._settle(ticket, done))
        return ticket

    def cancel(self, ticket: Ticket) -> None:
        """Drop a fill and close the connection that waits for its answer."""
        ticket.cancelled = True
        task = self._tasks.get(ticket)
        if task is not None:
            task.cancel()

    def report(self) -> SchedulerReport:
        return SchedulerReport(
            active=self._active,
            waiting=len(self._tasks) - self._active,
            fills=self._fills,
            cancelled=self._cancelled,
            passes=self._connection.requests if self._connection is not None else 0,
            median_ms=round(statistics.median(self._latencies), 2) if self._latencies else 0.0,
            cache_hit_rate=0.0,
            cache_bytes=0,
            threads=0,
            step_ms={},
        )

    def learn(self, learn: Learn) -> asyncio.Future[None]:
        """Drop the file: a server has no memory of workspaces, and nothing of them is sent to it."""
        return _done(None)

    def forget(self, forget: Forget) -> asyncio.Future[None]:
        """There is nothing to forget."""
        return _done(None)

    def memory_status(self, workspace: str) -> asyncio.Future[MemoryStatus]:
        """Return that nothing is known."""
        return _done(MemoryStatus(workspace, files=0, tokens=0, bytes=0))

    async def _fill(self, ticket: Ticket) -> Filled:
        request, loop = ticket.request, asyncio.get_running_loop()
        deadline = ticket.submitted + request.budget_ms / 1000
        try:
            async with asyncio.timeout_at(deadline), self._slots:
                sent = loop.time()
                self._active += 1
                try:
                    return await self._ask(ticket, deadline, sent)
                finally:
                    self._active -= 1
        except TimeoutError:
            server = self._endpoint.server
            raise RemoteError(
                f"{server} did not answer within {request.budget_ms:g} ms; give it more with the setting budgetMs"
            ) from None

    async def _ask(self, ticket: Ticket, deadline: float, sent: float) -> Filled:
        """Ask the server once there is a slot. Times are those of the event loop's clock. Raises RemoteError."""
        assert self._dialect is not None
        if isinstance(ticket.request, Read):
            return _filled(ticket, [], ServerAnswer([]), sent, sent)
        if not isinstance(ticket.request, Fill):
            raise RemoteError(f"{self._endpoint.server} cannot say how likely a text is; the embedded model can")
        fill = ticket.request
        answer = await self._dialect.ask(fill, deadline)
        candidates = [candidate_of(text, fill) for text in answer.texts[: fill.candidates]]
        return _filled(ticket, candidates, answer, sent, asyncio.get_running_loop().time())

    def _settle(self, ticket: Ticket, task: asyncio.Task[Filled]) -> None:
        del self._tasks[ticket]
        error = None if task.cancelled() else task.exception()
        if ticket.result.done():
            return
        if ticket.cancelled or task.cancelled():
            self._cancelled += 1
            settle_cancelled(ticket)
        elif error is not None:
            if isinstance(error, RemoteError):
                _log.warning("%s", error)
            ticket.result.set_exception(error)
        else:
            filled = task.result()
            if not isinstance(ticket.request, Read):
                self._fills += 1
                self._latencies.append(filled.ms.total)
            if ticket.on_progress is not None:
                ticket.on_progress(Progress(filled.id, 1, list(filled.candidates[0].tokens)))
            ticket.result.set_result(filled)


def _done(result: _Result) -> asyncio.Future[_Result]:
    future: asyncio.Future[_Result] = asyncio.get_running_loop().create_future()
    future.set_result(result)
    return future


def _filled(
    ticket: Ticket, candidates: Sequence[Candidate], answer: ServerAnswer, sent: float, answered: float
) -> Filled:
    """Return the answer to the client. Candidates with the same text are given once.

    `sent` and `answered` are times of the event loop's clock.
    """
    return Filled(
        id=ticket.request.id,
        candidates=list({candidate.text: candidate for candidate in reversed(candidates)}.values())[::-1],
        steps=0,
        rule=ticket.request.rule if isinstance(ticket.request, Fill) else "default",
        context_tokens=answer.context_tokens,
        cached_tokens=answer.cached_tokens,
        ms=Timings(
            queue=round((sent - ticket.submitted) * 1000, 3),
            encode=0.0,
            denoise=round((answered - sent) * 1000, 3),
            total=round((answered - ticket.submitted) * 1000, 3),
        ),
    )
