"""How sure a model is of a stretch of what it wrote; the one measure for the gate and for its evaluation."""

import math

from engine.protocol import Candidate

FEWEST_CHARACTERS = 3
"""A start of a line with fewer characters is not worth the reading and a key: it is not shown, and nobody takes it."""


def confidence_between(candidate: Candidate, start: int, end: int) -> float:
    """Return how likely all tokens that reach into characters `start` to `end` are right: their probabilities' product.

    0.0 when there is none. The mean of the probabilities, which does not fall with length, tells right from wrong worse
    (docs/training.md): a line is right when every token of it is.
    """
    known: list[float] = []
    position = 0
    for token, probability in zip(candidate.tokens, candidate.confidence, strict=False):
        if position < end and position + len(token) > start:
            known.append(probability)
        position += len(token)
    return math.prod(known) if known else 0.0


def line_confidence(candidate: Candidate, start: int, end: int) -> float:
    """Return how likely characters `start` to `end` are right as the whole rest of a line.

    Where nothing but blanks follow them, that the line ends there is one more choice that must be right.
    """
    ended = candidate.end_confidence if not candidate.text[end:].strip() else 1.0
    return confidence_between(candidate, start, end) * ended


def sure_until(candidate: Candidate, start: int, threshold: float) -> int:
    """Return the end of the longest run of tokens from character `start` on whose confidence reaches `threshold`.

    A character of the text, as `start` is; `start` itself where not even the first token is that sure.
    """
    confidence, end, position = 1.0, start, 0
    for token, probability in zip(candidate.tokens, candidate.confidence, strict=False):
        position += len(token)
        if position <= start:
            continue
        confidence *= probability
        if confidence < threshold:
            break
        end = position
    return end
