"""What an engine does before anybody asks: fills that warm the model up; and while nobody asks: passes that are timed.

The fills spare the first user's fresh memory, compilers and graphs. The timed passes say how long a draft pays on this
machine.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable

from engine.fill.draft_planner import TIMED_ROWS
from engine.fill.stream import StreamModel, StreamPass
from engine.protocol.messages import Fill, Filled

WARM_UP_S = 90.0
"""Seconds after which no further round of the warm-up begins."""
_BUDGET_MS = 5000.0
_GPU_BUDGET_MS = 60_000.0
"""A first pass on a GPU includes compiling and capturing."""
_TIMING_S, _TIMINGS = 0.4, 6
"""Each number of rows is timed so often, or as often as fits into so many seconds. The fastest time counts."""
_FEWEST_SIZES = 4
"""So many numbers of rows are timed in any case."""
_READING_S, _PIECE = 0.1, 32
"""Before the timed passes the context is read for so many seconds, in pieces of so many tokens: a slow model's user
waits meanwhile, and its weights take far longer than its keys."""
_LINES, _TOGETHER = (60, 10, 150), (1, 4, 16)
"""On a GPU: lines above the hole, and holes at once, that graphs are captured for."""


async def warm_up(
    fill: Callable[[Fill], Awaitable[Filled]], device: str, on_stage: Callable[[str], None] | None = None
) -> None:
    """Fill all rounds, one after the other, and name each to `on_stage`. After WARM_UP_S no further one begins."""
    begun, rounds = time.perf_counter(), _rounds(device)
    for number, fills in enumerate(rounds, 1):
        if on_stage is not None:
            on_stage(f"Warming the model up, {number} of {len(rounds)}")
        await asyncio.gather(*(fill(each) for each in fills))
        if time.perf_counter() - begun > WARM_UP_S:
            break


def _rounds(device: str) -> list[list[Fill]]:
    """Return rounds of fills that touch all code and memory a user's first one will, the most common sizes first.

    The fills of a round are to be run together. On a CPU one that reads little is enough.
    """
    if device != "cuda":
        return [[_fill(2, _BUDGET_MS, candidates=2, below=2, most=4)]]
    return [[_fill(lines, _GPU_BUDGET_MS, candidates=1)] * together for together in _TOGETHER for lines in _LINES]


def time_passes(model: StreamModel, is_wanted: Callable[[], bool] = lambda: False) -> bool:
    """Tell a model the milliseconds of passes over one hole, by their number of rows.

    Returns False, and tells nothing, if the model `is_wanted` for something else, which is asked before each pass.
    """
    context = model.new_context()
    read, begun = model.lay_out(_fill(10, _BUDGET_MS, candidates=1)).context, time.perf_counter()
    for start in range(0, len(read), _PIECE):
        if is_wanted():
            return False
        model.run([model.read(context, read[start : start + _PIECE])])
        if time.perf_counter() - begun > _READING_S:
            break
    length = len(context.tokens)
    fastest: dict[int, float] = {}
    end = time.perf_counter() + _TIMING_S
    for number in range(_TIMINGS):
        if number and time.perf_counter() > end:
            break
        for rows in TIMED_ROWS:
            if len(fastest) >= _FEWEST_SIZES and time.perf_counter() > end:
                break  # Wider passes are extrapolated.
            if is_wanted():
                return False
            context.truncate(length)
            begun = time.perf_counter()
            model.run([StreamPass(context, [model.mask] * rows, [], range(rows))])
            elapsed = (time.perf_counter() - begun) * 1000
            fastest[rows] = min(elapsed, fastest.get(rows, elapsed))
    model.drafts.time(fastest)
    return True


def _fill(lines: int, budget_ms: float, candidates: int, below: int = 20, most: int = 16) -> Fill:
    line = "    value = compute(value, other)\n"
    return Fill(
        id=0,
        prefix=line * lines,
        suffix="\n" + line * below,
        budget_ms=budget_ms,
        max_tokens=most,
        candidates=candidates,
        choose_from=1,
    )
