"""The runs of tokens of many files, and what followed each of them."""

from bisect import bisect_right
from collections.abc import Sequence

import attrs
import numpy as np
from numpy.typing import NDArray

from engine.memory.followers import (
    GROUP_SHIFT,
    GROUPS_A_ROW,
    HASHED,
    MOST_ROWS,
    PLACES,
    REACH,
    SEPARATOR,
    TOKEN_BITS,
    FollowerCounts,
    Place,
    RunHashes,
    find_candidates,
    occurrences,
    token_counts,
    windows_of,
)
from engine.memory.generations import Generations, Keys

MOST_PLACES = 64
"""The latest occurrences of a run that are counted."""
BYTES_A_TOKEN = 64
"""The memory of an index is bounded by this, except for a small constant part."""
_SPARE = 1.125
"""How much longer the array of tokens becomes than it has to be."""
_SHORTEST_ARRAY = 1 << 12
_BYTES_A_FILE = 250
_REMOVED_SHARE = 4
"""The array is rewritten when one position of this many is of a removed file."""
_GONE = (1 << 32) - 1


@attrs.frozen(eq=False)
class RunPlaces:
    """Where the runs at the ends of rows occurred: one entry for each row, run and place.

    groups: int64 [n], `row * GROUPS_A_ROW + rank`: the run RUN_LENGTHS[rank] of that row occurred.
    files, positions: int64 [n], the file's number and the position in it of the token after the run.
    """

    groups: NDArray[np.int64]
    files: NDArray[np.int64]
    positions: NDArray[np.int64]

    @classmethod
    def of(cls, codes: NDArray[np.int64], starts: Sequence[int], files: Sequence[int]) -> "RunPlaces":
        """Read the codes of followers.occurrences.

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
        return self.groups // GROUPS_A_ROW

    @property
    def counts(self) -> NDArray[np.int64]:
        """How often the run of each entry occurred, int64 [n]."""
        return np.bincount(self.groups)[self.groups] if len(self.groups) else self.groups


@attrs.frozen
class _Extent:
    """Where a file's tokens are in the array: from `start` up to, but not including, `stop`."""

    start: int
    stop: int

    @property
    def places(self) -> range:
        return range(self.start - REACH, self.stop - REACH)


