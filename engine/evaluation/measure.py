"""Fills tasks with several strategies, through the scheduler, and returns one row for each fill."""

import asyncio
from collections.abc import Sequence

from engine.corpus.languages import File
from engine.evaluation.rows import Row, judge
from engine.evaluation.strategies import STRATEGIES
from engine.evaluation.syntax import Reference
from engine.evaluation.task import Task, held_out
from engine.fill.interface import FillStrategy, Model
from engine.memory.workspace import EngineMemories
from engine.schedule.scheduler import Scheduler


def measure_held_out(
    model: Model,
    files: list[File],
    languages: Sequence[str],
    kinds: Sequence[str],
    count: int,
    strategies: Sequence[FillStrategy] = STRATEGIES,
) -> list[Row]:
    """Fill `count` holes of each language and kind, one at a time; a language without files gives no rows."""
    tasks = [task for language in languages for kind in kinds for task in held_out(files, language, kind, count)]
    return asyncio.run(measure(model, tasks, strategies))


async def measure(
    model: Model,
    tasks: Sequence[Task],
    strategies: Sequence[FillStrategy] = STRATEGIES,
    together: int = 1,
    memories: EngineMemories | None = None,
) -> list[Row]:
    """Fill every task with every strategy and return the rows, task by task.

    With `together` 1 the rows have times: one task runs at a time, and its context is read before the clock starts, so
    all strategies start from the same state. With more, the answers are the same and come sooner, but have no times.
    memories: what is known of the tasks' files and workspaces; by default nothing.
    """
    scheduler = Scheduler(model, memories=memories)
    await scheduler.start()
    free = asyncio.Semaphore(together)
    timed = together == 1

    async def fill(task: Task) -> list[Row]:
        async with free:
            reference = Reference(task.hole)
            if timed:
                await scheduler.submit(task.fill(FillStrategy("threshold", 1)), None).result
            rows = []
            for strategy in strategies:
                filled = await scheduler.submit(task.fill(strategy), None).result
                rows.append(judge(task, strategy, filled, reference, timed))
            return rows

    try:
        groups = await asyncio.gather(*(fill(task) for task in tasks))
    finally:
        await scheduler.stop()
    return [row for group in groups for row in group]
