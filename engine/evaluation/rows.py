"""Rows of an evaluation: one task filled with one strategy, compared with the author's code."""

import json
from collections.abc import Sequence
from pathlib import Path

import attrs

from engine.errors import MidspanError
from engine.evaluation.syntax import Reference
from engine.evaluation.task import Seen, Task
from engine.fill.interface import FillStrategy
from engine.protocol.confidence import line_confidence
from engine.protocol.messages import Candidate, Filled, Finish


class RowsError(MidspanError):
    """A file that holds no rows of an evaluation."""

    code = "rows"


@attrs.frozen
class Row:
    """One task filled with one strategy.

    `exact` and `first_line` say whether the fill and its first line equal the author's code, without white space at the
    end. `similarity` is the edit similarity of both texts. `valid` is None if the fill was not parsed, `passed` is None
    if it was not run. `confidence` is that of the first line. `ms` is the time of a single user with a cached context;
    it is 0 if several holes were filled at the same time.
    """

    strategy: str
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
        """Language, kind and number: equal in all rows of one hole."""
        return self.language, self.kind, self.number


def judge(task: Task, strategy: FillStrategy, filled: Filled, reference: Reference, timed: bool) -> Row:
    """Compare a fill with the author's code."""
    answer, hole = filled.candidates[0], task.hole
    return Row(
        strategy=strategy.name,
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


def first_line_confidence(candidate: Candidate) -> float:
    """Return the product of the token probabilities of the first line; 0.0 for an empty fill.

    The language server's gate (lsp_server/suggest/gate.py) uses the same number, taken from the shaped text.
    """
    lead = len(candidate.text) - len(candidate.text.lstrip())
    stop = lead + len(candidate.text[lead:].partition("\n")[0].rstrip())
    return line_confidence(candidate, lead, stop)


def edit_distance(first: str, second: str) -> int:
    """Return how many characters to insert, delete or replace (Levenshtein). Takes len(first) * len(second) steps."""
    if len(first) < len(second):
        first, second = second, first
    above = list(range(len(second) + 1))
    for row, character in enumerate(first, 1):
        current = [row]
        for column, other in enumerate(second, 1):
            current.append(min(above[column] + 1, current[-1] + 1, above[column - 1] + (character != other)))
        above = current
    return above[-1]


def edit_similarity(first: str, second: str) -> float:
    """Return 1 - edit distance / length of the longer text: 1 for equal texts, 0 if every character differs."""
    longer = max(len(first), len(second))
    return 1 - edit_distance(first, second) / longer if longer else 1.0


def write_rows(rows: Sequence[Row], target: Path) -> None:
    """Write rows as JSON lines."""
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text("".join(json.dumps(attrs.asdict(row)) + "\n" for row in rows), "utf-8")


def read_rows(path: Path) -> list[Row]:
    """Return the rows that `write_rows` wrote. Raises RowsError for a file without rows of this version."""
    try:
        return [Row(**json.loads(line)) for line in path.read_text("utf-8").splitlines()]
    except (OSError, ValueError, TypeError) as error:
        raise RowsError(
            f"{path} has no rows of this version ({type(error).__name__}); write them again: midspan train eval --rows"
        ) from None


def _first_line(text: str) -> str:
    return text.partition("\n")[0].rstrip()
