"""Rules that choose which masked positions a denoising step commits.

Both rules are given the proposals of the positions still masked and how many steps are left, and commit at the least
their share (`floor`): all that is left in the last step.
"""

import math
from collections.abc import Callable

from engine.sampling.proposal import Proposal

CommitRule = Callable[[Proposal, int], list[int]]


def floor(masked: int, steps_left: int) -> int:
    """Return how many positions must be committed now for all to be by the last step."""
    return math.ceil(masked / max(1, steps_left))


def by_threshold(proposal: Proposal, steps_left: int, threshold: float = 0.9) -> list[int]:
    """Commit every proposal at least `threshold` sure (Fast-dLLM, arXiv 2505.22618), and the surest up to the floor."""
    order = sorted(range(len(proposal.tokens)), key=lambda at: -proposal.confidence[at])
    least = floor(len(order), steps_left)
    return [at for rank, at in enumerate(order) if rank < least or proposal.confidence[at] >= threshold]


def by_entropy(proposal: Proposal, steps_left: int, bound: float = 0.3) -> list[int]:
    """Commit the most decided proposals while their entropies, less the largest, stay within `bound` nats.

    That sum bounds what committing them together loses against one by one (EB-Sampler, arXiv 2505.24857).
    """
    order = sorted(range(len(proposal.tokens)), key=lambda at: proposal.entropy[at])
    least, spent, chosen = floor(len(order), steps_left), 0.0, []
    for rank, at in enumerate(order):
        if rank >= least and spent > bound:
            break
        chosen.append(at)
        spent += proposal.entropy[at]
    return chosen
