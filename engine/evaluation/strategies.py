"""The fill strategies that an evaluation compares: commit rules with their numbers of steps."""

from engine.fill.interface import FillStrategy
from engine.fill.strategies import DEFAULT

__all__ = ["DEFAULT", "DENOISE", "STRATEGIES", "TWIN", "VERIFY", "FillStrategy"]

TWIN = FillStrategy("left-to-right")
"""The same weights, one token a pass: every other strategy is compared with it."""
VERIFY = FillStrategy("verify")
DENOISE = FillStrategy("threshold", 4)
STRATEGIES = tuple(
    dict.fromkeys(
        (
            TWIN,
            VERIFY,
            FillStrategy("threshold", 1),
            FillStrategy("threshold", 2),
            DENOISE,
            FillStrategy("threshold", 8),
            DEFAULT,
        )
    )
)
