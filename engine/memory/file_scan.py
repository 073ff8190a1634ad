"""The runs of tokens of the edited file, found by a scan. It changes with every key, so an index is not worth it."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from engine.memory.candidates import SEPARATOR
from engine.memory.followers import GROUP_SHIFT, PLACE_BITS, RUNS, Followers, Place, count_followers

BELOW, ABOVE = 0, 1
"""What a Place of a scan calls the code below and above the cursor."""
_PADDING = RUNS[-1]
_SLOT = {run: slot for slot, run in enumerate(RUNS)}


class FileScan:
    """The code around the cursor. What is nearest above the cursor counts as the latest."""

    def __init__(self, above: Sequence[int], below: Sequence[int]) -> None:
        padding = np.full(_PADDING, SEPARATOR, np.int32)
        parts = (padding, np.asarray(below, np.int32), padding, np.asarray(above, np.int32))
        self._array = np.concatenate(parts)
        self._above = len(self._array) - len(above)

    def followers(self, history: Sequence[int], most: int, above: int | None = None) -> list[Followers]:
        """Return what followed the last tokens of `history`: one Followers for each run that occurs, longest last.

        most: the latest occurrences of a run that count.
        above: how many tokens above the cursor count, the first ones; by default all.
        """
        last = history[-RUNS[-1] :]
        if not last:
            return []
        array = self._array if above is None else self._array[: self._above + above]
        places = np.flatnonzero(array[_PADDING - 1 : -1] == last[-1]) + _PADDING
        places = places[array[places] != SEPARATOR]
        parts = []
        for run in range(1, len(last) + 1):
            if run > 1:
                places = places[array[places - run] == last[-run]]
            if not len(places):
                break
            if run in _SLOT:
                latest = places[-most:]
                parts.append((_SLOT[run] << GROUP_SHIFT) | (array[latest].astype(np.int64) << PLACE_BITS) | latest)
        return count_followers(np.concatenate(parts), 1, self._locate)[0] if parts else []

    def tokens_before(self, place: Place) -> NDArray[np.int32]:
        """Return the tokens of the code below or above, up to a place."""
        first = _PADDING if place.file == BELOW else self._above
        return self._array[first : first + place.position]

    def _locate(self, place: int) -> Place:
        if place < self._above:
            return Place(BELOW, place - _PADDING)
        return Place(ABOVE, place - self._above)
