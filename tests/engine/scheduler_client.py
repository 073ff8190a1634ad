"""Fills by a scheduler in the test's own process."""

from engine.protocol.messages import Fill, Filled
from engine.schedule.scheduler import Scheduler


async def answer(scheduler: Scheduler, fill: Fill) -> Filled:
    return await scheduler.submit(fill, None).result
