"""The tables of an evaluation, for a terminal."""

from collections.abc import Sequence

from rich.box import SIMPLE_HEAD
from rich.table import Table

from engine.evaluation.calibration import Judged, calibration_error, gate_for, reliability
from engine.evaluation.summary import Speed, SuffixGain, Summary

_CAPTION_WIDTH = 76


def percent(value: float | None) -> str:
    return "-" if value is None else f"{value:.1%}"


def fill_tables(summaries: Sequence[Summary]) -> list[Table]:
    """Return a table a language and kind, a row a way. Milliseconds are left out where holes were filled together."""
    tables = []
    for language, kind in dict.fromkeys((one.language, one.kind) for one in summaries):
        group = [one for one in summaries if (one.language, one.kind) == (language, kind)]
        timed, run = any(one.ms for one in group), any(one.passed is not None for one in group)
        headings = ["way", "exact", "1st line", "similar", "valid", "tokens", "passes"]
        headings += ["pass@1"] * run + ["ms", "median"] * timed
        table = _table(f"{language}, {kind}, {max(one.holes for one in group)} holes", headings)
        for one in group:
            cells = [one.way, percent(one.exact), percent(one.first_line), f"{one.similarity:.2f}", percent(one.valid)]
            cells += [f"{one.tokens:.1f}", f"{one.steps:.1f}"]
            cells += [percent(one.passed)] * run + [f"{one.ms:.1f}", f"{one.median_ms:.1f}"] * timed
            table.add_row(*cells)
        tables.append(table)
    return tables


def calibration_table(judged: Sequence[Judged], title: str) -> Table:
    """Return claimed against right, with the gate that the data ask for below."""
    table = _table(title, ["confidence", "fills", "mean", "right"])
    table.min_width = _CAPTION_WIDTH
    for one in reliability(judged):
        table.add_row(f"{one.low:.1f}-{one.high:.1f}", str(one.count), f"{one.confidence:.2f}", percent(one.right))
    gate = gate_for(judged)
    advice = (
        "no gate makes 60 % of the shown right"
        if gate is None
        else f"a gate of {gate.threshold:.2f} shows {gate.shown:.1%}, and {gate.right:.1%} of that is right"
    )
    table.caption = f"calibration error {calibration_error(judged):.3f}; {advice}"
    return table


def speed_table(speeds: Sequence[Speed]) -> Table:
    """Return milliseconds beside left to right, by length of its answer."""
    table = _table("Against left to right, by its tokens", ["tokens", "way", "holes", "ms", "twin ms", "speed"])
    for one in speeds:
        cells = (f"{one.ms:.1f}", f"{one.twin_ms:.1f}", f"{one.speedup:.2f}x")
        table.add_row(one.bucket, one.way, str(one.holes), *cells)
    return table


def suffix_table(gains: Sequence[SuffixGain]) -> Table:
    """Return exact match with the suffix and without."""
    table = _table("What the code behind the cursor is worth", ["kind", "way", "holes", "with", "without", "ratio"])
    for one in gains:
        ratio = "-" if one.ratio is None else f"{one.ratio:.2f}x"
        table.add_row(one.kind, one.way, str(one.holes), percent(one.exact_with), percent(one.exact_without), ratio)
    return table


def _table(title: str, headings: Sequence[str]) -> Table:
    table = Table(*headings, title=title, box=SIMPLE_HEAD, title_justify="left", pad_edge=False, padding=(0, 0, 0, 1))
    for column in table.columns:
        column.justify, column.no_wrap = "right", True
    table.columns[0].justify = "left"
    return table
