"""What the gate looks at: numbers about the followers of each row, and what the model thinks of them."""

from collections.abc import Sequence

import attrs
import numpy as np
from numpy.typing import NDArray

from engine.memory.followers import RUNS, Followers
from engine.memory.row_memory import SCOPES, RowFollowers

FEATURES = 3 + SCOPES * (9 + 2 * len(RUNS)) + 1
"""Numbers for each row."""
_SLOT = {run: slot for slot, run in enumerate(RUNS)}
_LEAST = 1e-6

Floats = NDArray[np.float32]


@attrs.frozen(eq=False)
class Statistics:
    """Counts for n rows, two scopes (this file, the other files) and the runs of RUNS; zeros where a run is not known.

    totals, kinds, top_counts: fp32 [n, 2, 6]: occurrences, different followers, and occurrences of the scope's top.
    tops: int64 [n, 2], the most frequent follower of the longest run; -1 without followers.
    newest: bool [n, 2], whether that is also the follower of the latest occurrence.
    longest: fp32 [n, 2], the length of the longest run.
    """

    totals: Floats
    kinds: Floats
    top_counts: Floats
    tops: NDArray[np.int64]
    newest: NDArray[np.bool_]
    longest: Floats

    @property
    def present(self) -> NDArray[np.bool_]:
        """Which scopes have followers, [n, 2]."""
        return self.tops >= 0

    @classmethod
    def of(cls, rows: Sequence[RowFollowers]) -> "Statistics":
        """Return the statistics of rows."""
        shape = (len(rows), SCOPES, len(RUNS))
        totals, kinds, top_counts = (np.zeros(shape, np.float32) for _ in range(3))
        tops, newest = np.full(shape[:2], -1), np.zeros(shape[:2], np.bool_)
        longest = np.zeros(shape[:2], np.float32)
        for number, row in enumerate(rows):
            for scope, runs in enumerate(row.scopes):
                if not runs:
                    continue
                last = runs[-1]
                top = int(last.tokens[last.top])
                tops[number, scope], newest[number, scope] = top, last.top == last.newest
                longest[number, scope] = last.run
                for followers in runs:
                    place = number, scope, _SLOT[followers.run]
                    totals[place], kinds[place] = followers.total, len(followers.tokens)
                    top_counts[place] = count_of(followers, top)
        return cls(totals, kinds, top_counts, tops, newest, longest)

    def features(self, first: NDArray[np.int64], highest: Floats, of_tops: Floats) -> Floats:
        """Return the gate's input [n, FEATURES].

        first: the model's most likely token of each row. highest: its probability.
        of_tops: fp32 [n, 2], the model's probabilities of `tops`; anything where there is none.
        """
        here = self.present
        totals = np.take_along_axis(self.totals, _last_slot(self.totals), 2)[:, :, 0]
        kinds = np.take_along_axis(self.kinds, _last_slot(self.totals), 2)[:, :, 0]
        tops = np.take_along_axis(self.top_counts, _last_slot(self.totals), 2)[:, :, 0]
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
        same = here.all(1) & (self.tops[:, 0] == self.tops[:, 1])
        parts = [model, *scopes, (np.log2(self.totals + 1) / 3).reshape(len(first), -1)]
        parts += [shares.reshape(len(first), -1), same[:, None]]
        return np.concatenate(parts, axis=1, dtype=np.float32)


def count_of(followers: Followers, token: int) -> int:
    """Return how often `token` followed."""
    index = int(followers.tokens.searchsorted(token))
    return int(followers.counts[index]) if index < len(followers.tokens) and followers.tokens[index] == token else 0


def _last_slot(totals: Floats) -> NDArray[np.int64]:
    """Return the index of the longest run that occurs, [n, 2, 1]; 0 where none does."""
    last: NDArray[np.int64] = (np.arange(1, len(RUNS) + 1) * (totals > 0)).max(2, keepdims=True) - 1
    return np.maximum(last, 0)
