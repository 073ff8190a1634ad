"""How sure a model is of a stretch of what it wrote; the one measure for the gate and for its evaluation."""

import math

from engine.protocol import Candidate


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
