"""The key figures of the embedded model, one line each, with their targets."""

import statistics
from collections.abc import Sequence, Set

import attrs
from rich.box import SIMPLE_HEAD
from rich.table import Table

from benchmarks.quality.suffix import suffix_gains
from benchmarks.quality.typing_tasks import Inserted, Typing
from engine.evaluation.rows import DENOISE, TWIN, VERIFY, Row
from engine.evaluation.summary import Summary, accepted_an_iteration, speeds, summarize
from engine.fill.strategies import DEFAULT

REST_OF_LINE = "rest of line"
OTHERS = ("typescript", "go", "javascript", "rust", "java", "c")
"""Languages that are typed besides Python, as far as the split has them."""
TARGETS = {
    "rest of line, exact, python": 0.42,
    "rest of line, exact, mean of the others": 0.45,
    "HumanEval single line, pass@1": 0.50,
    "HumanEval multi line, pass@1": 0.15,
    "keys saved, python": 0.40,
    "keys saved, mean of the others": 0.50,
    "right among offers, python": 0.85,
    "the whole line among what is right, python": 0.30,
    "characters of a right suggestion, median, python": 12.0,
    "before a word, something shown": 0.30,
    "before a word, right among shown": 0.80,
    "keys saved, python, times word completion": 1.6,
    "draft and verify, tokens an iteration": 2.2,
    "draft and verify, speed, 8-15 tokens": 1.8,
    "draft and verify, speed, 32+ tokens": 3.0,
}
"""The smallest good value of a figure; one that is missing here has no target."""


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


def figures(
    accuracy: Sequence[Row],
    alone: Sequence[Row],
    timed: Sequence[Row],
    blind: Sequence[Row],
    typing: dict[str, dict[str, Typing]],
    inserted: dict[str, Inserted],
    known: Set[tuple[str, str, int]],
) -> list[Figure]:
    """Return the figures. A figure whose name has no strategy is of the default strategy.

    accuracy: all rows. alone: those without the memory. timed: those with times. blind: those without their suffix.
    typing: by language and way to type. inserted: by language. known: the holes whose line another file has.
    """
    summaries, without = summarize(accuracy), summarize(alone)
    twin, denoised = (_exact(summaries, "python", REST_OF_LINE, strategy.name) for strategy in (TWIN, DENOISE))
    in_known = [row for row in accuracy if row.hole in known]
    return [
        Figure("rest of line, exact, python", _exact(summaries, "python", REST_OF_LINE, DEFAULT.name), "%"),
        Figure("rest of line, exact, mean of the others", _others_exact(summaries), "%"),
        Figure("the model alone, python", _exact(without, "python", REST_OF_LINE, DEFAULT.name), "%"),
        Figure("the model alone, mean of the others", _others_exact(without), "%"),
        Figure("HumanEval single line, pass@1", _passed(summaries, "HumanEval SingleLineInfilling"), "%"),
        Figure("the model alone, single line", _passed(without, "HumanEval SingleLineInfilling"), "%"),
        Figure("HumanEval multi line, pass@1", _passed(summaries, "HumanEval MultiLineInfilling"), "%"),
        Figure("the model alone, multi line", _passed(without, "HumanEval MultiLineInfilling"), "%"),
        *_typing_figures(typing),
        *_insertion_figures(list(inserted.values())),
        Figure("exact, 4 steps less left to right", _gap(denoised, twin), "%"),
        Figure("draft and verify, tokens an iteration", accepted_an_iteration(timed) or None, ""),
        Figure("the same where another file has the line", accepted_an_iteration(in_known) or None, ""),
        *(
            Figure(f"draft and verify, speed, {speed.bucket} tokens", speed.speedup, "x")
            for speed in speeds(timed, VERIFY)
        ),
        *(Figure(f"4 steps, speed, {speed.bucket} tokens", speed.speedup, "x") for speed in speeds(timed, DENOISE)),
        Figure("exact, with the suffix less without", _suffix(accuracy, blind), "%"),
    ]


