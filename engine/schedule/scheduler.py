"""Which holes take the next step together: batching by step, deadlines, cancellation.

Everything that waits lives on the event loop. The model runs on one worker thread, one pass at a time; between two
passes the scheduler looks up: new holes join, cancelled ones leave, one at its deadline is closed with what it has.
"""

import asyncio
import statistics
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import attrs

from engine.fill.interface import Model, Pass
from engine.protocol.messages import Fill, Filled, Progress, SchedulerReport
from engine.schedule import backend as service
from engine.schedule.backend import CancelledFill
from engine.schedule.context_cache import ContextCache
from engine.schedule.job import WARM_UP_S, Job, warm_up_rounds
from engine.schedule.pass_timer import PassTimer

CACHE_BYTES = 256 * 1024 * 1024
MAX_BATCH = 16
ENCODE_ROWS, ENCODE_ROWS_ON_GPU = 256, 4096
"""A long context is read in pieces of this many tokens, so that other holes get their steps in between. On a processor
each token costs its time, and a piece some tens of milliseconds. A GPU reads all weights for a piece of any size: 2,000
tokens at once take about as long as two denoising steps, and in eight pieces four times that."""


@attrs.define(eq=False)
class Ticket(service.Ticket):
    """A submitted fill, with its job once that has begun."""

    error: Exception | None = None
    job: Job | None = None


