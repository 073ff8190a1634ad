"""The model's predictions mixed with what followed the same tokens in known code, in one fill's own terms."""

from collections.abc import Iterator, Sequence

import attrs
import numpy as np
from numpy.typing import NDArray

from engine.fill.sampler import Predictions, RowSources
from engine.memory.followers import GROUPS_A_ROW, RUN_LENGTHS, TOKEN_BITS, FollowerCounts
from engine.memory.mixing_network import MixingNetwork, Statistics
from engine.memory.row_memory import OTHER_WORDS, SCOPES, WORD_SCOPE, RowFollowers, RowMemory

MOST_NAMED = 32
"""Followers of a row that are mixed."""
LEAST_RUN = 3
"""Tokens. A shorter run says too little about how its occurrence goes on."""
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
    _mixing: MixingNetwork
    _continuing: NDArray[np.float32]

    @classmethod
    def of(
        cls,
        found: RowFollowers,
        mixing: MixingNetwork,
        most: int = MOST_NAMED,
        continuing: NDArray[np.float32] | None = None,
    ) -> "Mixture":
        """Return the mixture of rows.

        most: the most followers of a row that are mixed. continuing: fp32 [vocabulary], 1 for tokens that go on with a
        word, for Predictions.continues; by default no token does.
        """
        counts = found.joined
        statistics = Statistics.of(counts)
        named, shares = _shares(counts, statistics, mixing.run_weights(statistics), most)
        goes_on = np.zeros(named.shape, np.float32) if continuing is None else continuing[named]
        return cls(named, shares, statistics, mixing, goes_on)

    def weights(self, predictions: Predictions) -> NDArray[np.float32]:
        """Return the weights of the model and of each scope, fp32 [n, 1 + SCOPES]. predictions: as for `mix`."""
        if not self.named.size:
            return np.eye(1, 1 + SCOPES, dtype=np.float32).repeat(len(self.named), 0)
        tops, present = self._statistics.tops, self._statistics.present
        of_tops = (predictions.named[:, :, None] * (self.named[:, :, None] == tops[:, None])).max(1)
        features = self._statistics.features(predictions.tokens[:, 0], predictions.probabilities[:, 0], of_tops)
        return self._mixing.weights(features, present)

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
            continues=weights[:, 0] * predictions.continues
            + (self.shares * self._continuing[:, :, None] * weights[:, None, 1:]).sum((1, 2)),
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
        place = np.where(self._statistics.longest[:rows, WORD_SCOPE] > RUN_LENGTHS[OTHER_WORDS], 1, 2)
        parts[np.arange(rows), place] += parts[:, 1 + WORD_SCOPE]
        return RowSources(own, parts[:, : 1 + WORD_SCOPE])


class MixedMemory:
    """The memory as one fill uses it. Implements fill.interface.FillMemory.

    In a hole of one line, a token that breaks the line, or that follows the cursor already, ends the fill as the
    model's end token does. So such followers count as the end token: otherwise the end of a line would be two tokens
    with half of the probability each, and within a line the memory would go on with what follows the cursor.

    ends: bool [vocabulary], True for these tokens; None for a hole of several lines. continuing: fp32 [vocabulary],
    see Mixture.of.
    """

    def __init__(
        self,
        memory: RowMemory,
        mixing: MixingNetwork,
        ends: NDArray[np.bool_] | None,
        end: int,
        continuing: NDArray[np.float32] | None = None,
    ) -> None:
        self._memory, self._mixing, self._ends, self._end = memory, mixing, ends, end
        self._continuing = continuing

    def rows(self, histories: Sequence[Sequence[int]], compatible: Sequence[int]) -> Mixture:
        found = self._memory.followers_of_rows(histories, compatible)
        return Mixture.of(self._with_end(found, int(len(compatible) > 0)), self._mixing, continuing=self._continuing)

    def followers(self, history: Sequence[int], compatible: Sequence[int] = ()) -> RowFollowers:
        """Return what the memory knows of the next token, without the model. compatible: see rows."""
        found = self._memory.followers_of_rows([history], compatible)
        return self._with_end(found, int(len(compatible) > 0))

    def continuation(
        self, history: Sequence[int], most: int, compatible: Sequence[int] = ()
    ) -> Iterator[tuple[int, float]]:
        """Yield the most frequent followers one by one, while the longest run has LEAST_RUN tokens or more."""
        written = list(history)
        for number in range(most):
            found = self.followers(written, () if number else compatible)
            best = found.longest_run(0)
            if best is None or best.run < LEAST_RUN:
                break
            index = best.likeliest
            token = int(best.tokens[index])
            yield token, float(best.counts[index] / best.total)
            if token == self._end:
                break
            written.append(token)

    def _with_end(self, found: RowFollowers, typed_rows: int) -> RowFollowers:
        """Return followers with the end token in place of those that end the fill.

        typed_rows: how many of the first rows write typed text, which is never a line's end.
        """
        if self._ends is None:
            return found
        ends = self._ends
        return RowFollowers(
            *(
                self._ended(counts, ends[counts.tokens] & (counts.groups >= typed_rows * GROUPS_A_ROW))
                for counts in found.scopes
            )
        )

    def _ended(self, counts: FollowerCounts, ends: NDArray[np.bool_]) -> FollowerCounts:
        return renamed(counts, np.where(ends, self._end, counts.tokens)) if ends.any() else counts


def renamed(counts: FollowerCounts, tokens: NDArray[np.int64]) -> FollowerCounts:
    """Return followers under other tokens [entries]. Those of a run that get the same token are counted together."""
    order = np.lexsort((tokens, counts.groups))
    groups, tokens = counts.groups[order], tokens[order]
    firsts = np.flatnonzero(np.append(True, (groups[1:] != groups[:-1]) | (tokens[1:] != tokens[:-1])))
    return attrs.evolve(
        counts,
        groups=groups[firsts],
        tokens=tokens[firsts],
        counts=np.add.reduceat(counts.counts[order], firsts),
        places=np.maximum.reduceat(counts.places[order], firsts),
    )


def _shares(
    counts: FollowerCounts, statistics: Statistics, run_weights: NDArray[np.float32], most: int
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Return Mixture.named and Mixture.shares. counts: the scopes joined."""
    number = len(run_weights)
    if not len(counts.groups):
        return np.zeros((number, 0), np.int64), np.zeros((number, 0, SCOPES), np.float32)
    factors = (run_weights / np.maximum(statistics.totals, 1)).swapaxes(0, 1).reshape(-1)
    scope, row = np.divmod(counts.groups // GROUPS_A_ROW, number)
    names, name_of = np.unique((row << TOKEN_BITS) | counts.tokens, return_inverse=True)
    shares = np.bincount(scope * len(names) + name_of, counts.counts * factors[counts.groups], SCOPES * len(names))
    by_scope = shares.astype(np.float32).reshape(SCOPES, -1).T
    row_of, token_of = names >> TOKEN_BITS, names & ((1 << TOKEN_BITS) - 1)
    # The mixing network asks for the probability of each scope's top, so the tops come first.
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
