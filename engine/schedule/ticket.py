"""A submitted fill as the scheduler keeps it."""

import attrs

from engine.fill.interface import Pass
from engine.protocol.messages import Candidate, Filled, RuleName, Timings
from engine.schedule.backend import Ticket
from engine.schedule.job import Job

_LEAST_MS = 100.0


@attrs.define(eq=False)
class ScheduledTicket(Ticket):
    """A submitted fill, with its job once that has begun. `delayed` says that it has waited for a file already."""

    error: Exception | None = None
    job: Job | None = None
    delayed: bool = False

    @property
    def deadline(self) -> float:
        """When it is too late to begin, as a perf_counter. With no budget a free engine makes one step."""
        return self.submitted + max(self.fill.budget_ms, _LEAST_MS) / 1000


def unfilled(ticket: ScheduledTicket, rule: RuleName, now: float) -> Filled:
    """Return the answer to a fill whose time is over before it began: an empty text. now: a perf_counter."""
    waited = round((now - ticket.submitted) * 1000, 3)
    return Filled(
        id=ticket.fill.id,
        candidates=[Candidate("", [], [], "deadline", end_confidence=0.0)],
        steps=0,
        rule=rule,
        context_tokens=0,
        cached_tokens=0,
        ms=Timings(queue=waited, encode=0.0, denoise=0.0, total=waited),
    )


@attrs.frozen
class Entry:
    """One pass of a batch: `run` is number `index` of the passes that the ticket's job returned."""

    ticket: ScheduledTicket
    index: int
    run: Pass


def show_progress(ticket: ScheduledTicket, job: Job) -> None:
    """Send progress to a viewer. A viewer that fails gets no more, and harms nobody else's fill."""
    if ticket.on_progress is None:
        return
    try:
        ticket.on_progress(job.progress())
    except Exception:
        ticket.on_progress = None
