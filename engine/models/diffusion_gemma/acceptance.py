"""Which positions of a canvas a step accepts; the others are renoised, also ones that were accepted before."""

from functools import cache

import torch
from torch import Tensor

from engine.models.diffusion_gemma.canvas import AcceptRule

SURE = 0.9


@cache
def by_entropy(bound: float) -> AcceptRule:
    """Accept the most decided positions as long as the entropies of those before each add up to at most `bound` nats.

    That bounds what accepting them together loses against one by one (EB-Sampler, arXiv 2505.24857). The same bound is
    the same rule: graphs are kept by it.
    """

    def accept(entropy: Tensor, confidence: Tensor) -> Tensor:
        ordered, order = entropy.sort()
        within = ordered.cumsum(-1) - ordered <= bound
        return torch.zeros_like(within).scatter(-1, order, within)

    return accept


def by_threshold(entropy: Tensor, confidence: Tensor) -> Tensor:
    """Accept every position whose likeliest token is at least SURE, and the surest one (arXiv 2505.22618)."""
    return (confidence >= SURE) | (confidence >= confidence.amax(-1, keepdim=True))
