"""HumanEval-Infilling (arXiv 2207.14255): lines cut out of solutions to problems whose tests say if a fill is right."""

import gzip
import json
import random
from collections.abc import Sequence
from pathlib import Path

import attrs

from engine.corpus.holes import TrainingHole
from engine.errors import MidspanError
from engine.evaluation import sandbox
from engine.evaluation.measure import Row, measure
from engine.evaluation.task import Task
from engine.evaluation.ways import WAYS, FillStrategy
from engine.fill.interface import Model
from engine.protocol.messages import Extent

_LONG_FILL = 128


class ProblemsError(MidspanError):
    """A file of problems that cannot be read."""

    code = "problems"


@attrs.frozen
class Problem:
    """A solution with whole lines cut out of it, the last newline among them. `name` is the set's and its own."""

    name: str
    prompt: str
    canonical: str
    suffix: str
    test: str
    entry_point: str

    @property
    def set(self) -> str:
        """The set it belongs to: "SingleLineInfilling", "MultiLineInfilling"."""
        return self.name.partition("/")[0]

    @property
    def is_single(self) -> bool:
        """Whether exactly one line is missing, and the model is told so."""
        return self.set.startswith("SingleLine")

    def program(self, fill: str) -> str:
        """Return what to run: the solution with `fill` in its hole, its tests and their call."""
        newline = "" if fill.endswith("\n") else "\n"
        check = f"\ncheck({self.entry_point})\n"
        return self.prompt + fill + newline + self.suffix + "\n" + self.test + check

    def passes(self, fill: str) -> bool:
        """Tell whether the tests pass. What stood there is known to, and is not run."""
        return fill.rstrip() == self.canonical.rstrip() or sandbox.run(self.program(fill)) == "passed"


def load(path: Path) -> list[Problem]:
    """Return the problems of a gzipped file of JSON lines.

    Raises ProblemsError for a file that is missing or something else.
    """
    try:
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            return [_problem(json.loads(line)) for line in lines]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ProblemsError(
            f"{path} has no HumanEval-Infilling problems ({type(error).__name__}); pass one of its .jsonl.gz files"
        ) from None


def draw(problems: Sequence[Problem], single: int, multi: int, seed: int = 11) -> list[Problem]:
    """Return at most so many problems of one line and of several, in their order; the same ones for the same seed."""
    rng = random.Random(seed)
    chosen: list[Problem] = []
    for count, group in (
        (single, [problem for problem in problems if problem.is_single]),
        (multi, [problem for problem in problems if not problem.is_single]),
    ):
        chosen += [group[at] for at in sorted(rng.sample(range(len(group)), min(count, len(group))))]
    return chosen


def _problem(fields: dict[str, str]) -> Problem:
    return Problem(
        name=fields["task_id"],
        prompt=fields["prompt"],
        canonical=fields["canonical_solution"],
        suffix=fields["suffix"],
        test=fields["test"],
        entry_point=fields["entry_point"],
    )


def task_of(problem: Problem, number: int, context_tokens: int) -> Task:
    """Return the hole of a problem. The newline that ends it stays in the file, as under a cursor."""
    extent: Extent = "line" if problem.is_single else "lines"
    middle = problem.canonical.removesuffix("\n")
    hole = TrainingHole(problem.prompt, middle, "\n" + problem.suffix, f"HumanEval {problem.set}", "", "python")
    # A quarter of the context is what a family keeps free for a fill.
    return Task(hole, number, extent, max_tokens=min(_LONG_FILL, context_tokens // 4))


async def solve(
    family: Model, problems: Sequence[Problem], ways: Sequence[FillStrategy] = WAYS, together: int = 8
) -> list[Row]:
    """Fill every problem once in every way and run the tests; the share of `passed` is pass@1. Equal fills run once."""
    tasks = [task_of(problem, number, family.info.context_tokens) for number, problem in enumerate(problems)]
    known: dict[tuple[int, str], bool] = {}
    rows = []
    for row in await measure(family, tasks, ways, together):
        key = row.number, row.text
        if key not in known:
            known[key] = problems[row.number].passes(row.text)
        rows.append(attrs.evolve(row, passed=known[key]))
    return rows
