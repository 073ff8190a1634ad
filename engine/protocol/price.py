"""What a suggestion is worth, in keys: what it saves, minus what it costs to show it. The evaluation counts so."""

import math

import attrs

GLANCE = 2.0
"""Keys. To read a suggestion costs as much, whether it is right or wrong."""
WRONG = 5.0
"""Keys. A wrong suggestion costs as much besides: to notice it, and to find back to one's own thought."""


@attrs.frozen
class Price:
    """What it costs to show a suggestion, in keys: `glance` for each one, `wrong` for a wrong one.

    A text less likely right than `least` is worth nothing at any length; None if its worth alone decides.
    """

    wrong: float = WRONG
    glance: float = GLANCE
    least: float | None = None

    @property
    def hides_nothing(self) -> bool:
        """Whether showing costs nothing, so that everything is shown."""
        return self == FREE

    def worth(self, probability: float, characters: int) -> float:
        """Return the keys that a text of `characters` saves on average, minus its costs; above 0 it is worth showing.

        The key that takes the text is not saved. Returns -inf for a text that is less likely right than `least`.
        """
        if self.least is not None and probability < self.least:
            return -math.inf
        return probability * (characters - 1) - self.glance - (1 - probability) * self.wrong

    def least_probability(self, characters: int) -> float:
        """Return how likely a text of at most `characters` must be right to be worth showing."""
        worthy = (self.glance + self.wrong) / (characters - 1 + self.wrong)
        return worthy if self.least is None else max(worthy, self.least)

    def raised(self, factor: float) -> "Price":
        """Return the price with a wrong text `factor` times as dear.

        A text reaches the raised `least` if one that is `factor` times as long, equally sure, reached it before. So 0
        and 1 stay as they are.
        """
        least = None if self.least is None else self.least ** (1 / factor)
        return attrs.evolve(self, wrong=self.wrong * factor, least=least)


FREE = Price(wrong=0.0, glance=0.0, least=0.0)
