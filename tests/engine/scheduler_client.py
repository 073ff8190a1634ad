"""Fills by a scheduler in the test's own process, and a hole for them."""

import attrs

from engine.protocol.messages import Fill, Filled, HoleRequest
from engine.schedule.scheduler import Scheduler

PREFIX = "import os\n\n\ndef width_of(name, parts):\n    total = 0\n    for part in parts:\n        total += "
SUFFIX = "\n    return total\n"
HOLE = Fill(id=1, prefix=PREFIX, suffix=SUFFIX, path="a/b.py", extent="lines", max_tokens=24, budget_ms=60_000.0)


def prefixes(count: int) -> list[Fill]:
    """Return holes whose contexts differ from their first line on."""
    return [attrs.evolve(HOLE, prefix=f"name_{number} = {number * 7}\n" + PREFIX) for number in range(count)]


async def answer(scheduler: Scheduler, request: HoleRequest) -> Filled:
    return await scheduler.submit(request, None).result
