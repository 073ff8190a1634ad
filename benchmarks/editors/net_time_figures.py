"""The table of benchmarks/editors/net_time.py."""

from collections.abc import Mapping, Sequence

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.table import Table

from benchmarks.editors.net_time_person import Pace, Tally

NONE, WORDS = "no tool", "word completion"
PACE = Pace()
_OTHERS = {
    "0.12 s a key": Pace(key=0.12),
    "0.28 s a key": Pace(key=0.28),
    "wrong 0 s": Pace(lost=0.0),
    "wrong 4 s": Pace(lost=4.0),
}
_COUNTED = ("keys", "glances", "accepted", "wrong", "late")
_DRAWS = 1000
Tallies = Mapping[str, Sequence[Tally]]
"""The tallies of each tool, one for each place."""


def net_time_table(tallies: Tallies, language: str) -> Table:
    """Return a row for each tool."""
    count = len(tallies[NONE])
    headers = ("", "seconds", "net", "keys", "shown", "accepted", "wrong", "late", "least", *_OTHERS)
    table = Table(*headers, title=f"{language}, {count} places of three lines", box=SIMPLE_HEAD, padding=(0, 0))
    for column in table.columns[1:]:
        column.justify = "right"
    least = _least(tallies)
    for name, done in tallies.items():
        total = [sum(getattr(each, field) for each in done) for field in _COUNTED]
        nets = [f"{_net(tallies, name, pace):+.1%}" for pace in (PACE, *_OTHERS.values())]
        seconds = sum(each.seconds(PACE) for each in done)
        table.add_row(name, f"{seconds:.0f}", nets[0], *map(str, total), f"{least[name]:.0%}", *nets[1:])
    return table


def _net(tallies: Tallies, name: str, pace: Pace) -> float:
    """Return how much more time than with no tool this took, as a share of that."""
    alone, used = (sum(each.seconds(pace) for each in tallies[key]) for key in (NONE, name))
    return used / alone - 1 if alone else 0.0


def _least(tallies: Tallies) -> dict[str, float]:
    """Return for each tool the share of draws of the places in which it took the least time."""
    times = np.array([[each.seconds(PACE) for each in done] for done in tallies.values()])
    count = times.shape[1]
    drawn = np.random.default_rng(0).integers(0, max(count, 1), (_DRAWS, count))
    fastest = times[:, drawn].sum(axis=2).argmin(axis=0)
    return {name: float((fastest == number).mean()) for number, name in enumerate(tallies)}
