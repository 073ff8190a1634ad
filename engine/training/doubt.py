"""`midspan train fit`: fits how much a model's sureness is believed, by what its lines would have been worth.

Rests of lines of held-out code are filled, each with what is known of its package. A line that is shown saves its keys
if it is right, and costs a glance and more if it is wrong (engine/protocol/confidence.py). The doubt is the one under
which the shown lines of half of the packages were worth most; the other half says what that figure is worth elsewhere.
"""

import asyncio
import time
from collections.abc import Iterator, Sequence

import attrs
from rich.table import Table

from engine.corpus.corpus import packages
from engine.corpus.languages import MARKUP, File
from engine.errors import ModelError
from engine.evaluation.measure import Workspaces, measure
from engine.evaluation.rows import VERIFY, Row, Task, held_out
from engine.models.left_to_right.model import LeftToRightModel
from engine.protocol.confidence import FEWEST_CHARACTERS, NORMAL

DOUBTS = (1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0)
FEWEST_LINES = 150
"""Of each half, whatever the minutes are: with 48 of each, of which 12 were shown, one wrong line decided."""
_TOGETHER, _BATCH = 4, 24


@attrs.frozen
class Line:
    """A filled rest of a line: how sure the model was, its characters, and whether it is what the author wrote."""

    confidence: float
    characters: int
    right: bool

    @classmethod
    def of(cls, row: Row) -> "Line":
        return cls(row.confidence, len(row.text.partition("\n")[0].strip()), row.first_line)

    def shown(self, doubt: float) -> bool:
        """Return whether an editor with the price `normal` shows the line under a doubt."""
        price = NORMAL.raised(doubt)
        return self.characters >= FEWEST_CHARACTERS and price.worth(self.confidence, self.characters) > 0


@attrs.frozen
class Shown:
    """The lines of a half that are shown under a doubt: how many, how many are right, and the keys that they save."""

    lines: int
    right: int
    keys: float

    @classmethod
    def of(cls, lines: Sequence[Line], doubt: float) -> "Shown":
        """Return what lines would have been under a doubt. A wrong one costs what it does without any."""
        shown = [line for line in lines if line.shown(doubt)]
        keys = sum(NORMAL.worth(float(line.right), line.characters) for line in shown)
        return cls(len(shown), sum(line.right for line in shown), keys)


@attrs.frozen
class Fitted:
    """The doubt that was chosen, and for each doubt what was shown of the half that chose it and of the other one."""

    doubt: float
    lines: tuple[int, int]
    table: dict[float, tuple[Shown, Shown]]

    @classmethod
    def of(cls, chosen: Sequence[Line], other: Sequence[Line]) -> "Fitted":
        """Choose a doubt by one half; of equal ones the smallest. Raises ModelError where a half has few lines."""
        if min(len(chosen), len(other)) < FEWEST_LINES:
            raise ModelError(f"{len(chosen)} and {len(other)} lines are too few to fit a doubt; give it more packages")
        table = {doubt: (Shown.of(chosen, doubt), Shown.of(other, doubt)) for doubt in DOUBTS}
        best = max(DOUBTS, key=lambda doubt: table[doubt][0].keys)
        return cls(best, (len(chosen), len(other)), table)


def fit_doubt(model: LeftToRightModel, name: str, files: Sequence[File], minutes: float, count: int = 100) -> Fitted:
    """Fill at most `count` holes of each language in each half of the packages, for so many minutes or longer.

    name: what the model was loaded by. Raises ModelError where there is too little code.
    """
    workspaces = Workspaces.of(model, name, files)
    halves = list(packages(files))[::2], list(packages(files))[1::2]
    batches = [_batches([file for package in half for file in package], count) for half in halves]
    lines: tuple[list[Line], list[Line]] = ([], [])
    deadline = time.monotonic() + 60 * minutes
    while time.monotonic() < deadline or min(map(len, lines)) < FEWEST_LINES:
        # Both halves get as many, so the one with fewer holes ends it.
        tasks = [next(each, []) for each in batches]
        if not all(tasks):
            break
        for half, part in zip(lines, tasks, strict=True):
            named = [attrs.evolve(task, workspace=workspaces.name_of(task.hole.path)) for task in part]
            rows = asyncio.run(measure(model, named, (VERIFY,), _TOGETHER, workspaces.memories))
            half += map(Line.of, rows)
    return Fitted.of(*lines)


def _batches(files: list[File], count: int) -> Iterator[list[Task]]:
    """Yield holes at the ends of lines in batches, in each as many of one language as of another."""
    languages = sorted({file.language for file in files} - MARKUP)
    tasks = [held_out(files, language, "rest of line", count) for language in languages]
    mixed = [each[at] for at in range(count) for each in tasks if at < len(each)]
    for start in range(0, len(mixed), _BATCH):
        yield mixed[start : start + _BATCH]


def doubt_table(fitted: Fitted) -> Table:
    """Return the table of doubts, with the half that chose and the other one side by side."""
    columns = "shown", "right", "keys"
    table = Table("doubt", *columns, *(f"{name}, other half" for name in columns))
    table.title = f"rests of lines: {fitted.lines[0]} of the half that chooses, {fitted.lines[1]} of the other one"
    for doubt, halves in fitted.table.items():
        cells = [cell for half in halves for cell in (str(half.lines), _share(half), f"{half.keys:.0f}")]
        table.add_row(f"{doubt:g}{' *' if doubt == fitted.doubt else ''}", *cells)
    return table


def _share(half: Shown) -> str:
    return f"{half.right / half.lines:.0%}" if half.lines else "-"
