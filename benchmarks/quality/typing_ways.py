"""Types the same lines in several ways: word completion, the memory alone, the model alone, and both."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import attrs

from benchmarks.quality.suggester import Suggester
from benchmarks.quality.typing_tasks import Inserted, Suggest, Typing, TypingTask, insert, tally, type_place
from benchmarks.quality.typists import RunCompletion, WordCompletion
from engine.evaluation.calibration import Judged
from engine.evaluation.measure import Workspaces
from engine.fill.interface import Model
from engine.protocol.confidence import Price
from engine.protocol.messages import MemoryName
from engine.schedule.scheduler import Scheduler
from lsp_server.settings import Settings
from lsp_server.suggest.restraint import DOUBT, Restraint

WORDS, RUNS = "word completion", "runs alone"
MEMORIES: dict[str, MemoryName] = {"model alone": "off", "file": "file", "workspace": "workspace"}
"""The other contenders: the setting `memory` of each."""


@attrs.frozen
class Typed:
    """The keys of all tasks. judged: see Suggester."""

    typing: Typing
    judged: list[Judged] = attrs.field(factory=list)


async def type_all(
    model: Model,
    workspaces: Workspaces | None,
    tasks: Sequence[TypingTask],
    contender: str,
    gate: Price,
    doubt: float = DOUBT,
) -> Typed:
    """Type all tasks in one way.

    workspaces: what may be looked up; None for a model that uses no memory. contender: WORDS, RUNS or one of MEMORIES.
    doubt: how much a wrong start raises the price (Restraint).
    """
    if contender == WORDS:
        return Typed(await _typed(tasks, [WordCompletion(task) for task in tasks]))
    memory = MEMORIES.get(contender, "workspace")
    known = workspaces if memory == "workspace" else None
    names = [known.name_of(task.path) if known is not None else "" for task in tasks]
    if contender == RUNS and workspaces is not None:
        runs = [RunCompletion(workspaces, task, name, gate) for task, name in zip(tasks, names, strict=True)]
        return Typed(await _typed(tasks, runs))
    settings = attrs.evolve(Settings(), memory=memory, gate=gate)
    async with _suggesters(model, workspaces, tasks, names, settings, doubt) as suggesters:
        typing = await _typed(tasks, suggesters)
        return Typed(typing, [judged for suggester in suggesters for judged in suggester.judged])


async def insert_all(model: Model, workspaces: Workspaces | None, tasks: Sequence[TypingTask]) -> Inserted:
    """Ask at the place of each task, with all that is known and the default settings."""
    names = [workspaces.name_of(task.path) if workspaces is not None else "" for task in tasks]
    async with _suggesters(model, workspaces, tasks, names, Settings(), DOUBT) as suggesters:
        return await insert(tasks, suggesters)


@asynccontextmanager
async def _suggesters(
    model: Model,
    workspaces: Workspaces | None,
    tasks: Sequence[TypingTask],
    names: Sequence[str],
    settings: Settings,
    doubt: float,
) -> AsyncIterator[list[Suggester]]:
    """Give a suggester for each task, whose workspace has this name, while the model runs."""
    scheduler = Scheduler(model, memories=None if workspaces is None else workspaces.memories)
    await scheduler.start()
    try:
        yield [
            Suggester(scheduler, model.info, task, settings, name, Restraint(doubt))
            for task, name in zip(tasks, names, strict=True)
        ]
    finally:
        await scheduler.stop()


async def _typed(tasks: Sequence[TypingTask], suggesters: Sequence[Suggest]) -> Typing:
    return tally([await type_place(task, suggest) for task, suggest in zip(tasks, suggesters, strict=True)])
