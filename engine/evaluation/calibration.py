"""Is a fill as often right as its confidence says, and at which confidence should the gate stand?"""

from collections.abc import Sequence

import attrs

BINS = 10
WANTED = 0.6
"""Share of the shown first lines that should be right."""
FEWEST = 20
"""A share of fewer shown ones than this sets no threshold."""


@attrs.frozen
class Judged:
    """The confidence in a first line, and whether it was right."""

    confidence: float
    right: bool


@attrs.frozen
class Bin:
    """Fills with a confidence from `low` to below `high`: their mean confidence, and the share that is right."""

    low: float
    high: float
    count: int
    confidence: float
    right: float


@attrs.frozen
class Gate:
    """What a gate at `threshold` shows of all, and how much of that is right."""

    threshold: float
    shown: float
    right: float


def reliability(judged: Sequence[Judged], bins: int = BINS) -> list[Bin]:
    """Return the bins of equal width that hold anything, lowest first; a confidence of 1 belongs to the last."""
    groups: dict[int, list[Judged]] = {}
    for one in judged:
        groups.setdefault(min(int(one.confidence * bins), bins - 1), []).append(one)
    return [
        Bin(
            low=number / bins,
            high=(number + 1) / bins,
            count=len(group),
            confidence=sum(one.confidence for one in group) / len(group),
            right=sum(one.right for one in group) / len(group),
        )
        for number, group in sorted(groups.items())
    ]


def calibration_error(judged: Sequence[Judged], bins: int = BINS) -> float:
    """Return the expected calibration error (arXiv 1706.04599): the bins' |right - confidence|, weighted by count."""
    gaps = (one.count * abs(one.right - one.confidence) for one in reliability(judged, bins))
    return round(sum(gaps) / len(judged), 4) if judged else 0.0


def gate_table(judged: Sequence[Judged]) -> list[Gate]:
    """Return what gates at 0.00, 0.05, ... would do, up to the last that shows anything."""
    gates = (_gate(judged, percent / 100) for percent in range(0, 100, 5))
    return [gate for gate in gates if gate.shown]


def gate_for(judged: Sequence[Judged], wanted: float = WANTED, fewest: int = FEWEST) -> Gate | None:
    """Return the lowest gate from which on the shown ones are right often enough, or None when none with enough is.

    The lowest, because it shows the most. `fewest` keeps a few lucky fills from setting it.
    """
    ordered = sorted(judged, key=lambda one: one.confidence, reverse=True)
    right, lowest = 0, None
    for count, one in enumerate(ordered, 1):
        right += one.right
        tied = count < len(ordered) and ordered[count].confidence == one.confidence
        if not tied and count >= fewest and right / count >= wanted:
            lowest = one.confidence
    return None if lowest is None else _gate(judged, lowest)


def _gate(judged: Sequence[Judged], threshold: float) -> Gate:
    shown = [one.right for one in judged if one.confidence >= threshold]
    return Gate(threshold, len(shown) / len(judged), sum(shown) / len(shown)) if shown else Gate(threshold, 0.0, 0.0)
