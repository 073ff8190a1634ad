"""How likely a stretch of a fill is right, and what it is worth to show it.

The gate, its evaluation and the engine's early end use this one measure: the product of the tokens' probabilities.
Their mean, which does not fall with length, separates right from wrong lines worse: a line is right only when every
token of it is. The worth is counted in keys: what a text saves, minus what it costs to show it.
"""

import math
import re
from itertools import accumulate

import attrs

from engine.protocol.messages import Candidate

GLANCE = 2.0
"""Keys. To read a suggestion costs as much, whether it is right or wrong."""
WRONG = 5.0
"""Keys. A wrong suggestion costs as much besides: to notice it, and to find back to one's own thought."""
NAME_GLANCE = 1.0
"""Keys. The rest of a name that is begun is read as one with it, and who began it has it in mind."""


@attrs.frozen
class Price:
    """What it costs to show a suggestion, in keys: `glance` for each one, `wrong` for a wrong one.

    A text less likely right than `least` is worth nothing at any length; None if its worth alone decides. To glance at
    the rest of a name that is begun costs `name`, if that is less. A name may end too early if what is shown of it is
    at least as likely right as `part`; None if its end has to be as sure as the rest.
    """

    wrong: float = WRONG
    glance: float = GLANCE
    least: float | None = None
    name: float = NAME_GLANCE
    part: float | None = None

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

    def of_name(self) -> "Price":
        """Return the price of the rest of a name that is begun."""
        return attrs.evolve(self, glance=min(self.glance, self.name))

    def raised(self, factor: float) -> "Price":
        """Return the price with a wrong text `factor` times as dear.

        A text reaches the raised `least` if one that is `factor` times as long, equally sure, reached it before. So 0
        and 1 stay as they are.
        """
        least = None if self.least is None else self.least ** (1 / factor)
        return attrs.evolve(self, wrong=self.wrong * factor, least=least)


NORMAL = Price(wrong=20.0, glance=2.0)
"""What editors ask unless the user says otherwise; docs/suggestions.md says how it was chosen."""
FREE = Price(wrong=0.0, glance=0.0, least=0.0)


FEWEST_CHARACTERS = 3
"""The shortest start of a line that is shown. A shorter one costs more to read and accept than to type."""


def confidence_between(candidate: Candidate, start: int, end: int) -> float:
    """Return the product of the probabilities of all tokens that reach into characters `start` to `end`.

    Returns 0.0 when there is no such token.
    """
    probabilities: list[float] = []
    position = 0
    for token, probability in zip(candidate.tokens, candidate.confidence, strict=False):
        if position < end and position + len(token) > start:
            probabilities.append(probability)
        position += len(token)
    return math.prod(probabilities) if probabilities else 0.0


def start_confidence(candidate: Candidate, start: int, end: int) -> float:
    """Return how likely characters `start` to `end` are right as a start of a line that does not end inside a word.

    Where they end with a word and a token, the word's end is one more prediction that must be right.
    """
    confidence = confidence_between(candidate, start, end)
    if candidate.continues and re.match(r"\w", candidate.text[end - 1 : end]):
        bounds = accumulate(map(len, candidate.tokens))
        token = next((index for index, bound in enumerate(bounds, 1) if bound == end), None)
        if token is not None:
            confidence *= 1 - candidate.continues[token]
    return confidence


def line_confidence(candidate: Candidate, start: int, end: int) -> float:
    """Return how likely characters `start` to `end` are right as the whole rest of a line.

    When only white space follows them, the end of the fill is one more prediction that must be right.
    """
    end_confidence = candidate.end_confidence if not candidate.text[end:].strip() else 1.0
    return confidence_between(candidate, start, end) * end_confidence


def first_line_confidence(candidate: Candidate, shown_text: str) -> float:
    """Return how likely the first line of `shown_text` is right, by the tokens of `candidate` that it came from.

    The user reads the first line first and then takes or leaves the whole: a doubtful fifth line should not hide a good
    first one. Tokens that shaping removed do not count. When the candidate does not contain the line, all its tokens
    count. Returns 0.0 for a candidate without tokens.
    """
    line = shown_text.lstrip().split("\n", 1)[0].rstrip()
    start = candidate.text.find(line) if line else -1
    if start < 0:
        start, line = 0, candidate.text
    return line_confidence(candidate, start, start + len(line))
