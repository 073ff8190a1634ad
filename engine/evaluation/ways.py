"""The ways of filling that are compared: the commit rules with their numbers of steps."""

import attrs

from engine.job import DEFAULT_RULE, DEFAULT_STEPS
from engine.protocol import RuleName


@attrs.frozen
class Way:
    """A rule with its number of steps; 0 lets it take as many as it needs."""

    rule: RuleName
    steps: int = 0

    @property
    def name(self) -> str:
        if not self.steps:
            return self.rule
        return f"{self.rule}, {self.steps} step{'s' if self.steps > 1 else ''}"


TWIN = Way("left-to-right")
"""The same weights, one token a pass: what every other way is held against."""
VERIFY = Way("verify")
DENOISE = Way("threshold", 4)
DEFAULT = Way(DEFAULT_RULE, DEFAULT_STEPS)
"""What the language server asks for unless its settings say otherwise."""

WAYS = tuple(
    dict.fromkeys((TWIN, VERIFY, Way("threshold", 1), Way("threshold", 2), DENOISE, Way("threshold", 8), DEFAULT))
)
