"""How good a model is: exact match and milliseconds on holes of the held-out packages, by rule, language and kind."""

import asyncio
import json
import random
import statistics
from collections import Counter
from pathlib import Path

import attrs

from engine.job import DEFAULT_RULE, DEFAULT_STEPS
from engine.models.base import Family
from engine.protocol import Extent, Fill, Filled, RuleName
from engine.scheduler import Scheduler
from engine.training import corpus
from engine.training.holes import Hole, cut

WINDOW = 6000
"""Characters of code above that the language server sends at the most."""


@attrs.frozen
class Way:
    """A rule with its number of steps; 0 leaves it to the budget."""

    rule: RuleName
    steps: int = 0

    @property
    def name(self) -> str:
        return f"{self.rule}, {self.steps} steps" if self.steps else self.rule


WAYS = (
    Way("left-to-right"),
    Way("verify"),
    Way("threshold"),
    Way("entropy"),
    Way("threshold", 1),
    Way("threshold", 2),
    Way("threshold", 4),
    Way("threshold", 8),
)


@attrs.frozen
class Row:
    """One hole filled in one way."""

    way: str
    language: str
    kind: str
    exact: bool
    similarity: float
    confidence: float
    tokens: int
    steps: int
    ms: float


def holes(files: list[corpus.File], kind: str, count: int, seed: int = 11) -> list[Hole]:
    """Cut `count` holes of a kind, one a file in turn, the same ones for the same seed."""
    rng = random.Random(seed)
    found: list[Hole] = []
    while len(found) < count:
        hole = cut(rng.choice(files), kind, rng)
        if hole is not None and hole.middle.strip():
            found.append(hole)
    return found


def request(hole: Hole, way: Way, suffix: str) -> Fill:
    """Return the fill a language server would ask for, with time enough for every rule to finish."""
    extent: Extent = "lines" if "\n" in hole.middle else "line"
    return Fill(
        id=0,
        prefix=hole.prefix[-WINDOW:],
        suffix=suffix[: WINDOW // 2],
        path=hole.path,
        language=hole.language,
        extent=extent,
        rule=way.rule,
        steps=way.steps,
        budget_ms=60_000.0,
    )


def similarity(first: str, second: str) -> float:
    """Return 1 for equal texts, 0 for texts that share no character (by multiset overlap)."""
    shared = sum((Counter(first) & Counter(second)).values())
    return 2 * shared / (len(first) + len(second)) if first or second else 1.0


def judge(hole: Hole, way: Way, filled: Filled) -> Row:
    """Compare a fill with the code that stood there; white space at its end does not count."""
    answer = filled.candidates[0]
    confidence = statistics.geometric_mean([max(p, 1e-9) for p in answer.confidence]) if answer.confidence else 0.0
    return Row(
        way=way.name,
        language=hole.language,
        kind=hole.kind,
        exact=answer.text.rstrip() == hole.middle.rstrip(),
        similarity=similarity(answer.text, hole.middle),
        confidence=confidence,
        tokens=len(answer.tokens),
        steps=filled.steps,
        ms=filled.ms.encode + filled.ms.denoise,
    )


async def evaluate(family: Family, chosen: list[Hole], ways: tuple[Way, ...] = WAYS) -> list[Row]:
    """Fill every hole in every way, one after the other so that times are a single user's.

    Each hole's context is read before the first way is timed: the times are those of a warm cache, for all ways alike.
    """
    scheduler = Scheduler(family)
    await scheduler.start()
    rows: list[Row] = []
    try:
        for hole in chosen:
            await scheduler.submit(request(hole, Way("threshold", 1), hole.suffix), None).result
            for way in ways:
                filled = await scheduler.submit(request(hole, way, hole.suffix), None).result
                rows.append(judge(hole, way, filled))
    finally:
        await scheduler.stop()
    return rows


@attrs.frozen
class Summary:
    """Means over the rows of one way (and language, and kind)."""

    way: str
    holes: int
    exact: float
    similarity: float
    tokens: float
    steps: float
    ms: float
    median_ms: float


def summarize(rows: list[Row]) -> list[Summary]:
    """Return one summary a way, in the order the ways were run."""
    summaries = []
    for way in dict.fromkeys(row.way for row in rows):
        group = [row for row in rows if row.way == way]
        count = len(group)
        summaries.append(
            Summary(
                way=way,
                holes=count,
                exact=round(sum(row.exact for row in group) / count, 4),
                similarity=round(sum(row.similarity for row in group) / count, 4),
                tokens=round(sum(row.tokens for row in group) / count, 2),
                steps=round(sum(row.steps for row in group) / count, 2),
                ms=round(sum(row.ms for row in group) / count, 2),
                median_ms=round(statistics.median(row.ms for row in group), 2),
            )
        )
    return summaries


def gate_table(rows: list[Row]) -> list[tuple[float, float, float]]:
    """Return, for thresholds of confidence, (threshold, share of holes shown, share of the shown that are exact)."""
    group = [row for row in rows if row.way == Way(DEFAULT_RULE, DEFAULT_STEPS).name]
    table = []
    for percent in range(0, 100, 5):
        shown = [row for row in group if row.confidence >= percent / 100]
        if shown:
            table.append((percent / 100, len(shown) / len(group), sum(row.exact for row in shown) / len(shown)))
    return table


def run(
    family: Family, corpus_folder: Path, language: str, kind: str, count: int, target: Path | None
) -> list[Summary]:
    """Evaluate on `count` held-out holes of one language and kind; write all rows to `target` as JSON lines."""
    files = [file for file in corpus.load(corpus_folder, "held-out") if file.language == language]
    rows = asyncio.run(evaluate(family, holes(files, kind, count)))
    if target is not None:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text("".join(json.dumps(attrs.asdict(row)) + "\n" for row in rows))
    return summarize(rows)
