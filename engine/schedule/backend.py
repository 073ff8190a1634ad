"""What the engine's socket side asks of a backend: our own scheduler, or a server that the user named."""

import asyncio
from collections.abc import Callable
from typing import Protocol

import attrs

from engine.errors import MidspanError
from engine.protocol.memory_messages import Forget, Learn, MemoryStatus
from engine.protocol.messages import Filled, HoleRequest, Progress, SchedulerReport


class CancelledFill(MidspanError):
    """The fill was cancelled before it was done."""

    code = "cancelled"


@attrs.define(eq=False)
class Ticket:
    """A submitted request. `result` gets the answer, CancelledFill, or the error. `owner` tells who submitted it."""

    request: HoleRequest
    result: asyncio.Future[Filled]
    on_progress: Callable[[Progress], None] | None
    submitted: float
    owner: int = 0
    cancelled: bool = False


def settle_cancelled(ticket: Ticket) -> None:
    """Answer a cancelled fill with CancelledFill."""
    ticket.result.set_exception(CancelledFill("the fill was cancelled"))
    # A caller that cancels need not look at the result, and asyncio would log an exception that nobody has seen.
    ticket.result.exception()


class Backend(Protocol):
    """Fills holes for all clients of an engine, on its event loop."""

    async def start(self) -> None:
        """Get ready to fill. Raises MidspanError with one line if that fails."""

    async def stop(self) -> None:
        """Cancel all fills and release everything."""

    def submit(self, request: HoleRequest, on_progress: Callable[[Progress], None] | None, owner: int = 0) -> Ticket:
        """Begin a request. `on_progress` gets its canvas after each step, if the backend can tell.

        Owners share the backend fairly, whatever each of them submits.
        """
        ...

    def cancel(self, ticket: Ticket) -> None:
        """Drop a fill."""

    def report(self) -> SchedulerReport:
        """Return how the fills are doing."""
        ...

    def learn(self, learn: Learn) -> asyncio.Future[None]:
        """Put a file into the memory of its workspace. The future ends when fills see it."""
        ...

    def forget(self, forget: Forget) -> asyncio.Future[None]:
        """Remove files from the memory of a workspace. The future ends when no fill sees them any more."""
        ...

    def memory_status(self, workspace: str) -> asyncio.Future[MemoryStatus]:
        """Count what the memory of a workspace has."""
        ...
