"""What a pass proposes for each asked position: a token, how sure the model is of it, and how undecided it is."""

import attrs
import torch
from torch import Tensor

NEVER = -1e9
"""The logit of a token that must not come; finite, so that nothing times it is not a number."""


@attrs.frozen
class Proposal:
    """For n positions: tokens (ids), confidence (the token's probability) and entropy (nats), lists of length n.

    Entropies are 0 where the sampler was not asked for them.
    """

    tokens: list[int]
    confidence: list[float]
    entropy: list[float]

    def part(self, start: int, stop: int) -> "Proposal":
        """Return the proposals from `start` up to `stop`."""
        return Proposal(self.tokens[start:stop], self.confidence[start:stop], self.entropy[start:stop])


class Sampler:
    """How proposals are drawn from logits: greedily, or with temperature and top-p from a seed.

    The noise of a position depends on nothing but the seed and the position, so that the same position draws the same
    token in every pass from equal logits: a draft and its verification agree as far as their logits do, a verified draw
    is exactly the left-to-right draw, and no answer depends on what else is in the batch.
    """

    def __init__(
        self,
        temperature: float = 0.0,
        top_p: float = 1.0,
        seed: int = 0,
        forbidden: tuple[int, ...] = (),
        entropy: bool = False,
    ) -> None:
        self.temperature, self.top_p, self.seed, self._entropy = temperature, top_p, seed, entropy
        self._forbidden = torch.tensor(forbidden, dtype=torch.long)

    @torch.inference_mode()
    def propose(self, logits: Tensor, positions: list[int]) -> Proposal:
        """Return the proposals for logits [n, vocabulary] at n positions of the middle; the logits are used up.

        A vocabulary is long and a step short: nothing is computed over it that the step does not ask for, and all of it
        where the logits are: only tokens, confidences and entropies come back from a GPU.
        """
        self._forbidden = self._forbidden.to(logits.device)
        logits.index_fill_(-1, self._forbidden, NEVER)
        total = logits.logsumexp(-1)
        entropy = [0.0] * len(logits)
        if self._entropy:
            entropy = (total - (logits.softmax(-1) * logits).sum(-1)).tolist()
        if self.temperature <= 0:
            likeliest, tokens = logits.max(-1)
        else:
            tokens = self._perturbed(logits, positions).argmax(-1)
            likeliest = logits.gather(-1, tokens[:, None])[:, 0]
        return Proposal(tokens.tolist(), (likeliest - total).exp().tolist(), entropy)

    def _perturbed(self, logits: Tensor, positions: list[int]) -> Tensor:
        """Gumbel-max: the largest of log-probability plus noise is a draw from the distribution."""
        scores = torch.log_softmax(logits / self.temperature, dim=-1)
        if self.top_p < 1:
            ordered, order = scores.sort(dim=-1, descending=True)
            outside = ordered.exp().cumsum(-1) - ordered.exp() >= self.top_p
            scores = scores.scatter(-1, order, ordered.masked_fill(outside, -torch.inf))
        noise = torch.stack([self._noise(position, scores.shape[-1]) for position in positions])
        return scores + noise.to(scores.device)

    def _noise(self, position: int, vocabulary: int) -> Tensor:
        generator = torch.Generator().manual_seed((self.seed * 1_000_003 + position) & 0x7FFF_FFFF_FFFF_FFFF)
        uniform = torch.rand(vocabulary, generator=generator).clamp_(1e-12, 1 - 1e-7)
        return -(-uniform.log()).log()
