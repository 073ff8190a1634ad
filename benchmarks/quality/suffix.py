"""What the code after the cursor is worth: the same holes, filled with it and without."""

from collections.abc import Sequence

import attrs
from rich.table import Table

from engine.evaluation.rows import Row, Task
from engine.evaluation.summary import percent, plain_table, share


def without_suffix(tasks: list[Task]) -> list[Task]:
    """Return the tasks that have code after the hole, to be filled without it."""
    return [attrs.evolve(task, seen="above only") for task in tasks if task.hole.suffix.strip()]


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


def suffix_table(gains: Sequence[SuffixGain]) -> Table:
    """Return exact match with the suffix and without."""
    table = plain_table(
        "What the code after the cursor is worth", ["kind", "strategy", "holes", "with", "without", "ratio"]
    )
    for gain in gains:
        ratio = "-" if gain.ratio is None else f"{gain.ratio:.2f}x"
        table.add_row(
            gain.kind, gain.strategy, str(gain.holes), percent(gain.exact_with), percent(gain.exact_without), ratio
        )
    return table
