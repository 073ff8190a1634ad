"""When to stay silent: a suggestion is shown only if the model believes in it."""

from engine.confidence import confidence_between
from engine.protocol import Candidate


def believes(candidate: Candidate, shown_text: str, threshold: float) -> bool:
    """Return whether the confidence in what is shown of `candidate` reaches `threshold`, between 0 and 1."""
    return confidence_of(candidate, shown_text) >= threshold


def confidence_of(candidate: Candidate, shown_text: str) -> float:
    """Return how likely the first shown line is right, by the tokens that it was made of.

    The first line is what the user reads first and takes or leaves; a doubtful fifth line should not hide a good first.
    Tokens that were cut off when shaping do not count. 0.0 when there is nothing to judge by.
    """
    line = shown_text.lstrip().split("\n", 1)[0].rstrip()
    start = candidate.text.find(line) if line else -1
    if start < 0:
        start, line = 0, candidate.text
    return confidence_between(candidate, start, start + len(line))
