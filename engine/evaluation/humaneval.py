"""HumanEval-Infilling (arXiv 2207.14255): lines are cut out of solutions to problems, and tests judge a fill."""

import gzip
import json
import random
from collections.abc import Sequence
from pathlib import Path

import attrs

from engine.corpus.holes import TrainingHole
from engine.errors import MidspanError
from engine.evaluation import sandbox
from engine.evaluation.measure import measure
from engine.evaluation.rows import STRATEGIES, Row, Task
from engine.fill.interface import FillStrategy, Model
from engine.memory.workspace import EngineMemories
from engine.protocol.messages import Extent

_LONG_FILL = 128


class ProblemsError(MidspanError):
    """A file of problems that cannot be read."""

    code = "problems"


@attrs.frozen
class Problem:
    """A solution with whole lines cut out, including their last newline. `name` is SET/PROBLEM."""

    name: str
    prompt: str
    canonical: str
    suffix: str
    test: str
    entry_point: str

    @property
    def set(self) -> str:
        """The part of the benchmark: "SingleLineInfilling" or "MultiLineInfilling"."""
        return self.name.partition("/")[0]

    @property
    def is_single(self) -> bool:
        """Whether exactly one line is missing; then the model is asked for one line."""
        return self.set.startswith("SingleLine")

    def program(self, fill: str) -> str:
        """Return the program to run: the solution with `fill` in its hole, its tests, and the call of the tests."""
        newline = "" if fill.endswith("\n") else "\n"
        check = f"\ncheck({self.entry_point})\n"
        return self.prompt + fill + newline + self.suffix + "\n" + self.test + check

    def passes(self, fill: str) -> bool:
        """Tell whether the tests pass. The canonical solution is known to pass and does not run."""
        return fill.rstrip() == self.canonical.rstrip() or sandbox.run(self.program(fill)) == "passed"


def load(path: Path) -> list[Problem]:
    """Return the problems of a gzipped file of JSON lines.

    Raises ProblemsError for a file that is missing or has other content.
    """
    try:
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            return [_problem(json.loads(line)) for line in lines]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ProblemsError(
            f"{path} has no HumanEval-Infilling problems ({type(error).__name__}); pass one of its .jsonl.gz files"
        ) from None


def draw(problems: Sequence[Problem], single: int, multi: int, seed: int = 11) -> list[Problem]:
    """Return up to `single` one-line problems and `multi` others, in file order; equal seeds draw equal problems."""
    rng = random.Random(seed)
    chosen: list[Problem] = []
    for count, group in (
        (single, [problem for problem in problems if problem.is_single]),
        (multi, [problem for problem in problems if not problem.is_single]),
    ):
        chosen += [group[index] for index in sorted(rng.sample(range(len(group)), min(count, len(group))))]
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
    """Return a problem's hole as a task. The newline at its end stays in the suffix, as under a cursor."""
    extent: Extent = "line" if problem.is_single else "lines"
    middle = problem.canonical.removesuffix("\n")
    hole = TrainingHole(problem.prompt, middle, "\n" + problem.suffix, f"HumanEval {problem.set}", "", "python")
    # A model keeps a quarter of its context free for the fill.
    return Task(hole, number, extent, max_tokens=min(_LONG_FILL, context_tokens // 4))


async def solve(
    model: Model,
    problems: Sequence[Problem],
    strategies: Sequence[FillStrategy] = STRATEGIES,
    together: int = 8,
    memories: EngineMemories | None = None,
) -> list[Row]:
    """Fill every problem once with every strategy and run the tests; the share of `passed` is pass@1.

    Equal fills of a problem run once. memories: what is known of each problem's own text; by default nothing.
    """
    tasks = [task_of(problem, number, model.info.context_tokens) for number, problem in enumerate(problems)]
    verdicts: dict[tuple[int, str], bool] = {}
    rows = []
    for row in await measure(model, tasks, strategies, together, memories):
        key = row.number, row.text
        if key not in verdicts:
            verdicts[key] = problems[row.number].passes(row.text)
        rows.append(attrs.evolve(row, passed=verdicts[key]))
    return rows
