"""Which of the waiting fills is next, so that many typing editors and one with many fills do not starve each other."""

from collections.abc import Iterator, Sequence

from engine.schedule.ticket import ScheduledTicket

MAX_BATCH = 16
"""Fills under way at the same time."""
OWNER_BATCH = 12
"""Of one owner's fills with no more time than the one that is to join. The other places are free for somebody who types
while a client has many long fills."""
PATIENCE_S = 1.0
"""A fill that has waited for so long goes first."""


def urgent(tickets: Sequence[ScheduledTicket]) -> list[ScheduledTicket]:
    """Return the fills that a user waits for."""
    return [ticket for ticket in tickets if not ticket.fill.ahead]


class FillQueue:
    """The fills that wait for a place. An owner is the connection that asked.

    The next fill is one of the owner with the fewest fills under way, of these the one with the smallest budget, and of
    these the newest. Fills with more time do not count against one with less: who types does not wait for a refactoring
    of his own. Among equal budgets the earliest deadline would be the oldest fill, and under more load than the engine
    can bear the oldest fills belong to text that has changed since then: if they went first, all answers would come too
    late. The others are cancelled by their editors, answered by the scheduler when their time is over, or go first once
    they have waited for PATIENCE_S.

    Fills ahead of the user come last. They join only when nothing else is under way. What is only to be read joins
    nothing: a fill under way may have the context that would be read again without it.
    """

    def __init__(self) -> None:
        self._waiting: list[ScheduledTicket] = []

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
                waiting = [ticket for ticket in waiting if not ticket.fill.only_read]
        if len(held) >= MAX_BATCH:
            return None
        before = _before(waiting, held)
        fit = [ticket for ticket in waiting if before[_rank(ticket)] < OWNER_BATCH]
        if not fit:
            return None
        chosen = fit[0]
        if now - chosen.submitted <= PATIENCE_S:
            # Equally new ones go in their order.
            chosen = min(fit, key=lambda ticket: (before[_rank(ticket)], ticket.fill.budget_ms, -ticket.submitted))
        self._waiting.remove(chosen)
        return chosen


def _rank(ticket: ScheduledTicket) -> tuple[int, float]:
    """Return the owner and the budget in milliseconds."""
    return ticket.owner, ticket.fill.budget_ms


def _before(waiting: Sequence[ScheduledTicket], held: Sequence[ScheduledTicket]) -> dict[tuple[int, float], int]:
    """Count the fills under way of the same owner with no more time, for each owner and budget that waits."""
    under_way = [_rank(ticket) for ticket in held]
    return {
        (owner, budget): sum(other == owner and shorter <= budget for other, shorter in under_way)
        for owner, budget in {_rank(ticket) for ticket in waiting}
    }
