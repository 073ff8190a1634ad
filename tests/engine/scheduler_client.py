"""Fills by a scheduler in the test's own process."""

from engine.protocol import Fill, Filled
from engine.scheduler import Scheduler


async def answer(scheduler: Scheduler, fill: Fill) -> Filled:
    return await scheduler.submit(fill, None).result
