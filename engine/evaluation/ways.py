"""The ways of filling that are compared: the commit rules with their numbers of steps."""

from engine.fill.strategy import FillStrategy
from engine.fill.stream_strategies import DEFAULT

__all__ = ["DEFAULT", "DENOISE", "TWIN", "VERIFY", "WAYS", "FillStrategy"]

TWIN = FillStrategy("left-to-right")
"""The same weights, one token a pass: what every other way is held against."""
VERIFY = FillStrategy("verify")
DENOISE = FillStrategy("threshold", 4)
WAYS = tuple(
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
