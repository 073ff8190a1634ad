"""What the engine's socket side asks of a backend: our own scheduler, or a server that the user named."""

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
    """A submitted fill. `result` gets the answer, CancelledFill, or the error."""

    fill: Fill
    result: asyncio.Future[Filled]
    on_progress: Callable[[Progress], None] | None
    submitted: float
    cancelled: bool = False


class Backend(Protocol):
    """Fills holes for all clients of an engine, on its event loop."""

    async def start(self) -> None:
        """Get ready to fill. Raises MidspanError with one line if that fails."""

    async def stop(self) -> None:
        """Cancel all fills and release everything."""

    def submit(self, fill: Fill, on_progress: Callable[[Progress], None] | None) -> Ticket:
        """Begin a fill. `on_progress` gets its canvas after each step, if the backend can tell."""
        ...

    def cancel(self, ticket: Ticket) -> None:
        """Drop a fill."""

    def report(self) -> SchedulerReport:
        """Return how the fills are doing."""
        ...
