"""Commit rules: which masked positions a denoising step commits.

A rule gets the proposals of the positions that are still masked, and how many of them it must commit at least.
"""

import math
from collections.abc import Callable

from engine.fill.sampler import Proposal

CommitRule = Callable[[Proposal, int], list[int]]


def min_commits(masked: int, steps_left: int) -> int:
    """Return how many positions must be committed now, so that all are committed after the last step."""
    return math.ceil(masked / max(1, steps_left))


def by_threshold(proposal: Proposal, least: int, threshold: float = 0.9) -> list[int]:
    """Commit every proposal with a confidence of `threshold` or more, and the `least` most confident.

    Fast-dLLM, arXiv 2505.22618.
    """
    order = sorted(range(len(proposal.tokens)), key=lambda index: -proposal.confidence[index])
    return [index for rank, index in enumerate(order) if rank < least or proposal.confidence[index] >= threshold]


def by_entropy(proposal: Proposal, least: int, bound: float = 0.3) -> list[int]:
    """Commit the proposals of lowest entropy: `least` of them, and more while their entropies sum to `bound` nats.

    The sum bounds what committing them together loses against one by one (EB-Sampler, arXiv 2505.24857).
    """
    order = sorted(range(len(proposal.tokens)), key=lambda index: proposal.entropy[index])
    spent, chosen = 0.0, []
    for rank, index in enumerate(order):
        spent += proposal.entropy[index]
        if rank >= least and spent > bound:
            break
        chosen.append(index)
    return chosen
