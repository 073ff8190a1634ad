"""What a pass costs: timed before anybody asks, after fills that warm the model up, and measured while it serves.

The fills before the first user's spare that one fresh memory, compilers and graphs. The timed passes say how long a
draft pays on this machine."""

import time

from engine.fill.draft_planner import TIMED_ROWS
from engine.fill.stream import StreamModel, StreamPass
from engine.protocol.messages import Fill

_MOST_TIMES = 4.0
"""A pass counts as at most so many times the mean: a stop of the process during one says nothing of the next."""
_COLD = 3
"""Of so many first passes the fastest counts: they touch memory and code for the first time."""


WARM_UP_S = 90.0
"""Seconds after which no further round of the warm-up begins."""
_BUDGET_MS = 5000.0
_GPU_BUDGET_MS = 60_000.0
"""A first pass on a GPU includes compiling and capturing."""
_TIMING_S, _TIMINGS = 1.0, 6
"""Each number of rows is timed so often, or as often as fits into so many seconds. The fastest time counts."""
_LINES, _TOGETHER = (60, 10, 150), (1, 4, 16)
"""On a GPU: lines above the hole, and holes at once, that graphs are captured for."""


class PassTimer:
    """A running mean of milliseconds a pass, by its number of rows rounded up to a power of two."""

    def __init__(self) -> None:
        self._mean: dict[int, float] = {}
        self._recorded: dict[int, int] = {}

    @staticmethod
    def bucket(rows: int) -> int:
        return 1 << max(0, rows - 1).bit_length()

    def record(self, rows: int, milliseconds: float) -> None:
        bucket = self.bucket(rows)
        known = self._mean.get(bucket, milliseconds)
        self._recorded[bucket] = self._recorded.get(bucket, 0) + 1
        if self._recorded[bucket] <= _COLD:
            self._mean[bucket] = min(known, milliseconds)
        else:
            self._mean[bucket] = known + 0.2 * (min(milliseconds, _MOST_TIMES * known) - known)

    def expect(self, rows: int) -> float:
        """Return the milliseconds that a pass of `rows` rows should take; 0.0 while nothing is measured."""
        if not self._mean:
            return 0.0
        bucket = self.bucket(rows)
        nearest = min(self._mean, key=lambda known: abs(known - bucket))
        return self._mean[nearest]

    def table(self) -> dict[str, float]:
        return {str(bucket): round(mean, 3) for bucket, mean in sorted(self._mean.copy().items())}


def warm_up_rounds(device: str) -> list[list[Fill]]:
    """Return rounds of fills that touch all memory a user's first one will, the most common sizes first.

    The fills of a round are to be run together.
    """
    if device != "cuda":
        return [[_fill(60, _BUDGET_MS, candidates=2)]]
    return [[_fill(lines, _GPU_BUDGET_MS, candidates=1)] * together for together in _TOGETHER for lines in _LINES]


def time_passes(model: StreamModel) -> dict[int, float]:
    """Return the milliseconds of passes over one hole, by their number of rows."""
    context = model.new_context()
    read = model.lay_out(_fill(10, _BUDGET_MS, candidates=1)).context
    model.run([model.read(context, read)])
    fastest: dict[int, float] = {}
    end = time.perf_counter() + _TIMING_S
    for number in range(_TIMINGS):
        if number and time.perf_counter() > end:
            break
        for rows in TIMED_ROWS:
            context.truncate(len(read))
            begun = time.perf_counter()
            model.run([StreamPass(context, [model.middle] * rows, [], range(rows))])
            elapsed = (time.perf_counter() - begun) * 1000
            fastest[rows] = min(elapsed, fastest.get(rows, elapsed))
    return fastest


def _fill(lines: int, budget_ms: float, candidates: int) -> Fill:
    line = "    value = compute(value, other)\n"
    return Fill(
        id=0, prefix=line * lines, suffix="\n" + line * 20, budget_ms=budget_ms, max_tokens=16, candidates=candidates
    )
