"""Fills tasks with several strategies, through the scheduler, and returns one row for each fill.

Held-out packages can be workspaces: what an engine knows of a package whose file is being edited.
"""

import asyncio
from collections.abc import Sequence

import numpy as np

from engine.corpus.corpus import packages
from engine.corpus.languages import File
from engine.errors import ModelError
from engine.evaluation.rows import STRATEGIES, Reference, Row, Task, held_out, judge
from engine.fill.interface import FillStrategy, Model
from engine.fill.stream import StreamModel
from engine.library.resolve import folder_of
from engine.memory.mixing_network import MixingNetwork
from engine.memory.workspace import EngineMemories
from engine.protocol.messages import Read
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
                await scheduler.submit(Read.of(task.fill(strategies[0])), None).result
            rows = []
            # An owner's last text would be the next one's first draft.
            for owner, strategy in enumerate(strategies, 1):
                filled = await scheduler.submit(task.fill(strategy), None, owner).result
                rows.append(judge(task, strategy, filled, reference, timed))
            return rows

    try:
        groups = await asyncio.gather(*(fill(task) for task in tasks))
    finally:
        await scheduler.stop()
    return [row for group in groups for row in group]


_MOST_BYTES = 1 << 30


class Workspaces:
    """Packages that are learned when a file of them is first asked for. A fill ignores what is learned of its own file.

    memories: for a scheduler.
    """

    def __init__(self, model: StreamModel, mixing: MixingNetwork, files: Sequence[File]) -> None:
        self.model = model
        self.memories = EngineMemories(model, model.tokenizer, mixing, _MOST_BYTES, model.memory_use)
        self._package_of = {file.path: package for package in packages(files) for file in package}
        self._learned: set[str] = set()

    @classmethod
    def of(cls, model: Model, name: str, files: Sequence[File]) -> "Workspaces":
        """Return the workspaces for a model, which was loaded by `name`. Raises ModelError if it uses no memory."""
        if not isinstance(model, StreamModel):
            raise ModelError(f"{model.info.name} uses no memory; name the embedded model or one that the kernel runs")
        return cls(model, MixingNetwork.of_model(folder_of(name)), files)

    def name_of(self, path: str) -> str:
        """Learn the package of a file, and return its name as a workspace; "" for a file without a package."""
        package = self._package_of.get(path)
        if package is None:
            return ""
        name = package[0].path
        if name not in self._learned:
            self._learned.add(name)
            for file in package:
                tokens = np.array(self.memories.tokenize(file.text), np.int32)
                self.memories.learn(name, file.path, tokens)
        return name
