"""Asks the engine for the fills of many holes at once."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, TypeVar

import attrs

from engine.errors import EngineUnavailable, MidspanError
from engine.protocol.messages import Fill, Filled, ModelInfo
from engine.protocol.price import FREE
from lsp_server.documents.store import Snapshot
from lsp_server.settings import Settings
from lsp_server.slots.slot import Shape, Slot, SlotKind
from lsp_server.suggest.pipeline import Plan

TOGETHER = 12
"""Holes that are with the engine at a time. It takes 16 into a pass, so an editor's suggestion finds room."""
BESIDE_TYPING = 4
"""In an editor fewer: the user goes on typing, and a suggestion shares its passes with them (benchmarks/quality)."""
_BUDGET_MS = 300_000.0
"""The time counts from when the engine reads the request, and most of it may be spent waiting for the others."""
_MAX_TOKENS: dict[Shape, int] = {"body": 128, "expression": 48, "type": 24, "docstring": 40}
_MAX_LINES = 24

_WRITER = 1_000_000_000
"""Parameters. Of 448 docstrings the embedded model, with 16 million, wrote one as it had been."""

_UNCHANGED = "; nothing was changed"
_Result = TypeVar("_Result")

Planner = Callable[[Snapshot, int, Settings, int], Plan]
"""Makes the plan of the hole at an offset: with these settings, and so many candidates."""


def why_unable(kind: SlotKind, model: ModelInfo) -> str | None:
    """Return why a model is not asked to fill slots of a kind, or None."""
    if kind == "docstrings" and 0 < model.parameters < _WRITER:
        return f"{model.name} is too small to write docstrings; `midspan models list` shows larger models"
    return None


@attrs.frozen
class Filler:
    """What is needed to fill holes: how a plan is made, who answers a fill, and the user's settings.

    `room` bounds the holes that are with the engine at a time.
    """

    plan: Planner
    ask: Callable[[Fill], Awaitable[Filled]]
    settings: Settings
    room: asyncio.Semaphore = attrs.field(factory=lambda: asyncio.Semaphore(TOGETHER))

    async def fill(self, snapshot: Snapshot, offset: int, shape: Shape, candidates: int = 1) -> tuple[Plan, Filled]:
        """Fill one hole. The answer is not cut: what of it is used is for the caller to judge. Raises MidspanError."""
        settings = attrs.evolve(
            self.settings,
            gate=FREE,
            max_lines=max(self.settings.max_lines, _MAX_LINES),
            max_tokens=max(self.settings.max_tokens, _MAX_TOKENS[shape]) if shape == "body" else _MAX_TOKENS[shape],
        )
        plan = self.plan(snapshot, offset, settings, candidates)
        plan = attrs.evolve(plan, fill=attrs.evolve(plan.fill, budget_ms=_BUDGET_MS))
        return plan, await self.ask(plan.fill)

    async def fill_all(
        self, snapshot: Snapshot, slots: Sequence[Slot], report: Callable[[], None]
    ) -> list[tuple[Plan, Filled]]:
        """Fill the slots of a text, and call `report` after each.

        Cancelling the awaiting task cancels all of them in the engine. Raises MidspanError as soon as one fails.
        """

        async def fill(slot: Slot) -> tuple[Plan, Filled]:
            async with self.room:
                opened, offset = await asyncio.to_thread(slot.opened, snapshot)
                answer = await self.fill(opened, offset, slot.shape)
                report()
                return answer

        return await gathered([fill(slot) for slot in slots])


async def gathered(work: Sequence[Coroutine[Any, Any, _Result]]) -> list[_Result]:
    """Return the results of all work, in its order. As soon as one raises MidspanError, the others are cancelled."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one) for one in work]
    except* MidspanError as errors:
        raise _first(errors) from None
    return [task.result() for task in tasks]


def _first(errors: BaseExceptionGroup[MidspanError]) -> MidspanError:
    """Return one error for the failures of many fills, which all have the same cause."""
    error = errors.exceptions[0]
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, EngineUnavailable) and not str(error).endswith(_UNCHANGED):
        return EngineUnavailable(f"{error}{_UNCHANGED}")
    return error
