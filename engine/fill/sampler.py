"""From predictions to proposals: one token a row, the most likely one or one that is drawn. NumPy only."""

from collections.abc import Sequence
from typing import get_args

import attrs
import numpy as np
from numpy.typing import NDArray

from engine.protocol.messages import SourceName

NEVER = -1e9
"""The logit of a token that must not come. Finite, so that no product with it is NaN."""


@attrs.frozen(eq=False)
class Query:
    """What a fill asks about the rows of a pass whose predictions it wants.

    top: how many of the most likely tokens.
    entropy: whether the entropy of each row is wanted.
    compatible_tokens: where not empty, the only tokens that the first of these rows may propose.
    named: token ids [rows, n] whose probabilities are wanted, or None.
    """

    top: int = 1
    entropy: bool = False
    compatible_tokens: Sequence[int] = ()
    named: NDArray[np.int64] | None = None


@attrs.frozen(eq=False)
class Predictions:
    """What a model predicts at n rows, as plain arrays.

    tokens: int64 [n, top], the most likely first.
    probabilities: fp32 [n, top], of these tokens.
    entropy: fp32 [n], nats; zeros where it was not asked for.
    named: fp32 [n, m], the probabilities of the tokens that the query named.
    continues: fp32 [n], how likely the next token goes on with the word before it; zeros where the model does not say.
    """

    tokens: NDArray[np.int64]
    probabilities: NDArray[np.float32]
    entropy: NDArray[np.float32]
    named: NDArray[np.float32]
    continues: NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.tokens)

    def part(self, start: int, stop: int) -> "Predictions":
        """Return the predictions of rows `start` up to `stop`."""
        return self._at(slice(start, stop))

    def rows(self, rows: Sequence[int]) -> "Predictions":
        """Return the predictions of some rows."""
        return self._at(list(rows))

    def _at(self, rows: slice | list[int]) -> "Predictions":
        return Predictions(
            self.tokens[rows], self.probabilities[rows], self.entropy[rows], self.named[rows], self.continues[rows]
        )

    def with_rows(self, rows: Sequence[int], other: "Predictions") -> "Predictions":
        """Return these predictions with the tokens of `other`, as many a row, and their probabilities at some rows."""
        tokens, probabilities, index = self.tokens.copy(), self.probabilities.copy(), list(rows)
        tokens[index], probabilities[index] = other.tokens, other.probabilities
        return attrs.evolve(self, tokens=tokens, probabilities=probabilities)

    @staticmethod
    def of_both(first: "Predictions", second: "Predictions") -> "Predictions":
        """Return the rows of both, one after the other. They have the same number of tokens a row."""
        return Predictions(
            np.concatenate((first.tokens, second.tokens)),
            np.concatenate((first.probabilities, second.probabilities)),
            np.concatenate((first.entropy, second.entropy)),
            np.concatenate((first.named, second.named)),
            np.concatenate((first.continues, second.continues)),
        )

    def without(self, token: int) -> "Predictions":
        """Return what is predicted if `token` must not come: each row has one token less.

        Exact for a row that has `token` among its top. Elsewhere the token is no more likely than the last of the top,
        and its small probability stays in the sum.
        """
        kept = np.argsort(self.tokens == token, axis=1, kind="stable")[:, :-1]
        removed = np.where(self.tokens == token, self.probabilities, 0).sum(1)
        left = np.maximum(1 - removed, 1e-9)
        probabilities = np.take_along_axis(self.probabilities, kept, 1) / left[:, None]
        entropy = (self.entropy + removed * np.log(np.maximum(removed, 1e-30))) / left + np.log(left)
        return Predictions(np.take_along_axis(self.tokens, kept, 1), probabilities, entropy, self.named, self.continues)


def continues_word(text: bytes) -> bool:
    """Return whether a token's bytes go on with a word. Bytes of other alphabets count as letters."""
    return bool(text) and (text[:1].isalnum() or text[0] == ord("_") or text[0] >= 128)


def continuing(texts: Sequence[bytes]) -> list[int]:
    """Return which of many texts go on with a word. Their first byte tells."""
    first = {byte for byte in range(256) if continues_word(bytes([byte]))}
    return [place for place, text in enumerate(texts) if text and text[0] in first]


def keep_only(logits: NDArray[np.float32], tokens: Sequence[int]) -> None:
    """Rule out all tokens of a row but `tokens`. logits: fp32 [vocabulary], changed in place."""
    kept = np.asarray(tokens, np.int64)
    of_kept = logits[kept]
    logits[:] = NEVER
    logits[kept] = of_kept


@attrs.frozen
class PassResult:
    """What a model returns for a pass: predictions of its wanted rows. Some models add to it."""

    predictions: Predictions


SOURCES: tuple[SourceName, ...] = get_args(SourceName)
"""The sources in the order of a mixture's weights."""


@attrs.frozen
class TokenSource:
    """How a committed token came about.

    alone: the probability that the model alone gave it.
    shares: the part of its mixed probability that each of SOURCES gave. They sum to 1.
    """

    alone: float
    shares: tuple[float, ...] = (1.0, 0.0, 0.0)

    @property
    def is_remembered(self) -> bool:
        """Whether the memory gave the larger part."""
        return self.shares[0] < 0.5


@attrs.frozen(eq=False)
class RowSources:
    """The same for the first k rows of a pass. alone: fp32 [k]. shares: fp32 [k, len(SOURCES)]."""

    alone: NDArray[np.float32]
    shares: NDArray[np.float32]

    def each(self) -> list[TokenSource]:
        """Return one TokenSource a row."""
        pairs = zip(self.alone.tolist(), self.shares.tolist(), strict=True)
        return [TokenSource(alone, tuple(shares)) for alone, shares in pairs]


def main_source(sources: Sequence[TokenSource]) -> SourceName:
    """Return the source with the largest share of all tokens together; "model" without tokens."""
    sums = [sum(shares) for shares in zip(*(each.shares for each in sources), strict=True)]
    return SOURCES[sums.index(max(sums))] if sums else "model"


DRAWN_FROM = 64
"""A token is drawn from this many of the most likely ones. The others have next to no probability."""
TEMPERATURE = 0.8
"""For candidates that must be drawn, if a fill names no temperature."""
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
    """Another text than the most likely one: the same tokens up to the last of `tokens`, which is a less likely one.

    probability: that a text begins so.
    """

    tokens: Sequence[int]
    probability: float


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