class Scheduler:
    """Owns the worker thread, the context cache and all holes under way. Construct it inside the event loop."""

    def __init__(
        self, family: Model, cache_bytes: int = CACHE_BYTES, on_stage: Callable[[str], None] | None = None
    ) -> None:
        self._family, self._on_stage = family, on_stage
        self._encode_rows = ENCODE_ROWS_ON_GPU if family.info.device == "cuda" else ENCODE_ROWS
        self._cache = ContextCache(family, cache_bytes)
        self._clock = PassTimer()
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="model")
        self._waiting: deque[Ticket] = deque()
        self._active: list[Ticket] = []
        self._wake = asyncio.Event()
        self._loop_task: asyncio.Task[None] | None = None
        self._latencies: deque[float] = deque(maxlen=200)
        self._fills = self._cancelled = self._passes = 0

    async def start(self) -> None:
        """Warm the model up, so that no user's first fill pays for fresh memory, a compiler or the capture of a graph,
        and begin to serve. On a GPU that ends after WARM_UP_S with what is warm by then."""
        self._loop_task = asyncio.create_task(self._serve())
        begun = time.perf_counter()
        rounds = warm_up_rounds(self._family.info.device)
        for number, fills in enumerate(rounds, 1):
            if self._on_stage is not None:
                self._on_stage(f"Warming the model up, {number} of {len(rounds)}")
            await asyncio.gather(*(self.submit(fill, None).result for fill in fills))
            if time.perf_counter() - begun > WARM_UP_S:
                break
        self._latencies.clear()
        self._fills = 0

    async def stop(self) -> None:
        """Cancel all fills and end the worker."""
        for ticket in [*self._waiting, *self._active]:
            self.cancel(ticket)
        if self._loop_task is not None:
            self._loop_task.cancel()
            await asyncio.gather(self._loop_task, return_exceptions=True)
        self._worker.shutdown(wait=True)
        for ticket in [*self._waiting, *self._active]:
            self._settle(ticket)

    def submit(self, fill: Fill, on_progress: Callable[[Progress], None] | None) -> Ticket:
        """Queue a fill; it joins at the next step."""
        future: asyncio.Future[Filled] = asyncio.get_running_loop().create_future()
        ticket = Ticket(fill, future, on_progress, time.perf_counter())
        self._waiting.append(ticket)
        self._wake.set()
        return ticket

    def cancel(self, ticket: service.Ticket) -> None:
        """Drop a fill; if it is under way it leaves at the next step."""
        ticket.cancelled = True
        self._wake.set()

    def report(self) -> SchedulerReport:
        return SchedulerReport(
            active=len(self._active),
            waiting=len(self._waiting),
            fills=self._fills,
            cancelled=self._cancelled,
            passes=self._passes,
            median_ms=round(statistics.median(self._latencies), 2) if self._latencies else 0.0,
            cache_hit_rate=round(self._cache.hit_rate, 4),
            cache_bytes=self._cache.bytes,
            threads=self._family.threads,
            step_ms=self._clock.table(),
        )

    async def _serve(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            if not self._waiting and not self._active:
                self._wake.clear()
                await self._wake.wait()
            self._admit()
            if not self._active:
                continue
            finished = await loop.run_in_executor(self._worker, self._step, list(self._active))
            for ticket in finished:
                self._active.remove(ticket)
                self._settle(ticket)
            for ticket in self._active:
                if ticket.job is not None and ticket.job.stepped:
                    _show_progress(ticket, ticket.job)

    def _admit(self) -> None:
        for ticket in [ticket for ticket in (*self._waiting, *self._active) if ticket.cancelled]:
            (self._active if ticket in self._active else self._waiting).remove(ticket)
            self._settle(ticket)
        while self._waiting and len(self._active) < MAX_BATCH:
            self._active.append(self._waiting.popleft())

    def _step(self, tickets: list[Ticket]) -> list[Ticket]:
        """Run one pass for all tickets on the worker thread; return those that are done."""
        passes: list[tuple[Ticket, Pass]] = []
        for ticket in tickets:
            try:
                if ticket.job is None:
                    ticket.job = Job(ticket.fill, self._family, self._cache, ticket.submitted)
                passes += [(ticket, item) for item in ticket.job.passes(self._encode_rows)]
            except Exception as error:
                ticket.error = error
        self._run(passes)
        return [ticket for ticket in tickets if self._is_over(ticket)]

    def _is_over(self, ticket: Ticket) -> bool:
        """Tell whether a ticket's job is done, or has failed."""
        if ticket.error is None and ticket.job is not None:
            try:
                return ticket.job.done(self._clock)
            except Exception as error:
                ticket.error = error
        return ticket.error is not None

    def _run(self, passes: list[tuple[Ticket, Pass]]) -> None:
        """Run passes together. When that fails each is run alone, so that only the hole that is at fault is dropped."""
        if not passes:
            return
        started = time.perf_counter()
        try:
            logits = self._family.run([item for _, item in passes])
        except Exception as error:
            if len(passes) == 1:
                passes[0][0].error = error
            else:
                for one in passes:
                    self._run([one])
            return
        elapsed = (time.perf_counter() - started) * 1000
        self._passes += 1
        rows = sum(item.rows for _, item in passes)
        self._clock.record(rows, elapsed)
        expected = self._clock.expect(rows)
        for (ticket, item), predicted in zip(passes, logits, strict=True):
            try:
                if ticket.job is not None:
                    ticket.job.absorb(item, predicted, elapsed, expected)
            except Exception as error:
                ticket.error = error

    def _settle(self, ticket: Ticket) -> None:
        """Answer a ticket that has left, and give its contexts back to the cache."""
        job, ticket.job = ticket.job, None
        if job is not None and ticket.error is None:
            job.release(self._cache)
        if ticket.result.done():
            return
        if ticket.error is not None:
            ticket.result.set_exception(ticket.error)
            return
        if ticket.cancelled or job is None:
            self._cancelled += 1
            ticket.result.set_exception(CancelledFill("the fill was cancelled"))
            return
        filled = job.filled()
        self._fills += 1
        self._latencies.append(filled.ms.total)
        _show_progress(ticket, job)
        ticket.result.set_result(filled)


def _show_progress(ticket: Ticket, job: Job) -> None:
    """Tell whoever watches; one that fails to listen is not told again, and harms no one else's fill."""
    if ticket.on_progress is None:
        return
    try:
        ticket.on_progress(job.progress())
    except Exception:
        ticket.on_progress = None
