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
    """Return one table for each language and kind, with one row a strategy; milliseconds only if they were measured."""
    tables = []
    for language, kind in dict.fromkeys((summary.language, summary.kind) for summary in summaries):
        rows = [summary for summary in summaries if (summary.language, summary.kind) == (language, kind)]
        timed, run = any(summary.ms for summary in rows), any(summary.passed is not None for summary in rows)
        headings = ["strategy", "exact", "1st line", "similar", "valid", "tokens", "passes"]
        headings += ["pass@1"] * run + ["ms", "median"] * timed
        table = _table(f"{language}, {kind}, {max(summary.holes for summary in rows)} holes", headings)
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
    table = _table(title, ["confidence", "fills", "mean", "right"])
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
    table = _table("Against left to right, by its tokens", ["tokens", "strategy", "holes", "ms", "twin ms", "speed"])
    for speed in speeds:
        cells = (f"{speed.ms:.1f}", f"{speed.twin_ms:.1f}", f"{speed.speedup:.2f}x")
        table.add_row(speed.bucket, speed.strategy, str(speed.holes), *cells)
    return table


def suffix_table(gains: Sequence[SuffixGain]) -> Table:
    """Return exact match with the suffix and without."""
    table = _table("What the code after the cursor is worth", ["kind", "strategy", "holes", "with", "without", "ratio"])
    for gain in gains:
        ratio = "-" if gain.ratio is None else f"{gain.ratio:.2f}x"
        table.add_row(
            gain.kind, gain.strategy, str(gain.holes), percent(gain.exact_with), percent(gain.exact_without), ratio
        )
    return table


def _table(title: str, headings: Sequence[str]) -> Table:
    table = Table(*headings, title=title, box=SIMPLE_HEAD, title_justify="left", pad_edge=False, padding=(0, 0, 0, 1))
    for column in table.columns:
        column.justify, column.no_wrap = "right", True
    table.columns[0].justify = "left"
    return table
