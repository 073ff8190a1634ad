"""Means over rows: by language, kind and way, by length of the fill, and with the suffix against without."""

import statistics
from collections.abc import Iterable, Sequence

import attrs

from engine.evaluation.measure import Row
from engine.evaluation.ways import TWIN, VERIFY, FillStrategy

LENGTHS = ((1, 7), (8, 15), (16, 31), (32, 10_000))
"""Tokens of the left-to-right answer, which are its passes: within a bucket a ratio compares like with like."""


@attrs.frozen
class Summary:
    """Means of one way on one language and kind. `valid` and `passed` are None where nothing was parsed or run."""

    way: str
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
    """Return one summary for each language, kind and way, in the order they were run; of holes seen whole only."""
    groups: dict[tuple[str, str, str], list[Row]] = {}
    for row in rows:
        if row.seen == "both sides":
            groups.setdefault((row.language, row.kind, row.way), []).append(row)
    return [
        Summary(
            way=way,
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
        for (language, kind, way), group in groups.items()
    ]


def share(values: Iterable[bool]) -> float:
    """Return the share of True, 0.0 of nothing."""
    known = list(values)
    return round(sum(known) / len(known), 4) if known else 0.0


def _share_of_known(values: Iterable[bool | None]) -> float | None:
    known = [value for value in values if value is not None]
    return share(known) if known else None


@attrs.frozen
class Speed:
    """A way in one bucket of lengths. `speedup` is the twin's milliseconds over this way's, of the same holes."""

    way: str
    bucket: str
    holes: int
    ms: float
    twin_ms: float
    speedup: float


def speeds(rows: Sequence[Row], way: FillStrategy) -> list[Speed]:
    """Return how fast `way` is beside left to right, by length. Holes that the twin leaves empty are in no bucket."""
    twins = {row.hole: row for row in rows if row.way == TWIN.name}
    pairs = [(row, twins[row.hole]) for row in rows if row.way == way.name and row.hole in twins]
    found = []
    for low, high in LENGTHS:
        inside = [(row.ms, twin.ms) for row, twin in pairs if low <= twin.tokens <= high]
        if inside:
            own, others = (statistics.fmean(column) for column in zip(*inside, strict=True))
            bucket = f"{low}-{high}" if high < LENGTHS[-1][1] else f"{low}+"
            speedup = round(others / own, 2) if own else 0.0
            found.append(Speed(way.name, bucket, len(inside), round(own, 2), round(others, 2), speedup))
    return found


def accepted_an_iteration(rows: Iterable[Row]) -> float:
    """Return the tokens that draft and verify commits in a pass, which checks a draft and guesses the next one.

    They are the passes of left to right, which commits one token in each, the end and what is typed already among them.
    """
    steps = dict.fromkeys((TWIN.name, VERIFY.name), 0)
    for row in rows:
        if row.way in steps:
            steps[row.way] += row.steps
    return round(steps[TWIN.name] / steps[VERIFY.name], 3) if steps[VERIFY.name] else 0.0


@attrs.frozen
class SuffixGain:
    """Exact match of the same holes with what stands behind the cursor and without; `ratio` None when both are 0."""

    way: str
    kind: str
    holes: int
    exact_with: float
    exact_without: float
    ratio: float | None


def suffix_gains(rows: Sequence[Row]) -> list[SuffixGain]:
    """Return a gain for each way and kind that was run on the same holes both ways."""
    without = {(row.way, row.hole): row for row in rows if row.seen == "above only"}
    both = {(row.way, row.hole): row for row in rows if row.seen == "both sides"}
    groups: dict[tuple[str, str], list[tuple[Row, Row]]] = {}
    for key, row in without.items():
        if key in both:
            groups.setdefault((row.way, row.kind), []).append((both[key], row))
    gains = []
    for (way, kind), pairs in groups.items():
        seen, blind = share(one.exact for one, _ in pairs), share(other.exact for _, other in pairs)
        ratio = round(seen / blind, 2) if blind else None
        gains.append(SuffixGain(way, kind, len(pairs), seen, blind, ratio))
    return gains
