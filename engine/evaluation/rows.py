"""Tasks of an evaluation, and rows: one task filled with one strategy, compared with the author's code.

A task is a hole, the code around it that the model may see, and how far the fill may go. The syntax check asks: does
the file with the fill have more errors than with the author's code? The grammars are the project's own dependencies.
The language server's table of them must not be imported here, and the check needs nothing of a language but its
grammar.
"""

import functools
import importlib
import json
import random
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import attrs
import tree_sitter

from engine.corpus.holes import TrainingHole, cut
from engine.corpus.languages import File
from engine.errors import MidspanError
from engine.fill.interface import FillStrategy, Model
from engine.fill.strategies import DEFAULT
from engine.protocol.confidence import first_line_confidence
from engine.protocol.messages import DENOISING_RULES, Extent, Fill, Filled, Finish

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
            choose_from=strategy.choose_from,
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


TWIN = FillStrategy("left-to-right")
"""The same weights, one token a pass: every other strategy is compared with it."""
VERIFY = FillStrategy("verify")
DENOISE = FillStrategy("threshold", 4)
STRATEGIES = tuple(
    dict.fromkeys(
        (
            TWIN,
            VERIFY,
            FillStrategy("threshold", 1),
            FillStrategy("threshold", 2),
            DENOISE,
            FillStrategy("threshold", 8),
            DEFAULT,
        )
    )
)


def strategies_of(model: Model, strategies: Sequence[FillStrategy] = STRATEGIES) -> tuple[FillStrategy, ...]:
    """Return those of the strategies that a model has: one without a canvas does not denoise."""
    return tuple(each for each in strategies if model.info.canvas_tokens or each.rule not in DENOISING_RULES)


_FUNCTIONS = {"typescript": "language_typescript", "tsx": "language_tsx", "php": "language_php"}
_MODULES = {"tsx": "typescript", "csharp": "c_sharp", "shell": "bash"}
_SECONDS = 1.0
_READ_BYTES = 16384


@functools.cache
def _parser(language: str) -> tree_sitter.Parser | None:
    try:
        module = importlib.import_module(f"tree_sitter_{_MODULES.get(language, language)}")
        return tree_sitter.Parser(tree_sitter.Language(getattr(module, _FUNCTIONS.get(language, "language"))()))
    except (ImportError, AttributeError, ValueError):
        return None


class Reference:
    """A hole's file as its author wrote it, parsed once; all fills of the hole are compared with it."""

    def __init__(self, hole: TrainingHole) -> None:
        self._parser = _parser("tsx" if hole.path.endswith(".tsx") else hole.language)
        self._before, self._after = hole.prefix.encode(), hole.suffix.encode()
        self._middle = hole.middle.encode()
        self._tree = self._parse(self._middle, None)
        self._errors = _errors(self._tree.root_node) if self._tree is not None else 0

    def allows(self, fill: str) -> bool | None:
        """Tell whether the file with `fill` has no more errors; None without a grammar or if parsing takes too long.

        An error is an outermost ERROR node or a MISSING token, as in the language server.
        """
        if self._tree is None:
            return None
        middle = fill.encode("utf-8", "replace")
        start = len(self._before)
        edited = self._tree.copy()
        edited.edit(
            start,
            start + len(self._middle),
            start + len(middle),
            _point(self._before),
            _point(self._before + self._middle),
            _point(self._before + middle),
        )
        tree = self._parse(middle, edited)
        return None if tree is None else _errors(tree.root_node) <= self._errors

    def _parse(self, middle: bytes, edited: tree_sitter.Tree | None) -> tree_sitter.Tree | None:
        """Parse with a deadline: on some broken texts a grammar's error recovery never ends."""
        if self._parser is None:
            return None
        source, deadline = self._before + middle + self._after, time.perf_counter() + _SECONDS

        def read(byte: int, _: tree_sitter.Point) -> bytes:
            return source[byte : byte + _READ_BYTES]

        def give_up(_: int, __: bool) -> bool:
            return time.perf_counter() > deadline

        try:
            if edited is None:
                return self._parser.parse(read, progress_callback=give_up)
            return self._parser.parse(read, edited, progress_callback=give_up)
        except ValueError:
            self._parser.reset()
            return None


def _point(before: bytes) -> tree_sitter.Point:
    return tree_sitter.Point(before.count(b"\n"), len(before) - before.rfind(b"\n") - 1)


def _errors(root: tree_sitter.Node) -> int:
    count = 0
    pending = [root] if root.has_error else []
    while pending:
        node = pending.pop()
        if node.is_error or node.is_missing:
            count += 1
        else:
            pending.extend(child for child in node.children if child.has_error or child.is_missing)
    return count


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
        confidence=round(first_line_confidence(answer, answer.text), 4),
        tokens=len(answer.tokens),
        steps=filled.steps,
        ms=round(filled.ms.encode + filled.ms.denoise, 3) if timed else 0.0,
        finish=answer.finish,
        text=answer.text,
    )


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
