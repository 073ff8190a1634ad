"""The runs of tokens of the edited file, found by a scan. It changes with every key, so an index is not worth it."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from engine.memory.candidates import MOST_ROWS, REACH, SEPARATOR, pattern_of, token_counts, windows_of
from engine.memory.followers import GROUP_SHIFT, PLACE_BITS, RUNS, SLOTS, FollowerCounts, Place

BELOW, ABOVE = 0, 1
"""What a Place of a scan calls the code below and above the cursor."""


class FileScan:
    """The code around the cursor. What is nearest above the cursor counts as the latest. A place is as in RunIndex."""

    def __init__(self, above: Sequence[int], below: Sequence[int]) -> None:
        separators = np.full(REACH, SEPARATOR, np.int32)
        parts = (separators, np.asarray(below, np.int32), separators, np.asarray(above, np.int32))
        self._array = np.concatenate(parts)
        self._above = len(self._array) - len(above)
        self._windows = windows_of(self._array)
        # The token before the follower of each window; none before a separator.
        self._last = np.where(self._array[REACH:] == SEPARATOR, SEPARATOR, self._array[REACH - 1 : -1])

    def followers_of_rows(
        self, histories: Sequence[Sequence[int]], above: Sequence[int] | None = None
    ) -> FollowerCounts:
        """Return what followed the last tokens of each history. All occurrences of a run count.

        above: for each row, how many tokens above the cursor count, the first ones; by default all.
        """
        if len(histories) > MOST_ROWS:
            halves = (slice(0, MOST_ROWS), slice(MOST_ROWS, None))
            return FollowerCounts.joined(
                [self.followers_of_rows(histories[half], None if above is None else above[half]) for half in halves]
            )
        rows, parts = [], []
        for row, history in enumerate(histories):
            if not history:
                continue
            last = self._last if above is None else self._last[: self._above - REACH + above[row]]
            (places,) = (last == history[-1]).nonzero()
            if len(places):
                rows.append(row)
                parts.append(places)
        if not parts:
            return FollowerCounts.nothing(len(histories))
        places = np.concatenate(parts)
        row_of = np.array(rows).repeat([len(part) for part in parts])
        seen = self._windows[places].view(np.int32).reshape(-1, REACH + 1)
        patterns = np.array([pattern_of(history) for history in histories], np.int32)
        differs = seen != (patterns if len(histories) == 1 else patterns[row_of])
        lengths = differs[:, -2::-1].argmax(1)
        codes = (row_of * SLOTS << GROUP_SHIFT) | (seen[:, REACH].astype(np.int64) << PLACE_BITS) | places
        found = [codes]
        for slot in range(1, SLOTS):
            (longer,) = (lengths >= RUNS[slot]).nonzero()
            if not len(longer):
                break
            codes, lengths = codes[longer] + (1 << GROUP_SHIFT), lengths[longer]
            found.append(codes)
        return FollowerCounts.count(np.concatenate(found), len(histories), self._locate)

    def occurrences(self, tokens: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return how often each of `tokens` occurs, int64 [n]. tokens: int64 [n]."""
        return token_counts(self._array[self._array != SEPARATOR], int(tokens.max(initial=0)) + 1)[tokens]

    def tokens_before(self, place: Place) -> NDArray[np.int32]:
        """Return the tokens of the code below or above, up to a place."""
        first = REACH if place.file == BELOW else self._above
        return self._array[first : first + place.position]

    def _locate(self, place: int) -> Place:
        position = place + REACH
        if position < self._above:
            return Place(BELOW, position - REACH)
        return Place(ABOVE, position - self._above)
