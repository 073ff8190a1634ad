"""Means over rows: by language, kind and strategy, by length of the fill, and with the suffix against without."""

import statistics
from collections.abc import Iterable, Sequence

import attrs

from engine.evaluation.rows import Row
from engine.evaluation.strategies import TWIN, VERIFY
from engine.fill.interface import FillStrategy

LENGTHS = ((1, 7), (8, 15), (16, 31), (32, 10_000))
"""Tokens of the left-to-right answer, which equal its passes: within a bucket all holes are about as hard."""


@attrs.frozen
class Summary:
    """Means of one strategy on one language and kind. `valid` and `passed` are None if nothing was parsed or run."""

    strategy: str
    language: str
    kind: str
    holes: int
    exact: float
    first_line: float
    similarity: float
    valid: float | None
    passed: float | None
    tokens: float
    steps: float
    ms: float
    median_ms: float


def summarize(rows: Iterable[Row]) -> list[Summary]:
    """Return one summary for each language, kind and strategy, in the order they ran.

    Only holes that were seen from both sides count.
    """
    groups: dict[tuple[str, str, str], list[Row]] = {}
    for row in rows:
        if row.seen == "both sides":
            groups.setdefault((row.language, row.kind, row.strategy), []).append(row)
    return [
        Summary(
            strategy=strategy,
            language=language,
            kind=kind,
            holes=len(group),
            exact=share(row.exact for row in group),
            first_line=share(row.first_line for row in group),
            similarity=round(statistics.fmean(row.similarity for row in group), 4),
            valid=_share_of_known(row.valid for row in group),
            passed=_share_of_known(row.passed for row in group),
            tokens=round(statistics.fmean(row.tokens for row in group), 2),
            steps=round(statistics.fmean(row.steps for row in group), 2),
            ms=round(statistics.fmean(row.ms for row in group), 2),
            median_ms=round(statistics.median(row.ms for row in group), 2),
        )
        for (language, kind, strategy), group in groups.items()
    ]


def share(values: Iterable[bool]) -> float:
    """Return the share of True; 0.0 if there are no values."""
    known = list(values)
    return round(sum(known) / len(known), 4) if known else 0.0


def _share_of_known(values: Iterable[bool | None]) -> float | None:
    known = [value for value in values if value is not None]
    return share(known) if known else None


@attrs.frozen
class Speed:
    """One strategy in one bucket of lengths.

    `speedup` is the twin's milliseconds divided by this strategy's, on the same holes.
    """

    strategy: str
    bucket: str
    holes: int
    ms: float
    twin_ms: float
    speedup: float


def speeds(rows: Sequence[Row], strategy: FillStrategy) -> list[Speed]:
    """Return how fast `strategy` is compared with left to right, by length.

    Holes that the twin leaves empty belong to no bucket.
    """
    twins = {row.hole: row for row in rows if row.strategy == TWIN.name}
    pairs = [(row, twins[row.hole]) for row in rows if row.strategy == strategy.name and row.hole in twins]
    result = []
    for low, high in LENGTHS:
        inside = [(row.ms, twin.ms) for row, twin in pairs if low <= twin.tokens <= high]
        if inside:
            own, others = (statistics.fmean(column) for column in zip(*inside, strict=True))
            bucket = f"{low}-{high}" if high < LENGTHS[-1][1] else f"{low}+"
            speedup = round(others / own, 2) if own else 0.0
            result.append(Speed(strategy.name, bucket, len(inside), round(own, 2), round(others, 2), speedup))
    return result


def accepted_an_iteration(rows: Iterable[Row]) -> float:
    """Return how many tokens draft and verify commits in a pass, on average.

    A pass checks one draft and makes the next one. Left to right commits one token a pass, counting the end and the
    typed piece, so its passes are the tokens.
    """
    steps = dict.fromkeys((TWIN.name, VERIFY.name), 0)
    for row in rows:
        if row.strategy in steps:
            steps[row.strategy] += row.steps
    return round(steps[TWIN.name] / steps[VERIFY.name], 3) if steps[VERIFY.name] else 0.0


@attrs.frozen
class SuffixGain:
    """Exact matches of the same holes with the code after the cursor and without; `ratio` is None if both are 0."""

    strategy: str
    kind: str
    holes: int
    exact_with: float
    exact_without: float
    ratio: float | None


def suffix_gains(rows: Sequence[Row]) -> list[SuffixGain]:
    """Return a gain for each strategy and kind whose holes were filled both with and without their suffix."""
    without = {(row.strategy, row.hole): row for row in rows if row.seen == "above only"}
    both = {(row.strategy, row.hole): row for row in rows if row.seen == "both sides"}
    groups: dict[tuple[str, str], list[tuple[Row, Row]]] = {}
    for key, row in without.items():
        if key in both:
            groups.setdefault((row.strategy, row.kind), []).append((both[key], row))
    gains = []
    for (strategy, kind), pairs in groups.items():
        seen, blind = share(row.exact for row, _ in pairs), share(row.exact for _, row in pairs)
        ratio = round(seen / blind, 2) if blind else None
        gains.append(SuffixGain(strategy, kind, len(pairs), seen, blind, ratio))
    return gains
