"""Work that the engine does for an action: who fills the holes, and how the user cancels it."""

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, TypeVar

import attrs

from engine.client.connection import EngineClient
from engine.protocol.messages import Fill, Filled
from lsp_server.bulk.action import Cancelled, Project, Work
from lsp_server.documents.store import Snapshot
from lsp_server.settings import Settings
from lsp_server.slots.fill import BESIDE_TYPING, Filler
from lsp_server.suggest.pipeline import Plan

_LOOK_S = 0.05
"""Seconds between two looks whether the user has cancelled."""
_Result = TypeVar("_Result")


def filler_of(project: Project, client: EngineClient) -> Filler:
    """Return what fills holes with the session's engine, and with all that the session knows."""
    model = client.welcome.model

    def plan(snapshot: Snapshot, offset: int, settings: Settings, candidates: int) -> Plan:
        return project.plan(snapshot, offset, model, settings, candidates)

    async def ask(fill: Fill) -> Filled:
        return await project.link.fill(client, fill)

    return Filler(plan, ask, project.configuration.settings, asyncio.Semaphore(BESIDE_TYPING))


async def until_cancelled(work: Work, doing: Coroutine[Any, Any, _Result]) -> _Result:
    """Await `doing`, and cancel it when the user cancels the work. Raises Cancelled, and what `doing` raises."""
    task = asyncio.create_task(doing)
    try:
        while not task.done():
            await asyncio.wait({task}, timeout=_LOOK_S)
            work.check()
        return task.result()
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@attrs.define
class Counter:
    """Counts what is done, and shows it to the user."""

    work: Work
    noun: str
    total: int = 0
    done: int = 0

    def add(self) -> None:
        """Count one more. It may be called inside of many fills, so it does not raise Cancelled."""
        self.done += 1
        with suppress(Cancelled):  # until_cancelled sees it too
            self.work.report(f"{self.done} of {self.total} {self.noun}", 100 * self.done // max(self.total, 1))
