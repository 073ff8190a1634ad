"""A submitted fill as the scheduler keeps it."""

import attrs

from engine.fill.interface import Pass
from engine.schedule.backend import Ticket
from engine.schedule.job import Job


@attrs.define(eq=False)
class ScheduledTicket(Ticket):
    """A submitted fill, with its job once that has begun. `delayed` says that it has waited for a file already."""

    error: Exception | None = None
    job: Job | None = None
    delayed: bool = False


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
