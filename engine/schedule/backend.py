"""What the engine's socket side asks of whoever fills the holes: our own scheduler, or a server that the user named."""

import asyncio
from collections.abc import Callable
from typing import Protocol

import attrs

from engine.errors import MidspanError
from engine.protocol.messages import Fill, Filled, Progress, SchedulerReport


class CancelledFill(MidspanError):
    """The fill was cancelled before it was done."""

    code = "cancelled"


@attrs.define(eq=False)
class Ticket:
    """A submitted fill. `result` gets the answer, or CancelledFill, or what went wrong."""

    fill: Fill
    result: asyncio.Future[Filled]
    on_progress: Callable[[Progress], None] | None
    submitted: float
    cancelled: bool = False


class Backend(Protocol):
    """Fills holes for all clients of an engine, on its event loop."""

    async def start(self) -> None:
        """Get ready to fill. Raises MidspanError with one line when that cannot be."""

    async def stop(self) -> None:
        """Cancel all fills and let go of everything."""

    def submit(self, fill: Fill, on_progress: Callable[[Progress], None] | None) -> Ticket:
        """Begin a fill; `on_progress` hears how its canvas fills, where that can be told."""
        ...

    def cancel(self, ticket: Ticket) -> None:
        """Drop a fill."""

    def report(self) -> SchedulerReport:
        """Return how it is doing."""
        ...
