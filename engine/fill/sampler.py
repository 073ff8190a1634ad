"""From predictions to proposals: one token a row, the most likely one or one that is drawn. NumPy only."""

from collections.abc import Sequence

import attrs
import numpy as np
from numpy.typing import NDArray

from engine.fill.predictions import Predictions

DRAWN_FROM = 64
"""A token is drawn from this many of the most likely ones. The others have next to no probability."""
TEMPERATURE = 0.8
"""Of candidates that must be drawn where a fill names no temperature."""
_MIX = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))


@attrs.frozen
class Proposal:
    """For n positions: token ids, their probabilities at temperature 1, and entropies in nats; lists of length n.

    Entropies are 0 where the query did not ask for them. continues: see Predictions. others: the next likely tokens of
    each position with their probabilities, or none if the sampler has no `others`.
    """

    tokens: list[int]
    confidence: list[float]
    entropy: list[float]
    continues: list[float]
    others: list[list[tuple[int, float]]] = attrs.field(factory=list)

    def part(self, start: int, stop: int) -> "Proposal":
        """Return the proposals from `start` up to `stop`."""
        part = slice(start, stop)
        return Proposal(
            self.tokens[part], self.confidence[part], self.entropy[part], self.continues[part], self.others[part]
        )


@attrs.frozen
class Branch:
    """Another text than the most likely one: the same tokens up to the last of `tokens`, which is a less likely one."""

    tokens: Sequence[int]


@attrs.frozen
class Sampler:
    """Chooses tokens: the most likely one at temperature 0, else drawn with temperature and top-p from a seed.

    The noise of a draw depends on seed, position and token alone. So equal predictions draw the same token in every
    pass: a draft and its verification agree as far as their predictions do, and no answer depends on what else is in
    the batch.

    others: how many less likely tokens of each position its proposals name. branch: at the position of its last token
    that token is chosen, if it is among the most likely 1 + `others`.
    """

    temperature: float = 0.0
    top_p: float = 1.0
    seed: int = 0
    others: int = 0
    branch: Branch | None = None

    @property
    def top(self) -> int:
        """How many of the most likely tokens it must know of each row."""
        return DRAWN_FROM if self.temperature > 0 else 1 + self.others

    def propose(self, predictions: Predictions, positions: Sequence[int]) -> Proposal:
        """Return one proposal for each row [n] of `predictions`; `positions` [n] are their places in the middle."""
        tokens, probabilities = predictions.tokens, predictions.probabilities
        if self.temperature <= 0:
            chosen = self._likeliest(tokens, positions)
        else:
            chosen = self._draw(tokens, probabilities, np.asarray(positions, np.uint64))
        rows = np.arange(len(tokens))
        return Proposal(
            tokens[rows, chosen].tolist(),
            probabilities[rows, chosen].tolist(),
            predictions.entropy.tolist(),
            predictions.continues.tolist(),
            [
                list(zip(names, shares, strict=True))
                for names, shares in zip(tokens[:, 1:].tolist(), probabilities[:, 1:].tolist(), strict=True)
            ]
            if self.others
            else [],
        )

    def _likeliest(self, tokens: NDArray[np.int64], positions: Sequence[int]) -> NDArray[np.int64]:
        """Return the index [n] of the most likely token in each row, but of the branch's token at its position."""
        chosen = np.zeros(len(tokens), np.int64)
        if self.branch is not None:
            here = np.asarray(positions) == len(self.branch.tokens) - 1
            chosen[here] = (tokens[here] == self.branch.tokens[-1]).argmax(1)
        return chosen

    def _draw(
        self, tokens: NDArray[np.int64], probabilities: NDArray[np.float32], positions: NDArray[np.uint64]
    ) -> NDArray[np.int64]:
        """Return the index [n] of a drawn token in each row. Gumbel-max: the largest of log probability plus noise."""
        scores = np.log(np.maximum(probabilities.astype(np.float64), 1e-30)) / self.temperature
        if self.top_p < 1:
            share = np.exp(scores - scores.max(1, keepdims=True))
            share /= share.sum(1, keepdims=True)
            outside = share.cumsum(1) - share >= self.top_p
            scores[outside] = -np.inf
        noisy = scores + self._noise(positions[:, None], tokens.astype(np.uint64))
        drawn: NDArray[np.int64] = noisy.argmax(1)
        return drawn

    def _noise(self, positions: NDArray[np.uint64], tokens: NDArray[np.uint64]) -> NDArray[np.float64]:
        """Return Gumbel noise [n, top] from a hash (splitmix64) of seed, position and token."""
        seed = np.uint64((self.seed * 0x9E3779B97F4A7C15) & 0xFFFF_FFFF_FFFF_FFFF)
        bits = _mixed(_mixed(seed + positions) ^ tokens)
        uniform = (bits >> np.uint64(11)).astype(np.float64) * 2.0**-53
        noise: NDArray[np.float64] = -np.log(-np.log(np.clip(uniform, 1e-12, 1 - 1e-12)))
        return noise


def _mixed(bits: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the finalizer of splitmix64 of each number (Steele, Lea and Flood, OOPSLA 2014)."""
    bits = bits + np.uint64(0x9E3779B97F4A7C15)
    bits = (bits ^ (bits >> np.uint64(30))) * _MIX[0]
    bits = (bits ^ (bits >> np.uint64(27))) * _MIX[1]
    mixed: NDArray[np.uint64] = bits ^ (bits >> np.uint64(31))
    return mixed
