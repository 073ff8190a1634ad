"""Fills holes by asking a server: engine.service.Backend without a network, a worker thread, or torch."""

import asyncio
import logging
import statistics
from collections import deque
from collections.abc import Callable

from engine.errors import RemoteError
from engine.protocol.messages import Fill, Filled, Progress, SchedulerReport, Timings
from engine.remote.completions import Completions, Mercury
from engine.remote.connection import Connection
from engine.remote.dialect import Dialect, Written
from engine.remote.endpoint import DialectName, Endpoint
from engine.remote.key import find_key
from engine.remote.llamacpp import LlamaCpp
from engine.remote.vllm import Vllm
from engine.remote.writing import candidate_of
from engine.schedule.backend import CancelledFill, Ticket

MAX_AT_ONCE = 8
"""Fills that are with the server at the same time; the others wait, and their time runs."""
_DIALECTS: dict[DialectName, Callable[[Endpoint, Connection], Dialect]] = {
    "openai": Completions,
    "mercury": Mercury,
    "llamacpp": LlamaCpp,
    "vllm": Vllm,
}
_log = logging.getLogger(__name__)


class RemoteBackend:
    """One task a fill. Construct it inside the event loop; nothing is sent before the first fill."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._places = asyncio.Semaphore(MAX_AT_ONCE)
        self._tasks: dict[Ticket, asyncio.Task[Filled]] = {}
        self._connection: Connection | None = None
        self._dialect: Dialect | None = None
        self._latencies: deque[float] = deque(maxlen=200)
        self._with_server = self._fills = self._cancelled = 0

    async def start(self) -> None:
        """Look for the server's key. Raises ModelError when what is there can be no key."""
        # A keyring may ask the user, who may not be there: signals must still get through to the event loop.
        key = await asyncio.to_thread(find_key, self._endpoint)
        if key is not None and not self._endpoint.private:
            _log.warning("the key for %s is not sent: plain http is no secret; use https", self._endpoint.server)
        self._connection = Connection(self._endpoint, key)
        self._dialect = _DIALECTS[self._endpoint.dialect](self._endpoint, self._connection)

    async def stop(self) -> None:
        """Cancel all fills and close all connections."""
        tasks = list(self._tasks.values())
        for ticket in list(self._tasks):
            self.cancel(ticket)
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._connection is not None:
            await self._connection.close()

    def submit(self, fill: Fill, on_progress: Callable[[Progress], None] | None) -> Ticket:
        """Send a fill to the server, or let it wait for its turn. What it wrote comes as one step of progress."""
        loop = asyncio.get_running_loop()
        ticket = Ticket(fill, loop.create_future(), on_progress, loop.time())
        task = asyncio.create_task(self._fill(ticket))
        self._tasks[ticket] = task
        task.add_done_callback(lambda done: self._settle(ticket, done))
        return ticket

    def cancel(self, ticket: Ticket) -> None:
        """Drop a fill; a connection that waits for its answer is closed at once."""
        ticket.cancelled = True
        task = self._tasks.get(ticket)
        if task is not None:
            task.cancel()

    def report(self) -> SchedulerReport:
        return SchedulerReport(
            active=self._with_server,
            waiting=len(self._tasks) - self._with_server,
            fills=self._fills,
            cancelled=self._cancelled,
            passes=self._connection.requests if self._connection is not None else 0,
            median_ms=round(statistics.median(self._latencies), 2) if self._latencies else 0.0,
            cache_hit_rate=0.0,
            cache_bytes=0,
            threads=0,
            step_ms={},
        )

    async def _fill(self, ticket: Ticket) -> Filled:
        fill, loop = ticket.fill, asyncio.get_running_loop()
        deadline = ticket.submitted + fill.budget_ms / 1000
        assert self._dialect is not None
        try:
            async with asyncio.timeout_at(deadline), self._places:
                asked = loop.time()
                self._with_server += 1
                try:
                    written = await self._dialect.write(fill, deadline)
                finally:
                    self._with_server -= 1
        except TimeoutError:
            server = self._endpoint.server
            raise RemoteError(
                f"{server} did not answer within {fill.budget_ms:g} ms; give it more with the setting budgetMs"
            ) from None
        return _filled(ticket, written, asked, loop.time())

    def _settle(self, ticket: Ticket, task: asyncio.Task[Filled]) -> None:
        del self._tasks[ticket]
        error = None if task.cancelled() else task.exception()
        if ticket.result.done():
            return
        if ticket.cancelled or task.cancelled():
            self._cancelled += 1
            ticket.result.set_exception(CancelledFill("the fill was cancelled"))
        elif error is not None:
            if isinstance(error, RemoteError):
                _log.warning("%s", error)
            ticket.result.set_exception(error)
        else:
            filled = task.result()
            self._fills += 1
            self._latencies.append(filled.ms.total)
            if ticket.on_progress is not None:
                ticket.on_progress(Progress(filled.id, 1, list(filled.candidates[0].tokens)))
            ticket.result.set_result(filled)


def _filled(ticket: Ticket, written: Written, asked: float, answered: float) -> Filled:
    """Return the answer; different candidates with equal text are given once. Times are of the event loop's clock."""
    fill = ticket.fill
    candidates = [candidate_of(writing, fill) for writing in written.writings[: fill.candidates]]
    return Filled(
        id=fill.id,
        candidates=list({candidate.text: candidate for candidate in reversed(candidates)}.values())[::-1],
        steps=0,
        rule=fill.rule,
        context_tokens=written.context_tokens,
        cached_tokens=written.cached_tokens,
        ms=Timings(
            queue=round((asked - ticket.submitted) * 1000, 3),
            encode=0.0,
            denoise=round((answered - asked) * 1000, 3),
            total=round((answered - ticket.submitted) * 1000, 3),
        ),
    )
