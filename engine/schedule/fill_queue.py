"""Submitted requests, and which that waits is next: many typing editors and one with many fills share fairly."""

from collections.abc import Iterator, Sequence

import attrs

from engine.fill.interface import Pass
from engine.protocol.messages import Candidate, Fill, Filled, Read, RuleName, Timings
from engine.schedule.backend import Ticket
from engine.schedule.job import Job

MAX_BATCH = 16
"""Fills under way at the same time."""
OWNER_BATCH = 12
"""Most fills of one owner with an equal or smaller budget than the next. The other places are free for somebody who
types while a client has many long fills."""
PATIENCE_S = 1.0
"""A fill that has waited for so long goes first."""
HURRIED_MS = 1000.0
"""Somebody who types waits for a fill with a smaller budget, and the next key makes it useless."""
HURRIED_ON_CPU = 4
"""The most such fills under way on a CPU. There a step over 16 holes takes 2.6 times as long as one over 4, and all
would come too late. When 10 editors typed at once, 61 % of the keys were answered with 4 under way, 44 % with 16."""
NEARLY_S = 0.03
"""Fills that differ by less are equally new. Some editor's keys always come shortly before another's."""
_MOST_TURNS = 1000
"""Owners whose last turn is remembered."""
_LEAST_MS = 100.0


@attrs.define(eq=False)
class ScheduledTicket(Ticket):
    """A submitted request, with its job once that has begun. `delayed` says that it has waited for a file already."""

    error: Exception | None = None
    job: Job | None = None
    delayed: bool = False

    @property
    def deadline(self) -> float:
        """When it is too late to begin, as a perf_counter. With no budget a free engine makes one step."""
        return self.submitted + max(self.request.budget_ms, _LEAST_MS) / 1000

    @property
    def is_waited_for(self) -> bool:
        """Whether a user waits for the answer. For a fill ahead one only may, soon."""
        return isinstance(self.request, Fill) and not self.request.ahead


def unfilled(ticket: ScheduledTicket, default: RuleName, now: float) -> Filled:
    """Return the answer to a request whose time is over before it began: an empty text. now: a perf_counter."""
    asked = ticket.request.rule if isinstance(ticket.request, Fill) else "default"
    is_read = isinstance(ticket.request, Read)
    waited = round((now - ticket.submitted) * 1000, 3)
    return Filled(
        id=ticket.request.id,
        candidates=[] if is_read else [Candidate("", [], [], "deadline", end_confidence=0.0)],
        steps=0,
        rule=default if asked == "default" else asked,
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


def urgent(tickets: Sequence[ScheduledTicket]) -> list[ScheduledTicket]:
    """Return the fills that a user waits for."""
    return [ticket for ticket in tickets if ticket.is_waited_for]


class FillQueue:
    """The fills that wait for a place. An owner is the connection that asked.

    The next fill is one of the owner with the fewest fills under way, of these the one with the smallest budget, and of
    these the newest; among those that are nearly as new, that of the owner who has waited for a turn the longest. Fills
    with more time do not count against one with less: typing does not wait for the user's own refactoring. Among equal
    budgets the earliest deadline would be the oldest fill, and under more load than the engine can bear the oldest
    fills belong to text that has changed since then: if they went first, all answers would come too late. For the same
    reason only so many hurried ones are under way. The others are cancelled by their editors, answered by the scheduler
    when their time is over, or go first once they have waited for PATIENCE_S.

    Fills ahead of the user come last. They join only when nothing else is under way. What is only to be read joins
    nothing: a fill under way may have the context that would be read again without it.
    """

    def __init__(self, hurried: int = MAX_BATCH) -> None:
        """hurried: the most fills under way with budgets below HURRIED_MS."""
        self._waiting: list[ScheduledTicket] = []
        self._most_hurried = hurried
        self._turns: dict[int, float] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def __iter__(self) -> Iterator[ScheduledTicket]:
        return iter(self._waiting)

    def put(self, ticket: ScheduledTicket) -> None:
        """Add the newest fill."""
        self._waiting.append(ticket)

    def remove(self, ticket: ScheduledTicket) -> None:
        """Drop a waiting fill."""
        self._waiting.remove(ticket)

    def take(self, active: Sequence[ScheduledTicket], now: float) -> ScheduledTicket | None:
        """Remove and return the fill that joins `active` now, if there is a place for one. now: seconds."""
        waiting, held = urgent(self._waiting), urgent(active)
        if not waiting and not held:
            waiting, held = self._waiting, list(active)
            if held:
                waiting = [ticket for ticket in waiting if not isinstance(ticket.request, Read)]
        if len(held) >= MAX_BATCH:
            return None
        if sum(_is_hurried(ticket) for ticket in held) >= self._most_hurried:
            waiting = [ticket for ticket in waiting if not _is_hurried(ticket)]
        before = _before(waiting, held)
        fit = [ticket for ticket in waiting if before[_rank(ticket)] < OWNER_BATCH]
        if not fit:
            return None
        chosen = fit[0]
        if now - chosen.submitted <= PATIENCE_S:
            chosen = self._next(fit, before)
        self._waiting.remove(chosen)
        self._turns.pop(chosen.owner, None)
        self._turns[chosen.owner] = now
        if len(self._turns) > _MOST_TURNS:
            del self._turns[next(iter(self._turns))]
        return chosen

    def _next(self, fit: Sequence[ScheduledTicket], before: dict[tuple[int, float], int]) -> ScheduledTicket:
        first = min((before[_rank(ticket)], ticket.request.budget_ms) for ticket in fit)
        equal = [ticket for ticket in fit if (before[_rank(ticket)], ticket.request.budget_ms) == first]
        newest = max(ticket.submitted for ticket in equal)
        new = [ticket for ticket in equal if ticket.submitted > newest - NEARLY_S]
        # An owner's newest fill goes first, and equally new ones in their order.
        return min(new, key=lambda ticket: (self._turns.get(ticket.owner, 0.0), -ticket.submitted))


def _is_hurried(ticket: ScheduledTicket) -> bool:
    return ticket.request.budget_ms < HURRIED_MS


def _rank(ticket: ScheduledTicket) -> tuple[int, float]:
    """Return the owner and the budget in milliseconds."""
    return ticket.owner, ticket.request.budget_ms


def _before(waiting: Sequence[ScheduledTicket], held: Sequence[ScheduledTicket]) -> dict[tuple[int, float], int]:
    """Count the fills under way of the same owner with no more time, for each owner and budget that waits."""
    under_way = [_rank(ticket) for ticket in held]
    return {
        (owner, budget): sum(other == owner and shorter <= budget for other, shorter in under_way)
        for owner, budget in {_rank(ticket) for ticket in waiting}
    }
