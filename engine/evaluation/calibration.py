"""Calibration: how often fills of a given confidence are right, and which gate they suggest."""

from collections.abc import Sequence

import attrs

from engine.evaluation.rows import Row
from engine.fill.strategies import DEFAULT

BINS = 10
WANTED = 0.6
"""The share of the shown first lines that should be right."""
FEWEST = 20
"""A gate that shows fewer fills than this is never chosen."""


@attrs.frozen
class Judged:
    """The confidence of a first line, and whether it was right."""

    confidence: float
    right: bool


@attrs.frozen
class Bin:
    """The fills with a confidence from `low` up to, but not including, `high`.

    `confidence` is their mean, `right` the share of them that is right.
    """

    low: float
    high: float
    count: int
    confidence: float
    right: float


@attrs.frozen
class Gate:
    """A gate at the confidence `threshold`: the share of all fills shown, and the share of those that is right."""

    threshold: float
    shown: float
    right: float


def judged_fills(rows: Sequence[Row]) -> list[Judged]:
    """Return the fills of the rest of a line by the default strategy: the gate is set by them."""
    return [
        Judged(row.confidence, row.first_line)
        for row in rows
        if row.strategy == DEFAULT.name and row.kind == "rest of line" and row.seen == "both sides"
    ]


def reliability(judged: Sequence[Judged]) -> list[Bin]:
    """Return the bins of equal width that hold fills, lowest first; a confidence of 1 belongs to the last bin."""
    groups: dict[int, list[Judged]] = {}
    for fill in judged:
        groups.setdefault(min(int(fill.confidence * BINS), BINS - 1), []).append(fill)
    return [
        Bin(
            low=index / BINS,
            high=(index + 1) / BINS,
            count=len(group),
            confidence=sum(fill.confidence for fill in group) / len(group),
            right=sum(fill.right for fill in group) / len(group),
        )
        for index, group in sorted(groups.items())
    ]


def calibration_error(judged: Sequence[Judged]) -> float:
    """Return the expected calibration error (arXiv 1706.04599).

    That is the mean of |right - confidence| over the bins, weighted by count.
    """
    gaps = (each.count * abs(each.right - each.confidence) for each in reliability(judged))
    return round(sum(gaps) / len(judged), 4) if judged else 0.0


def gate_table(judged: Sequence[Judged]) -> list[Gate]:
    """Return the gates at 0.00, 0.05, ... up to the last one that shows a fill."""
    gates = (_gate(judged, percent / 100) for percent in range(0, 100, 5))
    return [gate for gate in gates if gate.shown]


def gate_for(judged: Sequence[Judged], wanted: float = WANTED) -> Gate | None:
    """Return the lowest gate whose shown fills are right often enough, or None if no gate is.

    The lowest one shows the most. FEWEST keeps a few lucky fills from setting the gate.
    """
    ordered = sorted(judged, key=lambda fill: fill.confidence, reverse=True)
    right, threshold = 0, None
    for count, fill in enumerate(ordered, 1):
        right += fill.right
        tied = count < len(ordered) and ordered[count].confidence == fill.confidence
        if not tied and count >= FEWEST and right / count >= wanted:
            threshold = fill.confidence
    return None if threshold is None else _gate(judged, threshold)


def _gate(judged: Sequence[Judged], threshold: float) -> Gate:
    shown = [fill.right for fill in judged if fill.confidence >= threshold]
    return Gate(threshold, len(shown) / len(judged), sum(shown) / len(shown)) if shown else Gate(threshold, 0.0, 0.0)