def _typing_figures(typing: dict[str, dict[str, Typing]]) -> list[Figure]:
    """Return the figures of typing with all that is known: the last way of each language."""
    best = {language: list(ways.values())[-1] for language, ways in typing.items()}
    python, others = best["python"], [each for language, each in best.items() if language != "python"]
    words = typing["python"]["word completion"].saved
    return [
        Figure("keys saved, python", python.saved, "%"),
        Figure("keys saved, mean of the others", _mean([each.saved for each in others]), "%"),
        Figure("net keys, python", python.net, "%"),
        Figure("net keys, mean of the others", _mean([each.net for each in others]), "%"),
        Figure("right among shown, python", python.right if python.shown else None, "%"),
        Figure("quiet where that is right, python", python.quiet, "%"),
        Figure("right among shown, mean of the others", _mean([each.right for each in others if each.shown]), "%"),
        Figure(
            "the whole line among what is right, python", python.whole / python.right if python.right else None, "%"
        ),
        Figure("right among offers, python", python.right_offers if python.offers else None, "%"),
        Figure("characters of a right suggestion, median, python", python.length or None, ""),
        Figure("right suggestions under 5 characters, python", python.short if python.length else None, "%"),
        Figure("obvious names shown by their third character, python", python.named if python.names else None, "%"),
        Figure("keys saved, python, times word completion", python.saved / words if words else None, "x"),
    ]


def _insertion_figures(inserted: Sequence[Inserted]) -> list[Figure]:
    """Return the figures of code inserted directly before a word, of all languages together."""
    places, shown, right = (sum(counts) for counts in zip(*([0, 0, 0], *map(attrs.astuple, inserted)), strict=True))
    return [
        Figure("before a word, something shown", shown / places if places else None, "%"),
        Figure("before a word, right among shown", right / shown if shown else None, "%"),
    ]


def typing_table(typing: dict[str, dict[str, Typing]]) -> Table:
    """Return a table of the keys saved while typing, by language and way to type."""
    table = Table("language", "way", *typing_columns(), title="Typing")
    for language, ways in typing.items():
        for way, each in ways.items():
            table.add_row(f"{language}, {each.places} places", way, *typing_cells(each))
    return table


def typing_columns() -> list[str]:
    """Return the names of what typing_cells returns."""
    return [
        "saved",
        "net",
        "shown at",
        "right",
        "right offers",
        "whole among right",
        "length",
        "under 5",
        "quiet",
        "names",
    ]


def typing_cells(typing: Typing) -> list[str]:
    """Return the figures of typing as text."""
    whole = typing.whole / typing.right if typing.right else 0.0
    shares = (typing.saved, typing.net, typing.shown, typing.right, typing.right_offers, whole)
    lengths = [f"{typing.length:g}", f"{typing.short:.1%}"] if typing.length else ["-", "-"]
    rare = [f"{typing.quiet:.1%}" if typing.quiet else "-", f"{typing.named:.1%}" if typing.names else "-"]
    return [*(f"{share:.1%}" for share in shares), *lengths, *rare]


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


def _others_exact(summaries: Sequence[Summary]) -> float | None:
    """Return the mean over the languages besides Python, for the rest of a line."""
    languages = sorted({each.language for each in summaries if each.kind == REST_OF_LINE} - {"python"})
    measured = [_exact(summaries, language, REST_OF_LINE, DEFAULT.name) for language in languages]
    return _mean([value for value in measured if value is not None])


def _mean(values: Sequence[float]) -> float | None:
    return statistics.fmean(values) if values else None


def _passed(summaries: Sequence[Summary], kind: str) -> float | None:
    return next((s.passed for s in summaries if (s.kind, s.strategy) == (kind, DEFAULT.name)), None)


def _gap(value: float | None, other: float | None) -> float | None:
    return value - other if value is not None and other is not None else None


def _suffix(accuracy: Sequence[Row], blind: Sequence[Row]) -> float | None:
    """Return the difference over all kinds and holes together, by the default strategy."""
    gains = [gain for gain in suffix_gains([*accuracy, *blind]) if gain.strategy == DEFAULT.name]
    holes = sum(gain.holes for gain in gains)
    return sum(gain.holes * (gain.exact_with - gain.exact_without) for gain in gains) / holes if holes else None
