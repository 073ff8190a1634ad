"""How sure a model is of a stretch of what it wrote; the one measure for the gate and for its evaluation."""

import math

from engine.protocol import Candidate


def confidence_between(candidate: Candidate, start: int, end: int) -> float:
    """Return the geometric mean of the probabilities of the tokens that reach into characters `start` to `end`.

    0.0 when there is none, or when one of them was given no probability at all.
    """
    logs: list[float] = []
    position = 0
    for token, probability in zip(candidate.tokens, candidate.confidence, strict=False):
        if position < end and position + len(token) > start:
            if probability <= 0.0:
                return 0.0
            logs.append(math.log(probability))
        position += len(token)
    return math.exp(math.fsum(logs) / len(logs)) if logs else 0.0
