"""What followed runs of tokens in known code: the memory's answer."""

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise

import attrs
import numpy as np
from numpy.typing import NDArray

PLACE_BITS = 32
TOKEN_BITS = 21
GROUP_SHIFT = TOKEN_BITS + PLACE_BITS

RUN_LENGTHS = (1, 2, 3, 5, 8, 12)
"""The lengths of the runs of tokens that the memory knows."""
GROUPS_A_ROW = len(RUN_LENGTHS)
"""Groups of a row: group `row * GROUPS_A_ROW + rank` is of the run RUN_LENGTHS[rank]."""
PLACES = (1 << PLACE_BITS) - 1
_TOKENS = (1 << TOKEN_BITS) - 1


@attrs.frozen
class Place:
    """Where a follower was found: the number of its file, and its position among that file's tokens."""

    file: int
    position: int


@attrs.frozen(eq=False)
class Followers:
    """The tokens that followed one run.

    run: the length of the run in tokens, one of RUN_LENGTHS.
    tokens: int64 [n], the different followers, smallest first.
    counts: int64 [n], how often each followed, among the latest occurrences that are looked at.
    places: int64 [n], the latest place of each token, in the numbering of the index.
    """

    run: int
    tokens: NDArray[np.int64]
    counts: NDArray[np.int64]
    places: NDArray[np.int64]
    _locate: Callable[[int], Place] = attrs.field(repr=False)

    @property
    def total(self) -> int:
        """How often any token followed."""
        return int(self.counts.sum())

    @property
    def newest(self) -> int:
        """Index of the token that followed the latest occurrence."""
        return int(self.places.argmax())

    @property
    def likeliest(self) -> int:
        """Index of the most frequent token, and of equally frequent ones the one that followed last."""
        return int(np.lexsort((self.places, self.counts))[-1])

    @property
    def latest(self) -> Place:
        """Where the latest occurrence of the run was followed. Ask before the index changes."""
        return self.latest_of(self.newest)

    def latest_of(self, index: int) -> Place:
        """Return where `tokens[index]` followed the run last. Ask before the index changes."""
        return self._locate(int(self.places[index]))


@attrs.frozen(eq=False)
class FollowerCounts:
    """What followed the last tokens of n rows: an entry for each row, run and follower, sorted by these three.

    groups: int64 [entries], `row * GROUPS_A_ROW + rank`.
    tokens, counts, places: int64 [entries], as in Followers.
    """

    rows: int
    groups: NDArray[np.int64]
    tokens: NDArray[np.int64]
    counts: NDArray[np.int64]
    places: NDArray[np.int64]
    _locate: Callable[[int], Place] = attrs.field(repr=False)

    @classmethod
    def count(cls, codes: NDArray[np.int64], rows: int, locate: Callable[[int], Place]) -> "FollowerCounts":
        """Count occurrences, each a number (group << GROUP_SHIFT) | (follower << PLACE_BITS) | place.

        codes: int64 [n], any order, overwritten.
        """
        codes.sort()
        names = codes >> PLACE_BITS  # of row, run and follower
        (changes,) = (names[1:] != names[:-1]).nonzero()
        bounds = np.empty(len(changes) + 2, np.int64)
        bounds[0], bounds[1:-1], bounds[-1] = 0, changes + 1, len(codes)
        if not len(codes):
            bounds = bounds[:1]
        newest = codes[bounds[1:] - 1]
        tokens, counts = (newest >> PLACE_BITS) & _TOKENS, bounds[1:] - bounds[:-1]
        return cls(rows, newest >> GROUP_SHIFT, tokens, counts, newest & PLACES, locate)

    @classmethod
    def nothing(cls, rows: int) -> "FollowerCounts":
        """Return the counts of rows without followers."""
        return cls.count(np.zeros(0, np.int64), rows, _locate_nothing)

    @classmethod
    def of_words(cls, words: Iterable[tuple[int, NDArray[np.int64], NDArray[np.int64]]], rows: int) -> "FollowerCounts":
        """Return counts without real places. words: a group, its tokens, smallest first, and their counts."""
        groups, tokens, counts = [], [], []
        for group, named, occurred in sorted(words, key=lambda each: each[0]):
            (known,) = occurred.nonzero()
            groups.append(np.full(len(known), group))
            tokens.append(named[known])
            counts.append(occurred[known])
        if not groups:
            return cls.nothing(rows)
        flat = np.concatenate(tokens)
        # Of tokens that are equally frequent the one with the larger place is taken, so no two places are equal.
        places = np.arange(len(flat))
        return cls(rows, np.concatenate(groups), flat, np.concatenate(counts), places, _locate_nothing)

    @classmethod
    def joined(cls, parts: Sequence["FollowerCounts"]) -> "FollowerCounts":
        """Return the rows of all parts, of one index, one after the other."""
        firsts = np.cumsum([0, *(part.rows for part in parts)]).tolist()
        return cls(
            rows=firsts[-1],
            groups=np.concatenate(
                [part.groups + GROUPS_A_ROW * first for part, first in zip(parts, firsts, strict=False)]
            ),
            tokens=np.concatenate([part.tokens for part in parts]),
            counts=np.concatenate([part.counts for part in parts]),
            places=np.concatenate([part.places for part in parts]),
            locate=parts[0]._locate,
        )

    def row(self, row: int) -> list[Followers]:
        """Return what followed each run of a row, the longest run last."""
        bounds = self.groups.searchsorted(range(row * GROUPS_A_ROW, (row + 1) * GROUPS_A_ROW + 1)).tolist()
        parts = [(run, slice(first, stop)) for run, (first, stop) in zip(RUN_LENGTHS, pairwise(bounds), strict=True)]
        return [
            Followers(run, self.tokens[part], self.counts[part], self.places[part], self._locate)
            for run, part in parts
            if part.start < part.stop
        ]

    def only(self, row: int, tokens: NDArray[np.int64]) -> "FollowerCounts":
        """Return these counts without those followers of a row that are not among `tokens`."""
        kept = (self.groups // GROUPS_A_ROW != row) | np.isin(self.tokens, tokens)
        return attrs.evolve(
            self, groups=self.groups[kept], tokens=self.tokens[kept], counts=self.counts[kept], places=self.places[kept]
        )


def _locate_nothing(place: int) -> Place:
    raise ValueError(f"there is no place {place}; no row has followers")
