"""A strategy: which rule commits tokens, in how many steps."""

import attrs

from engine.protocol.messages import RuleName


@attrs.frozen
class FillStrategy:
    """A rule with its number of steps. 0 steps takes as many as the budget allows."""

    rule: RuleName
    steps: int = 0

    @property
    def name(self) -> str:
        if not self.steps:
            return self.rule
        return f"{self.rule}, {self.steps} step{'s' if self.steps > 1 else ''}"
