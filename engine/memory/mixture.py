"""The model's predictions mixed with what followed the same tokens in known code."""

from collections.abc import Sequence

import attrs
import numpy as np
from numpy.typing import NDArray

from engine.fill.predictions import Predictions
from engine.fill.token_source import RowSources
from engine.memory.followers import RUNS, SLOTS, TOKEN_BITS, FollowerCounts
from engine.memory.gate import MemoryGate
from engine.memory.row_memory import OTHER_WORDS, SCOPES, WORD_SCOPE, RowFollowers
from engine.memory.row_statistics import Statistics

MOST_NAMED = 32
"""Followers of a row that are mixed."""
_LEAST = np.float32(1e-30)


@attrs.frozen(eq=False)
class Mixture:
    """The followers of n rows, ready to be mixed with predictions of the same rows.

    Make it before the pass, put `named` into the query, and mix the predictions that come back.

    named: int64 [n, m], the followers with the largest shares, m <= MOST_NAMED.
    shares: fp32 [n, m, SCOPES], the probability that each scope gives them; zeros where `named` is padded.
    """

    named: NDArray[np.int64]
    shares: NDArray[np.float32]
    _statistics: Statistics
    _gate: MemoryGate

    @classmethod
    def of(cls, found: RowFollowers, gate: MemoryGate, most: int = MOST_NAMED) -> "Mixture":
        """Return the mixture of rows. `most`: the most followers of a row that are mixed."""
        counts = found.joined
        statistics = Statistics.of(counts)
        named, shares = _shares(counts, statistics, gate.run_weights(statistics), most)
        return cls(named, shares, statistics, gate)

    def weights(self, predictions: Predictions) -> NDArray[np.float32]:
        """Return the weights of the model and of each scope, fp32 [n, 1 + SCOPES]. predictions: as for `mix`."""
        if not self.named.size:
            return np.eye(1, 1 + SCOPES, dtype=np.float32).repeat(len(self.named), 0)
        tops, present = self._statistics.tops, self._statistics.present
        of_tops = (predictions.named[:, :, None] * (self.named[:, :, None] == tops[:, None])).max(1)
        features = self._statistics.features(predictions.tokens[:, 0], predictions.probabilities[:, 0], of_tops)
        return self._gate.weights(features, present)

    def mix(self, predictions: Predictions, weights: NDArray[np.float32] | None = None) -> Predictions:
        """Return the predictions of the mixture: as many tokens a row as before, most likely first.

        predictions: of the same rows, with the probabilities of `named`. Entropy stays the model's. A row without
        followers does not change. weights: what `weights` returns for them, if it is known already.
        """
        if not self.named.size:
            return predictions
        if weights is None:
            weights = self.weights(predictions)
        remembered = weights[:, :1] * predictions.named + (self.shares * weights[:, None, 1:]).sum(-1)
        remembered = np.where(self.shares.any(-1), remembered, -1)
        again = (predictions.tokens[:, :, None] == np.where(remembered >= 0, self.named, -1)[:, None]).any(-1)
        own = np.where(again, -1, weights[:, :1] * predictions.probabilities)
        tokens = np.concatenate((predictions.tokens, self.named), 1)
        probabilities = np.concatenate((own, remembered), 1, dtype=np.float32)
        order = np.argsort(-probabilities, axis=1, kind="stable")[:, : predictions.tokens.shape[1]]
        return attrs.evolve(
            predictions,
            tokens=np.take_along_axis(tokens, order, 1),
            probabilities=np.take_along_axis(probabilities, order, 1),
        )

    def sources(self, predictions: Predictions, weights: NDArray[np.float32], tokens: Sequence[int]) -> RowSources:
        """Return where tokens come from that the mixture of the first len(tokens) rows has proposed.

        predictions, weights: as for `mix`.
        """
        rows, chosen = len(tokens), np.asarray(tokens, np.int64)[:, None]
        own = ((predictions.tokens[:rows] == chosen) * predictions.probabilities[:rows]).sum(1)
        parts = np.zeros((rows, 1 + SCOPES), np.float32)
        if self.named.size:
            shares = self.shares[:rows]
            here = (self.named[:rows] == chosen) & shares.any(-1)
            own = np.where(here.any(1), (here * predictions.named[:rows]).sum(1), own)
            parts[:, 1:] = weights[:rows, 1:] * (shares * here[:, :, None]).sum(1)
        parts[:, 0] = np.maximum(weights[:rows, 0] * own, _LEAST)
        parts /= parts.sum(1, keepdims=True)
        # Words are of this file where it has any that fit, else of the other files.
        place = np.where(self._statistics.longest[:rows, WORD_SCOPE] > RUNS[OTHER_WORDS], 1, 2)
        parts[np.arange(rows), place] += parts[:, 1 + WORD_SCOPE]
        return RowSources(own, parts[:, : 1 + WORD_SCOPE])


def _shares(
    counts: FollowerCounts, statistics: Statistics, run_weights: NDArray[np.float32], most: int
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Return Mixture.named and Mixture.shares. counts: the scopes joined."""
    number = len(run_weights)
    if not len(counts.groups):
        return np.zeros((number, 0), np.int64), np.zeros((number, 0, SCOPES), np.float32)
    factors = (run_weights / np.maximum(statistics.totals, 1)).swapaxes(0, 1).reshape(-1)
    scope, row = np.divmod(counts.groups // SLOTS, number)
    names, name_of = np.unique((row << TOKEN_BITS) | counts.tokens, return_inverse=True)
    shares = np.bincount(scope * len(names) + name_of, counts.counts * factors[counts.groups], SCOPES * len(names))
    by_scope = shares.astype(np.float32).reshape(SCOPES, -1).T
    row_of, token_of = names >> TOKEN_BITS, names & ((1 << TOKEN_BITS) - 1)
    # The gate asks for the probability of each scope's top, so the tops come first.
    is_top = (statistics.tops[row_of] == token_of[:, None]).any(1)
    order = np.lexsort((-by_scope.sum(1) - 2 * is_top, row_of))
    row_of = row_of[order]
    column = np.arange(len(order)) - row_of.searchsorted(row_of)
    kept = column < most
    row_of, column, order = row_of[kept], column[kept], order[kept]
    shape = (number, int(column.max()) + 1)
    named, kept_shares = np.zeros(shape, np.int64), np.zeros((*shape, SCOPES), np.float32)
    named[row_of, column] = token_of[order]
    kept_shares[row_of, column] = by_scope[order]
    return named, kept_shares
