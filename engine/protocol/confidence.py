"""How likely a stretch of a fill is right. The gate, its evaluation and the engine's early end use this one measure.

The measure is the product of the tokens' probabilities. Their mean, which does not fall with length, separates right
from wrong lines worse (docs/training.md): a line is right only when every token of it is.
"""

import math

from engine.protocol.messages import Candidate

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


class GrowingLine:
    """The confidence in the first line of a fill that is still being written, token by token."""

    def __init__(self) -> None:
        self.confidence = 1.0
        self._begun = False
        self._ended = False

    def add(self, text: str, probability: float, breaks_line: bool) -> float:
        """Count one more token and return the confidence so far.

        `text` is the token's text, and `breaks_line` says that it contains a newline. White space before the line and
        the tokens from its newline on do not count.
        """
        if self._begun and breaks_line:
            self._ended = True
        self._begun = self._begun or bool(text.strip())
        if self._begun and not self._ended:
            self.confidence *= probability
        return self.confidence