class RunIndex:
    """Files as runs of tokens. All methods belong on one thread.

    The tokens of all files are in one array, in the order in which the files were added, with a separator before each
    file. So a larger place is a later one. For each token and each hashed run before it there is a sorted key
    (RunHashes). Each place is compared with the array before it counts, so a hash collision is never an answer.
    A removed file is overwritten with separators, so nothing matches there. Its keys go with the next merge
    (generations.py). Its tokens go when a quarter of the array is of removed files.

    A place is where a window of tokens begins; its follower is REACH positions later (followers.py).
    """

    def __init__(self, hashes: RunHashes | None = None, most_places: int = MOST_PLACES) -> None:
        self._hashes = hashes or RunHashes()
        self._most_places = most_places
        self._array = np.full(_SHORTEST_ARRAY, SEPARATOR, np.int32)
        self._windows = windows_of(self._array)
        self._end = REACH
        self._removed = 0
        self._extents: dict[int, _Extent] = {}
        self._starts: list[int] = []
        self._files: list[int] = []
        self._generations = Generations()
        self._counts = np.zeros(0, np.int64)
        self.tokens = 0
        """How many tokens of files are known."""

    def __contains__(self, file: int) -> bool:
        return file in self._extents

    def __len__(self) -> int:
        return len(self._extents)

    @property
    def bytes(self) -> int:
        """Memory held, in bytes."""
        files = len(self._files) * _BYTES_A_FILE
        return self._generations.bytes + self._array.nbytes + self._counts.nbytes + files

    def add(self, file: int, tokens: NDArray[np.int32]) -> None:
        """Add a file, or replace the one of this number.

        tokens: int32 [n], each at least 0 and less than 2 ** 21. Raises ValueError for others.
        """
        _check(tokens)
        self.remove(file)
        start = self._end + 1
        self._extents[file] = _Extent(start, start)
        self._starts.append(start)
        self._files.append(file)
        self._append(file, tokens)

    def extend(self, file: int, tokens: NDArray[np.int32]) -> None:
        """Add tokens [n] to the end of the file that was added last. Raises ValueError for another file."""
        _check(tokens)
        if file not in self._extents or self._extents[file].stop != self._end:
            raise ValueError(f"file {file} was not added last; add it again with all its tokens")
        self._append(file, tokens)

    def settle(self) -> bool:
        """Work for a few milliseconds to make lookups faster. Return whether there is more to do."""
        return self._generations.settle(self._known_keys)

    def remove(self, file: int) -> None:
        """Remove a file, if it is known. None of its tokens is an answer from now on."""
        extent = self._extents.pop(file, None)
        if extent is None:
            return
        self._counts -= token_counts(self._array[extent.start : extent.stop], len(self._counts))
        self._array[extent.start : extent.stop] = SEPARATOR
        self.tokens -= extent.stop - extent.start
        self._removed += 1 + extent.stop - extent.start
        if _REMOVED_SHARE * self._removed > self._end:
            self._compact()

    def followers_of_rows(self, histories: Sequence[Sequence[int]], without: int | None = None) -> FollowerCounts:
        """Return what followed the last tokens of each history. Several together take less time than one by one.

        Only the latest `most_places` occurrences of a run count. Runs longer than the hashed ones are looked for among
        the counted occurrences of the longest hashed run.

        without: a file that does not count.
        """
        hidden = None if without is None else self._extents.get(without)
        places = range(0) if hidden is None else hidden.places
        if len(histories) <= MOST_ROWS:
            return self._look_up(histories, places)
        parts = (histories[first : first + MOST_ROWS] for first in range(0, len(histories), MOST_ROWS))
        return FollowerCounts.joined([self._look_up(part, places) for part in parts])

    def occurrences(self, tokens: NDArray[np.int64], without: int | None = None) -> NDArray[np.int64]:
        """Return how often each of `tokens` [n] occurs, int64 [n].

        tokens: int64 [n], smallest first. without: a file that does not count.
        """
        occurred = np.zeros(len(tokens), np.int64)
        known = tokens[: tokens.searchsorted(len(self._counts))]
        occurred[: len(known)] = self._counts[known]
        extent = None if without is None else self._extents.get(without)
        if extent is not None:
            of_file = token_counts(self._array[extent.start : extent.stop], len(self._counts))
            occurred[: len(known)] -= of_file[known]
        return occurred

    def rare_places_of_rows(self, histories: Sequence[Sequence[int]], without: int | None = None) -> RunPlaces:
        """Return the places of the runs at the ends of `histories` that occur less than `most_places` times.

        histories: at most MOST_ROWS; raises ValueError for more. without: a file whose places are left out.
        """
        if len(histories) > MOST_ROWS:
            raise ValueError(f"{len(histories)} rows are more than the {MOST_ROWS} that have numbers; ask in parts")
        hidden = None if without is None else self._extents.get(without)
        places = range(0) if hidden is None else hidden.places
        rare = find_candidates(self._hashes, self._generations.arrays, histories, self._most_places).rare
        if not len(rare.places):
            return RunPlaces.of(rare.places, self._starts, self._files)
        codes = occurrences(rare, self._windows, histories, places, self._most_places)
        assert codes is not None  # which asks for older places, and these are all places
        return RunPlaces.of(codes, self._starts, self._files)

    def tokens_of(self, file: int) -> NDArray[np.int32]:
        """Return the tokens of a file. Raises KeyError for one that is not known."""
        extent = self._extents[file]
        return self._array[extent.start : extent.stop].copy()

    def tokens_before(self, place: Place) -> NDArray[np.int32]:
        """Return the tokens of a file up to a place. Raises KeyError for a file that is not known."""
        start = self._extents[place.file].start
        return self._array[start : start + place.position].copy()

    def _append(self, file: int, tokens: NDArray[np.int32]) -> None:
        """Put tokens after the last ones in the array, which are of the same file, and add their keys."""
        extent = self._extents[file]
        begun, stop = extent.stop, extent.stop + len(tokens)
        self._reserve(stop)
        self._array[begun:stop] = tokens
        self._end = stop
        self._extents[file] = _Extent(extent.start, stop)
        self.tokens += len(tokens)
        counts = token_counts(tokens, len(self._counts))
        counts[: len(self._counts)] += self._counts
        self._counts = counts
        known = min(begun - extent.start, HASHED[-1])
        keys = self._hashes.keys(self._array[begun - known : stop], begun - known - REACH, known)
        self._generations.add(keys, self._known_keys)

    def _look_up(self, histories: Sequence[Sequence[int]], hidden: range) -> FollowerCounts:
        looked_at = self._most_places
        while True:
            candidates = find_candidates(self._hashes, self._generations.arrays, histories, looked_at)
            if not len(candidates.places):
                return FollowerCounts.nothing(len(histories))
            codes = occurrences(candidates, self._windows, histories, hidden, self._most_places)
            if codes is not None:
                return FollowerCounts.count(codes, len(histories), self._locate)
            looked_at *= 4

    def _locate(self, place: int) -> Place:
        position = place + REACH
        index = bisect_right(self._starts, position) - 1
        return Place(self._files[index], position - self._starts[index])

    def _reserve(self, stop: int) -> None:
        """Make the array long enough for positions up to `stop`."""
        if stop > len(self._array):
            longer = np.full(int(_SPARE * stop), SEPARATOR, np.int32)
            longer[: self._end] = self._array[: self._end]
            self._array, self._windows = longer, windows_of(longer)

    def _known_keys(self, keys: Keys) -> Keys:
        """Return the keys of followers in files that are still known."""
        if not self._removed:
            return keys
        known: Keys = keys[self._array[_places(keys) + REACH] != SEPARATOR]
        return known

    def _compact(self) -> None:
        """Drop removed files from the array and from the keys."""
        old = self._array
        moved = np.full(self._end - REACH, _GONE, np.uint32)  # by place: how far its file moves to the front
        files = [(file, extent) for file, extent in self._extents.items()]
        self._array = np.full(
            max(int(_SPARE * (REACH + self.tokens + len(files))), _SHORTEST_ARRAY), SEPARATOR, np.int32
        )
        self._windows = windows_of(self._array)
        self._end, self._removed, self._starts, self._files = REACH, 0, [], []
        for file, extent in files:
            start = self._end + 1
            stop = start + extent.stop - extent.start
            self._array[start:stop] = old[extent.start : extent.stop]
            moved[extent.start - REACH : extent.stop - REACH] = extent.start - start
            self._end = stop
            self._extents[file] = _Extent(start, stop)
            self._starts.append(start)
            self._files.append(file)

        def move(keys: Keys) -> Keys:
            distances = moved[_places(keys)]
            known = distances != _GONE
            kept: Keys = keys[known] - distances[known]
            return kept

        self._generations.rewrite(move)


def _check(tokens: NDArray[np.int32]) -> None:
    if len(tokens) and (int(tokens.min()) < 0 or int(tokens.max()) >> TOKEN_BITS):
        raise ValueError(f"a token is outside 0 to {(1 << TOKEN_BITS) - 1}; give the ids of a tokenizer")


def _places(keys: Keys) -> NDArray[np.int64]:
    return (keys & np.uint64(PLACES)).view(np.int64)
