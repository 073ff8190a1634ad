"""Which holes take the next step together: batching by step, deadlines, cancellation.

All queues live on the event loop. The model runs on one worker thread, one batch at a time. Between two batches new
holes join, cancelled ones leave, and a hole at its deadline is closed with what it has. Files for the memory of a
workspace are learned on the same thread while no hole is there (see FileQueue).
"""

import asyncio
import logging
import math
import statistics
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import attrs

from engine.fill.draft_planner import PassTimer
from engine.fill.interface import Keeps, Model
from engine.fill.stream import StreamModel
from engine.heap import give_back
from engine.library.device_memory import memory_of
from engine.memory.workspace import EngineMemories, WorkspaceMemories
from engine.protocol.memory_messages import Forget, Learn, MemoryStatus
from engine.protocol.messages import Fill, Filled, HoleRequest, Progress, Read, SchedulerReport, Score
from engine.schedule.backend import Ticket, settle_cancelled
from engine.schedule.caches import ContextCache, LastTexts, cache_bytes_on, crowded_bytes_on
from engine.schedule.file_queue import FileQueue
from engine.schedule.fill_queue import (
    HURRIED_ON_CPU,
    MAX_BATCH,
    Entry,
    FillQueue,
    ScheduledTicket,
    show_progress,
    unfilled,
    urgent,
)
from engine.schedule.job import FillJob, Job, OpenHole
from engine.schedule.textless_jobs import SPARED_ROWS, ReadJob, ScoreJob
from engine.schedule.warm_up import time_passes, warm_up

_log = logging.getLogger(__name__)
STEPS_OF_A_FILL = 8
"""Steps that a fill of a model that denoises takes, when it has time."""
_OUT_OF_MEMORY = "OutOfMemoryError"  # Torch's error for a GPU, which no module here imports.
READING_ROWS, ENCODE_ROWS, ENCODE_ROWS_ON_GPU = 32, 64, 4096
"""A batch reads so many tokens of contexts at most: other holes get their steps in between, or the next key where no
fill waits. A piece takes some tens of milliseconds on a CPU. A GPU reads all weights for each: 2,000 tokens at once
take as long as two denoising steps, in eight pieces four times that."""
SHARED_WITH_FILLS = 4
"""A batch with passes of fills reads this part of it."""
CROWDED_TOKENS = 16
"""While more fills wait than fit into a batch, a new one gets at most so many tokens: the first ones help most."""
CALM_S = 20.0
"""After so many seconds without work the heap's free memory is given back, once. Nobody is typing then."""
LEARN_S = 0.05
"""Seconds of learning after which the event loop answers for the files that are done. A hole waits for one file."""
IDLE_S = 0.2
"""Without work for so long, the memory is made faster."""
READ_ON_MS = 10_000.0
"""A context that a fill had no time for is read on for so long."""
FILE_PATIENCE_S = 0.5
"""While there are always holes, a file that has waited for so long is learned between two of their steps."""


