"""Means over rows: by language, kind and strategy, and by length of the fill; in tables."""

import statistics
from collections.abc import Iterable, Sequence

import attrs
from rich.box import SIMPLE_HEAD
from rich.table import Table

from engine.evaluation.calibration import Judged, calibration_error, gate_for, reliability
from engine.evaluation.rows import TWIN, VERIFY, Row
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


def same_as_twin(rows: Iterable[Row]) -> tuple[int, int]:
    """Return in how many holes draft and verify wrote the text of left to right, and how many there are."""
    texts = {(row.strategy, row.hole): row.text for row in rows}
    verified = [(hole, text) for (strategy, hole), text in texts.items() if strategy == VERIFY.name]
    return sum(text == texts.get((TWIN.name, hole)) for hole, text in verified), len(verified)


_CAPTION_WIDTH = 76


def percent(value: float | None) -> str:
    return "-" if value is None else f"{value:.1%}"


def fill_tables(summaries: Sequence[Summary]) -> list[Table]:
    """Return one table for each language and kind, with one row a strategy; milliseconds only if they were measured."""
    tables = []
    for language, kind in dict.fromkeys((summary.language, summary.kind) for summary in summaries):
        rows = [summary for summary in summaries if (summary.language, summary.kind) == (language, kind)]
        timed, run = any(summary.ms for summary in rows), any(summary.passed is not None for summary in rows)
        headings = ["strategy", "exact", "1st line", "similar", "valid", "tokens", "passes"]
        headings += ["pass@1"] * run + ["ms", "median"] * timed
        table = plain_table(f"{language}, {kind}, {max(summary.holes for summary in rows)} holes", headings)
        for summary in rows:
            cells = [
                summary.strategy,
                percent(summary.exact),
                percent(summary.first_line),
                f"{summary.similarity:.2f}",
                percent(summary.valid),
            ]
            cells += [f"{summary.tokens:.1f}", f"{summary.steps:.1f}"]
            cells += [percent(summary.passed)] * run + [f"{summary.ms:.1f}", f"{summary.median_ms:.1f}"] * timed
            table.add_row(*cells)
        tables.append(table)
    return tables


def calibration_table(judged: Sequence[Judged], title: str) -> Table:
    """Return the share of right fills by confidence; the caption names the gate that the data suggest."""
    table = plain_table(title, ["confidence", "fills", "mean", "right"])
    table.min_width = _CAPTION_WIDTH
    for each in reliability(judged):
        table.add_row(f"{each.low:.1f}-{each.high:.1f}", str(each.count), f"{each.confidence:.2f}", percent(each.right))
    gate = gate_for(judged)
    advice = (
        "no gate makes 60 % of the shown right"
        if gate is None
        else f"a gate of {gate.threshold:.2f} shows {gate.shown:.1%}, and {gate.right:.1%} of that is right"
    )
    table.caption = f"calibration error {calibration_error(judged):.3f}; {advice}"
    return table


def speed_table(speeds: Sequence[Speed]) -> Table:
    """Return milliseconds next to those of left to right, by the length of its answer."""
    table = plain_table(
        "Against left to right, by its tokens", ["tokens", "strategy", "holes", "ms", "twin ms", "speed"]
    )
    for speed in speeds:
        cells = (f"{speed.ms:.1f}", f"{speed.twin_ms:.1f}", f"{speed.speedup:.2f}x")
        table.add_row(speed.bucket, speed.strategy, str(speed.holes), *cells)
    return table


def plain_table(title: str, headings: Sequence[str]) -> Table:
    """Return an empty table; all columns but the first are numbers."""
    table = Table(*headings, title=title, box=SIMPLE_HEAD, title_justify="left", pad_edge=False, padding=(0, 0, 0, 1))
    for column in table.columns:
        column.justify, column.no_wrap = "right", True
    table.columns[0].justify = "left"
    return table
