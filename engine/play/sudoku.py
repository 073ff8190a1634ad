"""Sudoku on the page: the shipped network fills a grid through the scheduler and the strategies of any model."""

import asyncio
from typing import Literal, get_args

import attrs

from engine.http.connection import Problem
from engine.models.sudoku.model import PUZZLES, STEPS, load_sudoku
from engine.protocol.messages import Cell, Fill, Progress, RuleName
from engine.schedule.scheduler import Scheduler

Way = Literal["sides", "doubts", "left"]
"""From all sides; the same, but what is written may be taken back; left to right."""
WAYS: dict[Way, tuple[RuleName, int]] = {
    "sides": ("threshold", STEPS),
    "doubts": ("threshold", STEPS),
    "left": ("left-to-right", 0),
}
PATIENCE_MS = 60_000.0
CELLS = 81
PAGE_LOOPS = 16
"""Short passes: with all loops a pass solves most grids at once, and there is nothing to watch."""


@attrs.frozen
class GridStep:
    step: int
    ms: float
    cells: list[Cell]


@attrs.frozen
class Solved:
    """A filled grid: its digits, whether they keep the rules, the passes, and the milliseconds of the passes."""

    text: str
    right: bool
    passes: list[GridStep]
    ms: float


class SudokuBoards:
    """Loads the network when it is first asked."""

    def __init__(self) -> None:
        self._starting: dict[bool, asyncio.Task[Scheduler]] = {}

    def puzzles(self) -> list[str]:
        """Return the shipped puzzles, 81 characters each. The network has not seen them in training."""
        return PUZZLES.read_text("ascii").split()

    async def fill(self, puzzle: str, way: str) -> Solved:
        """Fill a grid. Raises Problem for what is no grid."""
        if way not in get_args(Way):
            raise Problem(400, "no such way; reload the page")
        if len(puzzle) != CELLS or not set(puzzle) <= set(".123456789"):
            raise Problem(400, "a Sudoku has 81 cells, each a digit or a dot")
        rule, steps = WAYS[way]  # type: ignore[index]
        scheduler = await self._scheduler(way == "doubts")
        seen: list[Progress] = []
        fill = Fill(0, "", puzzle, budget_ms=PATIENCE_MS, max_tokens=CELLS + 1, rule=rule, steps=steps, trace=True)
        filled = await scheduler.submit(fill, seen.append).result
        text = filled.candidates[0].text
        passes = [GridStep(each.step, each.ms, each.cells) for each in seen]
        return Solved(text, keeps_rules(puzzle, text), passes, filled.ms.denoise)

    async def _scheduler(self, doubts: bool) -> Scheduler:
        if doubts not in self._starting:
            self._starting[doubts] = asyncio.create_task(_started(doubts))
        return await asyncio.shield(self._starting[doubts])

    async def close(self) -> None:
        """End what runs."""
        for starting in self._starting.values():
            await (await starting).stop()


async def _started(doubts: bool) -> Scheduler:
    scheduler = Scheduler(await asyncio.to_thread(load_sudoku, doubts=doubts, loops=PAGE_LOOPS))
    await scheduler.start()
    return scheduler


def keeps_rules(puzzle: str, text: str) -> bool:
    """Return whether a text is a solution of a puzzle."""
    if len(text) != CELLS or any(given not in (".", digit) for given, digit in zip(puzzle, text, strict=True)):
        return False
    rows = [text[start : start + 9] for start in range(0, CELLS, 9)]
    columns = ["".join(row[column] for row in rows) for column in range(9)]
    boxes = [
        "".join(rows[band + down][stack : stack + 3] for down in range(3)) for band in (0, 3, 6) for stack in (0, 3, 6)
    ]
    return all(len(set(group)) == 9 for group in (*rows, *columns, *boxes))
