"""Filling tasks in several ways, and what each fill is worth beside the code that stood there."""

import asyncio
from collections.abc import Sequence

import attrs

from engine.evaluation.similarity import edit_similarity
from engine.evaluation.syntax import Reference
from engine.evaluation.task import Seen, Task
from engine.evaluation.ways import WAYS, FillStrategy
from engine.fill.interface import Model
from engine.protocol.confidence import line_confidence
from engine.protocol.messages import Candidate, Filled, Finish
from engine.schedule.scheduler import Scheduler


@attrs.frozen
class Row:
    """One task filled in one way.

    `exact` and `first_line` say whether the fill, and its first line, are what stood there, white space at the end
    aside. `valid` and `passed` are None where nothing was parsed or run. `confidence` is of the first line. `ms` is one
    user's time with a warm context, and 0 when several holes were filled together.
    """

    way: str
    language: str
    kind: str
    number: int
    seen: Seen
    exact: bool
    first_line: bool
    similarity: float
    valid: bool | None
    confidence: float
    tokens: int
    steps: int
    ms: float
    finish: Finish
    text: str
    passed: bool | None = None

    @property
    def hole(self) -> tuple[str, str, int]:
        """What all rows of one hole have in common."""
        return self.language, self.kind, self.number


def first_line_confidence(candidate: Candidate) -> float:
    """Return how likely the first line is right, by its tokens' probabilities; 0.0 for an empty fill.

    The language server's gate (lsp_server/suggest/gate.py) goes by this, of what is left after shaping.
    """
    lead = len(candidate.text) - len(candidate.text.lstrip())
    stop = lead + len(candidate.text[lead:].partition("\n")[0].rstrip())
    return line_confidence(candidate, lead, stop)


def judge(task: Task, way: FillStrategy, filled: Filled, reference: Reference, timed: bool) -> Row:
    """Hold a fill against the code that stood there."""
    answer, hole = filled.candidates[0], task.hole
    return Row(
        way=way.name,
        language=hole.language,
        kind=hole.kind,
        number=task.number,
        seen=task.seen,
        exact=answer.text.rstrip() == hole.middle.rstrip(),
        first_line=_first_line(answer.text) == _first_line(hole.middle),
        similarity=round(edit_similarity(answer.text.rstrip(), hole.middle.rstrip()), 4),
        valid=reference.allows(answer.text),
        confidence=round(first_line_confidence(answer), 4),
        tokens=len(answer.tokens),
        steps=filled.steps,
        ms=round(filled.ms.encode + filled.ms.denoise, 3) if timed else 0.0,
        finish=answer.finish,
        text=answer.text,
    )


def _first_line(text: str) -> str:
    return text.partition("\n")[0].rstrip()


async def measure(
    family: Model, tasks: Sequence[Task], ways: Sequence[FillStrategy] = WAYS, together: int = 1
) -> list[Row]:
    """Fill every task in every way and return the rows, task by task.

    One task at a time, each with its context read before the clock runs, measures times of a single user that are alike
    for all ways. With several `together` all is done sooner and the answers are the same, but no time is told.
    """
    scheduler = Scheduler(family)
    await scheduler.start()
    free = asyncio.Semaphore(together)
    timed = together == 1

    async def fill(task: Task) -> list[Row]:
        async with free:
            reference = Reference(task.hole)
            if timed:
                await scheduler.submit(task.fill(FillStrategy("threshold", 1)), None).result
            rows = []
            for way in ways:
                filled = await scheduler.submit(task.fill(way), None).result
                rows.append(judge(task, way, filled, reference, timed))
            return rows

    try:
        groups = await asyncio.gather(*(fill(task) for task in tasks))
    finally:
        await scheduler.stop()
    return [row for group in groups for row in group]
