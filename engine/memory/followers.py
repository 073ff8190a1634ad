"""What followed a run of tokens in known code: the memory's answer for one run and for one row."""

from bisect import bisect_right
from collections.abc import Callable

import attrs
import numpy as np
from numpy.typing import NDArray

PLACE_BITS = 32
TOKEN_BITS = 21

RUNS = (1, 2, 3, 5, 8, 12)
"""The lengths of the runs of tokens that the memory knows."""
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

    run: the length of the run in tokens, one of RUNS.
    tokens: int64 [n], the different followers, smallest first.
    counts: int64 [n], how often each followed, among the latest occurrences that are looked at.
    total: the sum of the counts.
    top: index of the most frequent token; of several the one seen last.
    newest: index of the token that followed the latest occurrence.
    places: int64 [n], the latest place of each token, in the numbering of the index.
    """

    run: int
    tokens: NDArray[np.int64]
    counts: NDArray[np.int64]
    total: int
    top: int
    newest: int
    places: NDArray[np.int64]
    _locate: Callable[[int], Place] = attrs.field(repr=False)

    @property
    def latest(self) -> Place:
        """Where the latest occurrence of the run was followed. Ask before the index changes."""
        return self.latest_of(self.newest)

    def latest_of(self, index: int) -> Place:
        """Return where `tokens[index]` followed the run last. Ask before the index changes."""
        return self._locate(int(self.places[index]))


def count_followers(codes: NDArray[np.int64], rows: int, locate: Callable[[int], Place]) -> list[list[Followers]]:
    """Count occurrences by row, run and follower. Returns the Followers of each row, longest run last.

    codes: int64 [n], any order: (group << GROUP_SHIFT) | (follower << PLACE_BITS) | place; group `row * len(RUNS) + r`
    is of the run RUNS[r].
    """
    found: list[list[Followers]] = [[] for _ in range(rows)]
    if not len(codes):
        return found
    codes = np.sort(codes)
    names = codes >> PLACE_BITS  # of row, run and follower
    stops = np.append(np.flatnonzero(names[1:] != names[:-1]) + 1, len(codes))
    counts = np.diff(stops, prepend=0)
    names, places = names[stops - 1], codes[stops - 1] & PLACES
    tokens, groups = names & _TOKENS, (names >> TOKEN_BITS).tolist()
    scores = (counts << PLACE_BITS) | places
    first = 0
    while first < len(groups):
        last = bisect_right(groups, groups[first], first)
        row, slot = divmod(groups[first], len(RUNS))
        part = slice(first, last)
        of_part = counts[part]
        found[row].append(
            Followers(
                run=RUNS[slot],
                tokens=tokens[part],
                counts=of_part,
                total=int(of_part.sum()),
                top=int(scores[part].argmax()),
                newest=int(places[part].argmax()),
                places=places[part],
                locate=locate,
            )
        )
        first = last
    return found
