"""What the gate looks at: numbers about the followers of each row, and what the model thinks of them."""

from typing import TypeVar

import attrs
import numpy as np
from numpy.typing import NDArray

from engine.memory.followers import PLACE_BITS, RUNS, SLOTS, FollowerCounts
from engine.memory.row_memory import SCOPES

FEATURES = 3 + SCOPES * (9 + 2 * SLOTS) + 1
"""Numbers for each row."""
_LENGTHS = np.array(RUNS)
_ORDER = np.arange(1, SLOTS + 1)
_LEAST = 1e-6

Floats = NDArray[np.float32]
Number = TypeVar("Number", bound=np.generic)


@attrs.frozen(eq=False)
class Statistics:
    """Counts for n rows, the scopes of RowFollowers and the runs of RUNS; zeros where a run is not known.

    totals, kinds, top_counts: fp32 [n, scopes, 6]: occurrences, different followers, occurrences of the scope's top.
    tops: int64 [n, scopes], the most frequent follower of the longest run; -1 without followers.
    newest: bool [n, scopes], whether that is also the follower of the latest occurrence.
    longest: fp32 [n, scopes], the length of the longest run.
    """

    totals: Floats
    kinds: Floats
    top_counts: Floats
    tops: NDArray[np.int64]
    newest: NDArray[np.bool_]
    longest: Floats

    @property
    def present(self) -> NDArray[np.bool_]:
        """Which scopes have followers, [n, scopes]."""
        return self.tops >= 0

    @classmethod
    def of(cls, counts: FollowerCounts) -> "Statistics":
        """Return the statistics of rows whose scopes are joined (RowFollowers.joined)."""
        cells = counts.rows * SLOTS
        totals = np.bincount(counts.groups, counts.counts, minlength=cells).astype(np.float32).reshape(-1, SLOTS)
        kinds = np.bincount(counts.groups, minlength=cells).astype(np.float32).reshape(-1, SLOTS)
        longest = _last_slot(totals)
        tops, newest = _tops(counts, longest)
        lengths = np.where(totals.any(1), _LENGTHS[longest], 0).astype(np.float32)
        return cls(
            totals=_by_scope(totals),
            kinds=_by_scope(kinds),
            top_counts=_by_scope(counts_of(counts, tops)),
            tops=_by_scope(tops),
            newest=_by_scope(newest),
            longest=_by_scope(lengths),
        )

    def features(self, first: NDArray[np.int64], highest: Floats, of_tops: Floats) -> Floats:
        """Return the gate's input [n, FEATURES].

        first: the model's most likely token of each row. highest: its probability.
        of_tops: fp32 [n, scopes], the model's probabilities of `tops`; anything where there is none.
        """
        here = self.present
        longest = _last_slot(self.totals)[:, :, None]
        totals = np.take_along_axis(self.totals, longest, 2)[:, :, 0]
        kinds = np.take_along_axis(self.kinds, longest, 2)[:, :, 0]
        tops = np.take_along_axis(self.top_counts, longest, 2)[:, :, 0]
        shares = self.top_counts / np.maximum(self.totals, 1)
        scopes = [
            here,
            self.longest / 4,
            np.log2(np.maximum(totals, 1)) / 3,
            tops / np.maximum(totals, 1),
            np.log2(np.maximum(kinds, 1)) / 3,
            of_tops * here,
            np.log(np.maximum(of_tops, _LEAST)) / 5 * here,
            self.tops == first[:, None],
            self.newest,
        ]
        model = np.stack(
            (highest, np.log(np.maximum(highest, _LEAST)) / 3, np.log1p(-np.minimum(highest, 0.999)) / 5), 1
        )
        same = here[:, :2].all(1) & (self.tops[:, 0] == self.tops[:, 1])
        parts = [model, *scopes, (np.log2(self.totals + 1) / 3).reshape(len(first), -1)]
        parts += [shares.reshape(len(first), -1), same[:, None]]
        return np.concatenate(parts, axis=1, dtype=np.float32)


def counts_of(counts: FollowerCounts, tokens: NDArray[np.int64]) -> Floats:
    """Return how often a token of each row followed each run, fp32 [n, 6]. tokens: [n]."""
    table = np.zeros(counts.rows * SLOTS, np.float32)
    (same,) = (counts.tokens == tokens[counts.groups // SLOTS]).nonzero()
    table[counts.groups[same]] = counts.counts[same]
    return table.reshape(-1, SLOTS)


def _by_scope(column: NDArray[Number]) -> NDArray[Number]:
    """Return a column [scopes * n, ...] of joined scopes as [n, scopes, ...]."""
    return column.reshape(SCOPES, -1, *column.shape[1:]).swapaxes(0, 1)


def _tops(counts: FollowerCounts, longest: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return for each row the most frequent follower of its longest run, and whether it is the newest as well.

    longest: int64 [n], the slot of the longest run. Of followers that are equally frequent the newer one is taken.
    """
    tops, newest = np.full(counts.rows, -1), np.zeros(counts.rows, np.bool_)
    (entries,) = (counts.groups % SLOTS == longest[counts.groups // SLOTS]).nonzero()
    if not len(entries):
        return tops, newest
    rows, places = counts.groups[entries] // SLOTS, counts.places[entries]
    starts = np.concatenate(([0], (rows[1:] != rows[:-1]).nonzero()[0] + 1))
    scores = (counts.counts[entries] << PLACE_BITS) | places
    best = np.maximum.reduceat(scores, starts)
    tops_of = (scores == best.repeat(np.append(starts[1:], len(rows)) - starts)).nonzero()[0]
    tops[rows[starts]] = counts.tokens[entries[tops_of]]
    newest[rows[starts]] = np.maximum.reduceat(places, starts) == places[tops_of]
    return tops, newest


def _last_slot(totals: Floats) -> NDArray[np.int64]:
    """Return the slot of the longest run that occurs, for totals [..., 6]; 0 where none does."""
    return np.asarray((_ORDER * (totals > 0)).argmax(-1), np.int64)
