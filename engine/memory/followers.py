"""What followed a run of tokens in known code: the memory's answer for one run and for one row."""

from bisect import bisect_right
from collections.abc import Callable

import attrs
import numpy as np
from numpy.typing import NDArray

PLACE_BITS = 32
TOKEN_BITS = 21
GROUP_SHIFT = TOKEN_BITS + PLACE_BITS

RUNS = (1, 2, 3, 5, 8, 12)
"""The lengths of the runs of tokens that the memory knows."""
PLACES = (1 << PLACE_BITS) - 1
_TOKENS = (1 << TOKEN_BITS) - 1


@attrs.frozen
class Place:
    """Where a follower was found: the number of its file, and its position among that file's tokens."""

    file: int
    position: int


@attrs.define(eq=False)
class Followers:
    """The tokens that followed one run. Not to be changed; a frozen class would take longer to make.

    run: the length of the run in tokens, one of RUNS.
    tokens: int64 [n], the different followers, smallest first.
    counts: int64 [n], how often each followed, among the latest occurrences that are looked at.
    total: the sum of the counts.
    places: int64 [n], the latest place of each token, in the numbering of the index.
    """

    run: int
    tokens: NDArray[np.int64]
    counts: NDArray[np.int64]
    total: int
    places: NDArray[np.int64]
    _locate: Callable[[int], Place] = attrs.field(repr=False)

    @property
    def top(self) -> int:
        """Index of the most frequent token; of several the one seen last."""
        return int(((self.counts << PLACE_BITS) | self.places).argmax())

    @property
    def newest(self) -> int:
        """Index of the token that followed the latest occurrence."""
        return int(self.places.argmax())

    @property
    def latest(self) -> Place:
        """Where the latest occurrence of the run was followed. Ask before the index changes."""
        return self.latest_of(self.newest)

    def latest_of(self, index: int) -> Place:
        """Return where `tokens[index]` followed the run last. Ask before the index changes."""
        return self._locate(int(self.places[index]))


def count_followers(codes: NDArray[np.int64], rows: int, locate: Callable[[int], Place]) -> list[list[Followers]]:
    """Count occurrences by row, run and follower. Returns the Followers of each row, longest run last.

    codes: int64 [n], any order, overwritten: (group << GROUP_SHIFT) | (follower << PLACE_BITS) | place. Group
    `row * len(RUNS) + r` is of the run RUNS[r].
    """
    found: list[list[Followers]] = [[] for _ in range(rows)]
    if not len(codes):
        return found
    codes.sort()
    names = codes >> PLACE_BITS  # of row, run and follower
    (changes,) = (names[1:] != names[:-1]).nonzero()
    bounds = np.empty(len(changes) + 2, np.int64)
    bounds[0], bounds[1:-1], bounds[-1] = 0, changes + 1, len(codes)
    counts = bounds[1:] - bounds[:-1]
    newest = codes[bounds[1:] - 1]
    tokens, places = (newest >> PLACE_BITS) & _TOKENS, newest & PLACES
    groups = (newest >> GROUP_SHIFT).tolist()
    first = 0
    while first < len(groups):
        group = groups[first]
        last = bisect_right(groups, group, first)
        total = int(bounds[last]) - int(bounds[first])
        part = slice(first, last)
        runs = found[group // len(RUNS)]
        runs.append(Followers(RUNS[group % len(RUNS)], tokens[part], counts[part], total, places[part], locate))
        first = last
    return found
