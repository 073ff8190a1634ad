"""Which positions of a canvas a step accepts. All others are renoised, even if an earlier step accepted them."""

from functools import cache

import torch
from torch import Tensor

from engine.models.diffusion_gemma.canvas import AcceptRule

MIN_CONFIDENCE = 0.9


@cache
def by_entropy(bound: float) -> AcceptRule:
    """Accept positions from low to high entropy, while the entropies of those before sum to at most `bound` nats.

    The sum bounds the loss against accepting them one by one (EB-Sampler, arXiv 2505.24857). Cached because captured
    graphs are looked up by their rule: the same bound must be the same object.
    """

    def accept(entropy: Tensor, confidence: Tensor) -> Tensor:
        ordered, order = entropy.sort()
        within = ordered.cumsum(-1) - ordered <= bound
        return torch.zeros_like(within).scatter(-1, order, within)

    return accept


def by_threshold(entropy: Tensor, confidence: Tensor) -> Tensor:
    """Accept positions with at least MIN_CONFIDENCE, and always the most confident one (arXiv 2505.22618)."""
    return (confidence >= MIN_CONFIDENCE) | (confidence >= confidence.amax(-1, keepdim=True))
