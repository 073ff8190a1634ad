"""Fills that are run before anybody asks, so that no user's first fill pays for fresh memory, compilers or graphs."""

from engine.protocol.messages import Fill

WARM_UP_S = 90.0
"""Seconds after which no further round of the warm-up begins."""
_BUDGET_MS = 5000.0
_GPU_BUDGET_MS = 60_000.0
"""A first pass on a GPU includes compiling and capturing."""
_LINES, _TOGETHER = (60, 10, 150), (1, 4, 16)
"""On a GPU: lines above the hole, and holes at once, that graphs are captured for."""


def warm_up_rounds(device: str) -> list[list[Fill]]:
    """Return rounds of fills that touch all memory a user's first one will, the most common sizes first.

    The fills of a round are to be run together.
    """
    if device != "cuda":
        return [[_fill(60, _BUDGET_MS, candidates=2)]]
    return [[_fill(lines, _GPU_BUDGET_MS, candidates=1)] * together for together in _TOGETHER for lines in _LINES]


def _fill(lines: int, budget_ms: float, candidates: int) -> Fill:
    line = "    value = compute(value, other)\n"
    return Fill(
        id=0, prefix=line * lines, suffix="\n" + line * 20, budget_ms=budget_ms, max_tokens=16, candidates=candidates
    )
