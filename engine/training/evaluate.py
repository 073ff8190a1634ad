"""The chain's last step: how good the exported model is on the held-out packages."""

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path

import attrs

from engine.corpus import corpus
from engine.errors import MidspanError
from engine.evaluation.calibration import Judged
from engine.evaluation.measure import Row, measure
from engine.evaluation.task import held_out
from engine.evaluation.ways import DEFAULT, WAYS, FillStrategy
from engine.fill.interface import Model

__all__ = ["WAYS", "RowsError", "evaluate", "judged", "read_rows", "write_rows"]


class RowsError(MidspanError):
    """A file that holds no rows of an evaluation."""

    code = "rows"


def evaluate(
    family: Model,
    files: list[corpus.File],
    languages: Sequence[str],
    kinds: Sequence[str],
    count: int,
    ways: Sequence[FillStrategy] = WAYS,
) -> list[Row]:
    """Fill `count` holes of every language and kind in several ways; a language without files has no rows."""
    tasks = [task for language in languages for kind in kinds for task in held_out(files, language, kind, count)]
    return asyncio.run(measure(family, tasks, ways))


def judged(rows: Sequence[Row]) -> list[Judged]:
    """Return confidence and truth of the default rule's fills of the rest of a line: what the gate is set by."""
    chosen = (
        row for row in rows if row.way == DEFAULT.name and row.kind == "rest of line" and row.seen == "both sides"
    )
    return [Judged(row.confidence, row.first_line) for row in chosen]


def write_rows(rows: Sequence[Row], target: Path) -> None:
    """Write rows as JSON lines."""
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text("".join(json.dumps(attrs.asdict(row)) + "\n" for row in rows), "utf-8")


def read_rows(path: Path) -> list[Row]:
    """Return the rows that `write_rows` wrote. Raises RowsError for other rows, such as an older version's."""
    try:
        return [Row(**json.loads(line)) for line in path.read_text("utf-8").splitlines()]
    except (OSError, ValueError, TypeError) as error:
        raise RowsError(
            f"{path} has no rows of this version ({type(error).__name__}); write them anew: midspan train eval --rows"
        ) from None
