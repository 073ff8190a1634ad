"""Sorted keys in a few generations, merged a slice at a time: a log-structured merge tree (O'Neil et al., 1996).

A file's keys arrive as a generation of their own. Small generations are merged at once. Large ones are merged slice by
slice while further files arrive, so that no file waits for a sort of everything.
"""

from collections.abc import Callable

import attrs
import numpy as np
from numpy.typing import NDArray

Keys = NDArray[np.uint64]
Sieve = Callable[[Keys], Keys]
"""Returns the keys of files that are still known."""

SMALL = 1 << 15
"""Generations are merged at once if together they hold no more keys."""
AT_ONCE = 1 << 17
"""The most keys that are sorted in one step."""
RATIO = 4
"""A generation has at least this many times the keys of the next newer one, once merging has caught up."""
EFFORT = 24
"""Keys merged for each key that arrives, at most."""


@attrs.define(eq=False)
class _Merge:
    """Two neighbouring generations being merged. `merged` holds the result of the slices that are done."""

    older: Keys
    newer: Keys
    merged: Keys
    filled: int = 0
    slices_done: int = 0

    @property
    def slices(self) -> int:
        return 1 + len(self.merged) * 2 // AT_ONCE

    def step(self, sieve: Sieve) -> int:
        """Merge the next slice of all hashes. Return how many keys were read."""
        start, stop = ((1 << 64) * number // self.slices for number in (self.slices_done, self.slices_done + 1))
        last = self.slices_done + 1 == self.slices
        parts = []
        for keys in (self.older, self.newer):
            low = int(keys.searchsorted(np.uint64(start)))
            high = len(keys) if last else int(keys.searchsorted(np.uint64(stop)))
            parts.append(keys[low:high])
        kept = sieve(np.concatenate(parts))
        kept.sort()
        self.merged[self.filled : self.filled + len(kept)] = kept
        self.filled += len(kept)
        self.slices_done += 1
        return sum(map(len, parts))


class Generations:
    """Keys of all files, in sorted arrays of which each is much longer than the next newer one."""

    def __init__(self) -> None:
        self.arrays: list[Keys] = []
        """Oldest first; each sorted."""
        self._merge: _Merge | None = None

    @property
    def bytes(self) -> int:
        """Memory held, in bytes, with the result of the merge under way."""
        merging = 0 if self._merge is None else self._merge.merged.nbytes
        return merging + sum(keys.nbytes for keys in self.arrays)

    def add(self, keys: Keys, sieve: Sieve, room: int) -> None:
        """Add a sorted array, and merge for a while. A merge that needs more than `room` further bytes waits."""
        self.arrays.append(keys)
        while self._newest_are_small():
            newer, older = self.arrays.pop(), self.arrays.pop()
            both = sieve(np.concatenate((older, newer)))
            both.sort()
            self.arrays.append(both)
        effort = max(EFFORT * len(keys), AT_ONCE)
        while effort > 0 and (self._merge is not None or self._start_merge(room)):
            effort -= self._continue_merge(sieve)

    def _newest_are_small(self) -> bool:
        if len(self.arrays) < 2 or len(self.arrays[-1]) + len(self.arrays[-2]) > SMALL:
            return False
        busy = None if self._merge is None else self._merge.newer
        return self.arrays[-2] is not busy

    def _start_merge(self, room: int) -> bool:
        """Start the merge of the newest two neighbours that are too similar in size. Return whether there are any."""
        for index in range(len(self.arrays) - 2, -1, -1):
            older, newer = self.arrays[index : index + 2]
            both = len(older) + len(newer)
            if len(older) < RATIO * len(newer) and both * newer.itemsize <= room:
                self._merge = _Merge(older, newer, np.empty(both, np.uint64))
                return True
        return False

    def _continue_merge(self, sieve: Sieve) -> int:
        merge = self._merge
        if merge is None:
            return 0
        read = merge.step(sieve)
        if merge.slices_done == merge.slices:
            index = next(index for index, keys in enumerate(self.arrays) if keys is merge.older)
            # A copy only where much was dropped: it gives the rest of the array back.
            merged = merge.merged[: merge.filled]
            self.arrays[index : index + 2] = [merged if merge.filled > 0.95 * len(merge.merged) else merged.copy()]
            self._merge = None
        return read

    def abandon_merge(self) -> None:
        """Give the memory of a merge under way back. It starts again when there is room."""
        self._merge = None

    def rewrite(self, change: Sieve) -> None:
        """Replace each array by `change` of it, which stays sorted. A merge under way starts again."""
        self.abandon_merge()
        for index, keys in enumerate(self.arrays):
            self.arrays[index] = change(keys)
        self.arrays = [keys for keys in self.arrays if len(keys)]
