"""Where runs of tokens occurred: one entry for each row, run and place."""

from collections.abc import Sequence

import attrs
import numpy as np
from numpy.typing import NDArray

from engine.memory.candidates import REACH
from engine.memory.followers import GROUP_SHIFT, PLACES, SLOTS


@attrs.frozen(eq=False)
class RunPlaces:
    """Occurrences of the runs at the ends of rows.

    groups: int64 [n], `row * SLOTS + slot`: the run RUNS[slot] of that row occurred.
    files, positions: int64 [n], the file's number and the position in it of the token after the run.
    """

    groups: NDArray[np.int64]
    files: NDArray[np.int64]
    positions: NDArray[np.int64]

    @classmethod
    def of(cls, codes: NDArray[np.int64], starts: Sequence[int], files: Sequence[int]) -> "RunPlaces":
        """Read the codes of candidates.occurrences.

        starts: where each file begins in the array of all tokens, smallest first. files: their numbers.
        """
        positions = (codes & PLACES) + REACH
        if not len(codes):
            return cls(codes, codes, positions)
        all_starts = np.asarray(starts, np.int64)
        indices = all_starts.searchsorted(positions, "right") - 1
        return cls(codes >> GROUP_SHIFT, np.asarray(files, np.int64)[indices], positions - all_starts[indices])

    @property
    def rows(self) -> NDArray[np.int64]:
        return self.groups // SLOTS

    @property
    def counts(self) -> NDArray[np.int64]:
        """How often the run of each entry occurred, int64 [n]."""
        return np.bincount(self.groups)[self.groups] if len(self.groups) else self.groups
