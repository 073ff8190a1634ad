"""Sorted keys in a few generations, merged a slice at a time: a log-structured merge tree (O'Neil et al., 1996).

A file's keys arrive as a generation of their own. Small generations are merged at once. Large ones are merged slice by
slice while further files arrive, so that no file waits for a sort of everything.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Keys = NDArray[np.uint64]
Sieve = Callable[[Keys], Keys]
"""Returns the keys of files that are still known."""

SMALL = 1 << 15
"""Generations are merged at once if together they hold no more keys."""
AT_ONCE = 1 << 17
"""The keys that are merged in one step, about."""
RATIO = 4
"""A generation has at least this many times the keys of the next newer one, once merging has caught up."""
SETTLED_RATIO = 64
"""The same when nothing else is to be done."""
EFFORT = 24
"""Keys merged for each key that arrives, at most."""


class _Merge:
    """Two neighbouring generations being merged, from the highest keys down.

    Merged keys leave the two arrays. So at each time every key is in one of the three, and little more memory is
    held than before. No view of the arrays may be kept, because they are cut in place.
    """

    def __init__(self, older: Keys, newer: Keys) -> None:
        self.older, self.newer = older, newer
        self._result = np.empty(len(older) + len(newer), np.uint64)
        self._first = len(self._result)
        self._slices = 1 + 2 * len(self._result) // AT_ONCE

    @property
    def merged(self) -> Keys:
        """The keys that are merged already, sorted."""
        return self._result[self._first :]

    @property
    def done(self) -> bool:
        return self._slices == 0

    def step(self, sieve: Sieve) -> int:
        """Merge the next slice of all keys. Return how many keys were read."""
        self._slices -= 1
        start = np.uint64(_evenly(self._slices, 1 + 2 * len(self._result) // AT_ONCE))
        lows = [int(keys.searchsorted(start)) for keys in (self.older, self.newer)]
        both = np.concatenate((self.older[lows[0] :], self.newer[lows[1] :]))
        kept = sieve(both)
        kept.sort()
        self._result[self._first - len(kept) : self._first] = kept
        self._first -= len(kept)
        self.older.resize(lows[0], refcheck=False)
        self.newer.resize(lows[1], refcheck=False)
        return len(both)

    def finished(self) -> Keys:
        """Return all keys as an array of their own."""
        return self._result if self._first == 0 else self.merged.copy()


def _evenly(number: int, parts: int) -> int:
    """Return where part `number` of all keys of 64 bits begins."""
    return (1 << 64) * number // parts


class Generations:
    """Keys of all files, in sorted arrays of which each is much longer than the next newer one."""

    def __init__(self) -> None:
        self._arrays: list[Keys] = []
        self._merge: _Merge | None = None

    @property
    def arrays(self) -> list[Keys]:
        """The sorted arrays, oldest first. A part of two neighbours may be in a third array, which follows them."""
        if self._merge is None:
            return self._arrays
        index = self._merging() + 2
        return [*self._arrays[:index], self._merge.merged, *self._arrays[index:]]

    @property
    def bytes(self) -> int:
        """Memory held, in bytes."""
        return sum(keys.nbytes for keys in self.arrays)

    def add(self, keys: Keys, sieve: Sieve) -> None:
        """Add a sorted array, and merge for a while."""
        self._arrays.append(keys)
        while self._newest_are_small():
            newer, older = self._arrays.pop(), self._arrays.pop()
            both = sieve(np.concatenate((older, newer)))
            both.sort()
            self._arrays.append(both)
        self._work(max(EFFORT * len(keys), AT_ONCE), RATIO, sieve)

    def settle(self, sieve: Sieve) -> bool:
        """Merge for a few milliseconds, so that lookups become faster. Return whether there is more to do."""
        self._work(AT_ONCE, SETTLED_RATIO, sieve)
        return self._merge is not None or self._unequal(SETTLED_RATIO) is not None

    def rewrite(self, change: Sieve) -> None:
        """Replace each array by `change` of it, which stays sorted."""
        if self._merge is not None:  # What is merged is larger than all that is not.
            self._arrays[self._merging()] = np.concatenate((self._merge.older, self._merge.merged))
            self._merge = None
        for index, keys in enumerate(self._arrays):
            # In pieces that fit the processor's cache, which takes half the time.
            pieces = [change(keys[first : first + AT_ONCE]) for first in range(0, len(keys), AT_ONCE)]
            self._arrays[index] = np.concatenate([keys[:0], *pieces])
        self._arrays = [keys for keys in self._arrays if len(keys)]

    def _newest_are_small(self) -> bool:
        if len(self._arrays) < 2 or len(self._arrays[-1]) + len(self._arrays[-2]) > SMALL:
            return False
        return self._merge is None or self._arrays[-2] is not self._merge.newer

    def _merging(self) -> int:
        """Return the index of the older generation that is being merged."""
        return next(i for i, keys in enumerate(self._arrays) if self._merge is not None and keys is self._merge.older)

    def _unequal(self, ratio: int) -> int | None:
        """Return the newest generation that is too short for the next newer one, as an index, or None."""
        lengths = [len(keys) for keys in self._arrays]
        pairs = range(len(lengths) - 2, -1, -1)
        return next((index for index in pairs if lengths[index] < ratio * lengths[index + 1]), None)

    def _work(self, effort: int, ratio: int, sieve: Sieve) -> None:
        """Merge until `effort` keys have been read, or there is nothing left to merge."""
        while effort > 0:
            if self._merge is None:
                index = self._unequal(ratio)
                if index is None:
                    return
                self._merge = _Merge(self._arrays[index], self._arrays[index + 1])
            merge = self._merge
            effort -= merge.step(sieve)
            if merge.done:
                index = self._merging()
                self._arrays[index : index + 2] = [merge.finished()]
                self._merge = None
