"""A task: a hole, the code around it that the model may see, and how far the fill may go."""

import random
from typing import Literal

import attrs

from engine.corpus.holes import TrainingHole, cut
from engine.corpus.languages import File
from engine.fill.interface import FillStrategy
from engine.protocol.messages import Extent, Fill

Seen = Literal["both sides", "above only"]

PREFIX_CHARACTERS = 6000
SUFFIX_CHARACTERS = 3000
"""The language server sends as much (lsp_server/hole/hole.py)."""
MAX_TOKENS = 64
"""The language server's default."""
_TRIES = 400


@attrs.frozen
class Task:
    """A hole and how to ask for it. `number` distinguishes holes of the same language and kind.

    workspace: what the fill may look up, besides its own file.
    """

    hole: TrainingHole
    number: int
    extent: Extent
    seen: Seen = "both sides"
    max_tokens: int = MAX_TOKENS
    workspace: str = ""

    def fill(self, strategy: FillStrategy) -> Fill:
        """Return the request to the engine, with enough time for every strategy to finish."""
        return Fill(
            id=0,
            prefix=self.hole.prefix[-PREFIX_CHARACTERS:],
            suffix=self.hole.suffix[:SUFFIX_CHARACTERS] if self.seen == "both sides" else "",
            path=self.hole.path,
            language=self.hole.language,
            extent=self.extent,
            rule=strategy.rule,
            steps=strategy.steps,
            max_tokens=self.max_tokens,
            budget_ms=60_000.0,
            workspace=self.workspace,
        )


def extent_of(hole: TrainingHole) -> Extent:
    """Return how far the fill may go: as the language server asks on a blank line, else as far as the middle goes.

    Kinds that are cut inside a line ask for the line. For the others, the extent must not reveal the answer's length.
    """
    is_blank = not hole.prefix.rpartition("\n")[2].strip() and not hole.suffix.partition("\n")[0].strip()
    whole = is_blank and hole.kind not in ("rest of line", "inside")
    return "lines" if whole or "\n" in hole.middle else "line"


def held_out(files: list[File], language: str, kind: str, count: int, seed: int = 11) -> list[Task]:
    """Cut `count` tasks of a language and kind, each from a random file; equal seeds return equal tasks.

    Fewer if the files have no more such holes, none if there is no file of the language.
    """
    chosen = [file for file in files if file.language == language]
    rng = random.Random(f"{seed} {language} {kind}")
    tasks: list[Task] = []
    for _ in range(count * _TRIES if chosen else 0):
        if len(tasks) == count:
            break
        hole = cut(rng.choice(chosen), kind, rng)
        if hole is not None and hole.middle.strip():
            tasks.append(Task(hole, len(tasks), extent_of(hole)))
    return tasks


def without_suffix(tasks: list[Task]) -> list[Task]:
    """Return the tasks that have code after the hole, to be filled without it."""
    return [attrs.evolve(task, seen="above only") for task in tasks if task.hole.suffix.strip()]
