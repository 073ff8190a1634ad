"""The ways of filling that are compared: the commit rules with their numbers of steps."""

from engine.fill.strategy import Way
from engine.fill.stream_strategies import DEFAULT

__all__ = ["DEFAULT", "DENOISE", "TWIN", "VERIFY", "WAYS", "Way"]

TWIN = Way("left-to-right")
"""The same weights, one token a pass: what every other way is held against."""
VERIFY = Way("verify")
DENOISE = Way("threshold", 4)
WAYS = tuple(
    dict.fromkeys((TWIN, VERIFY, Way("threshold", 1), Way("threshold", 2), DENOISE, Way("threshold", 8), DEFAULT))
)
