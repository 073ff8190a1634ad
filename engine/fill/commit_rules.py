"""Rules that choose which masked positions a denoising step commits.

A rule is given the proposals of positions still masked and how many of them it must commit at the least.
"""

import math
from collections.abc import Callable

from engine.fill.sampler import Proposal

CommitRule = Callable[[Proposal, int], list[int]]


def min_commits(masked: int, steps_left: int) -> int:
    """Return how many positions must be committed now for all to be by the last step."""
    return math.ceil(masked / max(1, steps_left))


def by_threshold(proposal: Proposal, least: int, threshold: float = 0.9) -> list[int]:
    """Commit every proposal at least `threshold` sure (Fast-dLLM, arXiv 2505.22618), and the `least` surest."""
    order = sorted(range(len(proposal.tokens)), key=lambda at: -proposal.confidence[at])
    return [at for rank, at in enumerate(order) if rank < least or proposal.confidence[at] >= threshold]


def by_entropy(proposal: Proposal, least: int, bound: float = 0.3) -> list[int]:
    """Commit the most decided proposals, `least` of them or as long as their entropies add up to at most `bound` nats.

    That sum bounds what committing them together loses against one by one (EB-Sampler, arXiv 2505.24857).
    """
    order = sorted(range(len(proposal.tokens)), key=lambda at: proposal.entropy[at])
    spent, chosen = 0.0, []
    for rank, at in enumerate(order):
        spent += proposal.entropy[at]
        if rank >= least and spent > bound:
            break
        chosen.append(at)
    return chosen