class Scheduler:
    """Implements backend.Backend. Owns the worker thread, the context cache and all holes under way.

    Construct it inside the event loop. Without `files` it has no memory of workspaces and drops what it is to learn.
    """

    def __init__(
        self,
        model: Model,
        cache_bytes: int | None = None,
        on_stage: Callable[[str], None] | None = None,
        files: FileQueue | None = None,
        memories: EngineMemories | None = None,
    ) -> None:
        self._model, self._on_stage = model, on_stage
        self._encode_rows = ENCODE_ROWS_ON_GPU if model.info.device == "cuda" else ENCODE_ROWS
        crowded_bytes = 0
        if cache_bytes is None:
            memory = memory_of(model.info.device)
            cache_bytes = cache_bytes_on(model.info.device, memory)
            crowded_bytes = crowded_bytes_on(model.info.device, memory)
        self._cache = ContextCache(model, cache_bytes, crowded_bytes)
        self._timer = PassTimer()
        self._last_texts = LastTexts()
        self._files = files or FileQueue(WorkspaceMemories(0), lambda _: [])
        self._memories = memories
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="model")
        self._waiting = FillQueue(MAX_BATCH if model.info.device == "cuda" else HURRIED_ON_CPU)
        self._active: list[ScheduledTicket] = []
        self._reader: ScheduledTicket | None = None
        self._read_on: dict[int, ScheduledTicket] = {}
        """A reading ticket for each owner, whose next fill ends it and has its context."""
        self._wake = asyncio.Event()
        self._loop_task: asyncio.Task[None] | None = None
        self._latencies: deque[float] = deque(maxlen=200)
        self._fills = self._cancelled = self._passes = 0
        self._stopped = False
        self._said = True  # until the warm-up is over, which has budgets of its own
        self._untimed = self._times_again = False

    async def start(self) -> None:
        """Warm the model up and begin to serve."""
        self._loop_task = asyncio.create_task(self._serve())
        await warm_up(lambda fill: self.submit(fill, None).result, self._model.info.device, self._on_stage)
        self._latencies.clear()
        self._fills = 0
        self._said = False
        if isinstance(self._model, StreamModel):
            if self._model.info.device == "cuda":  # Each size is captured first, which takes too long for a user.
                await asyncio.get_running_loop().run_in_executor(self._worker, time_passes, self._model)
            else:
                self._untimed = self._times_again = True
                self._wake.set()  # The loop, which waits already, does it.

    async def stop(self) -> None:
        """Cancel all fills and end the worker."""
        for ticket in [*self._waiting, *self._active]:
            self.cancel(ticket)
        self._stopped = True
        if self._loop_task is not None:
            self._loop_task.cancel()
            await asyncio.gather(self._loop_task, return_exceptions=True)
        self._worker.shutdown(wait=True)
        for ticket in [*self._waiting, *self._active]:
            self._settle(ticket)
        self._files.close()

    def submit(
        self, request: HoleRequest, on_progress: Callable[[Progress], None] | None, owner: int = 0
    ) -> ScheduledTicket:
        """Queue a request. It joins at the next step, if there is a place (see FillQueue)."""
        future: asyncio.Future[Filled] = asyncio.get_running_loop().create_future()
        ticket = ScheduledTicket(request, future, on_progress, time.perf_counter(), owner)
        if (reading := self._read_on.pop(owner, None)) is not None:
            reading.result.cancel()
            self.cancel(reading)
        self._waiting.put(ticket)
        self._wake.set()
        return ticket

    def cancel(self, ticket: Ticket) -> None:
        """Drop a fill. One that is under way leaves at the next step."""
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
            threads=self._model.threads,
            step_ms=self._timer.table(),
        )

    def learn(self, learn: Learn) -> asyncio.Future[None]:
        """Queue a file. It is learned when no hole is there, or after FILE_PATIENCE_S."""
        self._wake.set()
        return self._files.learn(learn)

    def forget(self, forget: Forget) -> asyncio.Future[None]:
        """Queue a Forget. It is done before the next step."""
        self._wake.set()
        return self._files.forget(forget)

    def memory_status(self, workspace: str) -> asyncio.Future[MemoryStatus]:
        """Count on the worker thread, because the memory changes there."""
        return asyncio.get_running_loop().run_in_executor(self._worker, self._files.status, workspace)

    async def _serve(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            if not self._waiting and not self._active and not self._files.has_work:
                self._wake.clear()
                await self._idle()
            self._admit()
            if self._files.has_work:
                await self._update_memory()
            if not self._active:
                continue
            # A fill ahead of the user waits while a user waits.
            stepping = urgent(self._active) or list(self._active)
            finished = await loop.run_in_executor(self._worker, self._step, stepping)
            for ticket in finished:
                self._active.remove(ticket)
                self._settle(ticket)
            for ticket in stepping:
                if ticket.job is not None and ticket.job.stepped:
                    show_progress(ticket, ticket.job)

    async def _idle(self) -> None:
        """Wait for work. Meanwhile passes are timed, the memory merges what it learned, and the heap is given back."""
        while self._untimed or self._files.is_loose:
            with suppress(TimeoutError):
                async with asyncio.timeout(IDLE_S):
                    await self._wake.wait()
                    return
            task = self._time_passes if self._untimed else self._files.tighten
            await asyncio.get_running_loop().run_in_executor(self._worker, task)
        with suppress(TimeoutError):
            async with asyncio.timeout(CALM_S):
                await self._wake.wait()
                return
        if self._times_again:  # An editor that starts, and its other servers, keep a machine busy.
            self._times_again = False
            await asyncio.get_running_loop().run_in_executor(self._worker, self._time_passes)
        await asyncio.get_running_loop().run_in_executor(self._worker, self._tidy_up)
        await self._wake.wait()

    def _time_passes(self) -> None:
        """Tell the model how long its passes take. If a fill comes meanwhile, that is done later."""
        try:
            self._untimed = isinstance(self._model, StreamModel) and not time_passes(self._model, self._wake.is_set)
        except Exception as error:  # So would a fill's passes, which tell it to the user.
            self._untimed = False
            _log.warning("the passes cannot be timed: %s: %s", type(error).__name__, error)

    def _tidy_up(self) -> None:
        self._cache.shrink()
        give_back()
        if isinstance(self._model, Keeps):
            threading.Thread(target=self._model.keep, name="keep", daemon=True).start()

    async def _update_memory(self) -> None:
        """Forget and learn on the worker thread. No hole waits for more than one file."""
        files, loop = self._files, asyncio.get_running_loop()
        if not self._active:
            await loop.run_in_executor(self._worker, files.work, LEARN_S, lambda: bool(self._waiting))
        elif files.longest_wait_s > FILE_PATIENCE_S and not any(ticket.delayed for ticket in self._active):
            for ticket in self._active:
                ticket.delayed = True
            await loop.run_in_executor(self._worker, files.work, 0.0, lambda: True)
        elif files.has_forgets:
            await loop.run_in_executor(self._worker, files.work_forgets)
        files.settle()

    def _admit(self) -> None:
        for ticket in [ticket for ticket in (*self._waiting, *self._active) if ticket.cancelled]:
            (self._active if ticket in self._active else self._waiting).remove(ticket)
            self._settle(ticket)
        now = time.perf_counter()
        for ticket in [ticket for ticket in self._waiting if now > ticket.deadline]:
            self._waiting.remove(ticket)
            ticket.result.set_result(unfilled(ticket, self._model.default.rule, now))
        while (ticket := self._waiting.take(self._active, time.perf_counter())) is not None:
            self._active.append(ticket)

    def _step(self, tickets: list[ScheduledTicket]) -> list[ScheduledTicket]:
        """Run one batch for all tickets, on the worker thread. Return the tickets that are done."""
        jobs = {ticket: job for ticket in tickets if (job := self._begun(ticket)) is not None}
        reading = [ticket for ticket, job in jobs.items() if job.unread]
        # The reader reads on; then the shortest rest comes, and among equals the newest: it is wanted longest.
        reading.sort(key=lambda ticket: (ticket is not self._reader, jobs[ticket].unread, -ticket.submitted))
        self._reader = reading[0] if reading else None
        small = self._encode_rows == ENCODE_ROWS and all(isinstance(job, ReadJob) for job in jobs.values())
        share = 1 if len(reading) == len(jobs) else SHARED_WITH_FILLS
        room = (READING_ROWS if small else self._encode_rows) // share
        batch: list[Entry] = []
        for ticket in [*(ticket for ticket in jobs if ticket not in reading), *reading]:
            unread = jobs[ticket].unread
            if unread and not room:
                continue
            try:
                batch += [Entry(ticket, index, run) for index, run in enumerate(jobs[ticket].passes(room))]
            except Exception as error:
                ticket.error = error
            room -= min(unread, room)
        self._run(batch)
        return [ticket for ticket in tickets if self._is_over(ticket)]

    def _begun(self, ticket: ScheduledTicket) -> Job | None:
        """Return a ticket's job, begun now if it has none; None if it can't be begun."""
        if ticket.job is None and ticket.error is None:
            try:
                hole = OpenHole(ticket.request, self._model, self._cache, ticket.submitted, self._memories)
                with hole.released_on_error(ticket.owner):
                    ticket.job = self._job(ticket, hole)
            except Exception as error:
                ticket.error = error
        return ticket.job

    def _job(self, ticket: ScheduledTicket, hole: OpenHole) -> Job:
        match ticket.request:
            case Fill() as fill:
                most = CROWDED_TOKENS if len(self._waiting) >= MAX_BATCH else None
                return FillJob(hole, fill, most, self._last_texts.rest(fill, ticket.owner))
            case Score(text=text):
                return ScoreJob(hole, text)
            case _:
                return ReadJob(hole)

    def _is_over(self, ticket: ScheduledTicket) -> bool:
        """Return whether a ticket's job is done or has failed."""
        if ticket.error is None and ticket.job is not None:
            try:
                return ticket.job.done(self._timer)
            except Exception as error:
                ticket.error = error
        return ticket.error is not None

    def _run(self, batch: list[Entry]) -> None:
        """Run passes together. If that fails, run each alone, so that only the hole at fault is dropped."""
        if not batch:
            return
        started = time.perf_counter()
        try:
            results = self._model.run([entry.run for entry in batch])
        except Exception as error:
            if type(error).__name__ == _OUT_OF_MEMORY and self._cache.clear():
                self._run(batch)  # what was only kept for later made room
            elif len(batch) == 1:
                batch[0].ticket.error = error
            else:
                for entry in batch:
                    self._run([entry])
            return
        elapsed = (time.perf_counter() - started) * 1000
        self._passes += 1
        rows = sum(entry.run.rows for entry in batch)
        self._timer.record(rows, elapsed)
        expected = self._timer.expect(rows)
        for entry, result in zip(batch, results, strict=True):
            try:
                if entry.ticket.job is not None:
                    entry.ticket.job.absorb(entry.index, result, elapsed, expected)
            except Exception as error:
                entry.ticket.error = error

    def _settle(self, ticket: ScheduledTicket) -> None:
        """Answer a ticket that has left, and give its context back to the cache."""
        job, ticket.job = ticket.job, None
        is_read = isinstance(ticket.request, Read)
        if job is not None and ticket.error is None:
            if isinstance(job, FillJob) and ticket.is_waited_for:
                with suppress(Exception):  # It only helps the next fill; what is wrong with it is answered below.
                    self._last_texts.note(job.fill, ticket.owner, job.text)
            lacks = job.hole.lacks
            job.hole.release(ticket.owner)
            if lacks > SPARED_ROWS and not is_read:
                self._read_rest(ticket)
        if ticket.result.done():
            return
        if ticket.error is not None:
            return ticket.result.set_exception(ticket.error)
        if ticket.cancelled or job is None:
            self._cancelled += not is_read
            return settle_cancelled(ticket)
        try:
            filled = job.filled()
        except Exception as error:  # Else all others would wait forever.
            return ticket.result.set_exception(error)
        self._fills += not is_read
        if ticket.is_waited_for:  # Others wait for all fills.
            self._latencies.append(filled.ms.total)
        self._say_if_too_slow(ticket.request, filled)
        if job.stepped:
            show_progress(ticket, job)
        ticket.result.set_result(filled)

    def _read_rest(self, ticket: ScheduledTicket) -> None:
        """Read on what a fill had no time for, unless its owner has asked again."""
        if self._stopped or any(each.owner == ticket.owner for each in (*self._waiting, *self._active)):
            return
        rest = attrs.evolve(Read.of(ticket.request), budget_ms=READ_ON_MS)
        self._read_on[ticket.owner] = reading = self.submit(rest, None, ticket.owner)

        def over(done: asyncio.Future[Filled]) -> None:
            done.cancelled() or done.exception()
            if self._read_on.get(ticket.owner) is reading:
                del self._read_on[ticket.owner]

        reading.result.add_done_callback(over)

    def _say_if_too_slow(self, request: HoleRequest, filled: Filled) -> None:
        """Log once which budget a model needs here, where there was no time for a second step."""
        step = self._timer.expect(self._model.info.canvas_tokens)
        hurried = filled.steps <= 1 and filled.ms.total + step > request.budget_ms
        if not hurried or self._said or isinstance(request, Read) or isinstance(self._model, StreamModel):
            return
        self._said = True
        needed = filled.ms.encode + STEPS_OF_A_FILL * step
        _log.warning(
            "%s needs a budget of about %d ms for a fill here, not %d: set midspan.budgetMs, or use a smaller model",
            *(self._model.info.name, math.ceil(needed / 100) * 100, request.budget_ms),
        )
