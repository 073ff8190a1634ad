"""The key figures of the embedded model, one line each, with their targets."""

import statistics
from collections.abc import Sequence

import attrs
from rich.box import SIMPLE_HEAD
from rich.table import Table

from engine.evaluation.keystrokes import Typing
from engine.evaluation.rows import Row
from engine.evaluation.strategies import DEFAULT, DENOISE, TWIN, VERIFY
from engine.evaluation.summary import Summary, accepted_an_iteration, speeds, suffix_gains, summarize

REST_OF_LINE = "rest of line"
TARGETS = {
    "rest of line, exact, python": 0.20,
    "the same, mean of the others": 0.14,
    "HumanEval single line, pass@1": 0.10,
    "keystrokes saved, python": 0.20,
    "right among shown, as far as it goes": 0.60,
    "right among shown whole lines": 0.50,
    "exact, 4 steps less left to right": -0.02,
    "draft and verify, tokens an iteration": 4.0,
    "draft and verify, speed, 8-15 tokens": 1.6,
    "draft and verify, speed, 16-31 tokens": 2.5,
    "draft and verify, speed, 32+ tokens": 4.0,
    "exact, with the suffix less without": 0.06,
}
"""The smallest good value of a figure, for a model trained on a CPU; a figure that is missing here has no target."""


@attrs.frozen
class Figure:
    """A figure and its target; None if it was not measured or has no target."""

    name: str
    value: float | None
    unit: str
    target: float | None = attrs.field(init=False)

    @target.default
    def _(self) -> float | None:
        return TARGETS.get(self.name)

    def text(self, value: float | None) -> str:
        if value is None:
            return "-"
        return f"{value:.1%}" if self.unit == "%" else f"{value:.2f}{self.unit}"


def figures(accuracy: Sequence[Row], timed: Sequence[Row], blind: Sequence[Row], typing: Typing) -> list[Figure]:
    """Return the figures: `accuracy` are all rows, `timed` those with times, `blind` those without their suffix.

    A figure whose name has no strategy is of the default strategy.
    """
    summaries = summarize(accuracy)
    others = sorted({row.language for row in accuracy if row.kind == REST_OF_LINE} - {"python"})
    exact_by_language = [_exact(summaries, language, REST_OF_LINE, DEFAULT.name) for language in others]
    measured = [value for value in exact_by_language if value is not None]
    twin, denoised = (_exact(summaries, "python", REST_OF_LINE, strategy.name) for strategy in (TWIN, DENOISE))
    return [
        Figure("rest of line, exact, python", _exact(summaries, "python", REST_OF_LINE, DEFAULT.name), "%"),
        Figure("the same, mean of the others", statistics.fmean(measured) if measured else None, "%"),
        Figure("HumanEval single line, pass@1", _passed(summaries, "HumanEval SingleLineInfilling"), "%"),
        Figure("HumanEval multi line, pass@1", _passed(summaries, "HumanEval MultiLineInfilling"), "%"),
        Figure("keystrokes saved, python", typing.saved, "%"),
        Figure("right among shown, as far as it goes", typing.right if typing.shown else None, "%"),
        Figure("quiet where that is right", typing.quiet, "%"),
        Figure("right among shown whole lines", typing.whole_of_uncut if typing.uncut else None, "%"),
        Figure("exact, 4 steps less left to right", _gap(denoised, twin), "%"),
        Figure("draft and verify, tokens an iteration", accepted_an_iteration(timed) or None, ""),
        *(
            Figure(f"draft and verify, speed, {speed.bucket} tokens", speed.speedup, "x")
            for speed in speeds(timed, VERIFY)
        ),
        *(Figure(f"4 steps, speed, {speed.bucket} tokens", speed.speedup, "x") for speed in speeds(timed, DENOISE)),
        Figure("exact, with the suffix less without", _suffix(accuracy, blind), "%"),
    ]


def figure_table(rows: Sequence[Figure]) -> Table:
    """Return a table of the figures and their targets."""
    table = Table("figure", "measured", "target", title="Figures", box=SIMPLE_HEAD, title_justify="left")
    for column in table.columns[1:]:
        column.justify = "right"
    for figure in rows:
        table.add_row(figure.name, figure.text(figure.value), figure.text(figure.target))
    return table


def _exact(summaries: Sequence[Summary], language: str, kind: str, strategy: str) -> float | None:
    return next((s.exact for s in summaries if (s.language, s.kind, s.strategy) == (language, kind, strategy)), None)


def _passed(summaries: Sequence[Summary], kind: str) -> float | None:
    return next((s.passed for s in summaries if (s.kind, s.strategy) == (kind, DEFAULT.name)), None)


def _gap(value: float | None, other: float | None) -> float | None:
    return value - other if value is not None and other is not None else None


def _suffix(accuracy: Sequence[Row], blind: Sequence[Row]) -> float | None:
    """Return the difference over all kinds and holes together, by the default strategy."""
    gains = [gain for gain in suffix_gains([*accuracy, *blind]) if gain.strategy == DEFAULT.name]
    holes = sum(gain.holes for gain in gains)
    return sum(gain.holes * (gain.exact_with - gain.exact_without) for gain in gains) / holes if holes else None
