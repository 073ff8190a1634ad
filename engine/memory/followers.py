"""Which tokens followed the runs of tokens at a cursor: the places of runs, found by their hashes, and the counts."""

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise

import attrs
import numpy as np
from numpy.typing import NDArray

from engine.memory.generations import Keys

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
    def likeliest(self) -> int:
        """Index of the most frequent token, and of equally frequent ones the one that followed last."""
        return int(np.lexsort((self.places, self.counts))[-1])

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
        # The larger place decides between tokens that are equally frequent, so no two places are equal.
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


HASHED = (1, 2, 3, 5)
"""The lengths of the runs that are hashed. Longer runs are found among the places of the longest of these."""
_WORD = (1 << 64) - 1
_LENGTH_SHIFT = 62
"""The upper two bits of a key say which of HASHED the run's length is."""
_HASH_SHIFT = 64 - _LENGTH_SHIFT
_TAGS = {length: index << _LENGTH_SHIFT for index, length in enumerate(HASHED)}
_FARTHEST = HASHED[-1]
# Random odd numbers, one for each distance from the follower: multilinear hashing (arXiv 1202.4961).
_FACTORS = (0x9E3779B97F4A7C15, 0xD1B54A32D192ED03, 0xABC98388FB8FAC03, 0x8CB92BA72F3D8DD7, 0xC2B2AE3D27D4EB4F)


REACH = RUN_LENGTHS[-1] + 1
"""Tokens before a follower that are compared. The first is compared with no token, so each comparison has an end."""
SEPARATOR = -1
"""Between files, in the array of tokens. It equals no token."""
MOST_ROWS = (1 << (63 - GROUP_SHIFT)) // GROUPS_A_ROW
_NO_TOKEN = -2
_LAST_HASHED = len(HASHED) - 1
_LENGTHS = np.array(RUN_LENGTHS)

Windows = NDArray[np.void]


@attrs.frozen
class RunHashes:
    """Hashes runs of tokens, of a whole file at once or of the last tokens of a text.

    A key has 64 bits: in the upper half a run's length and hash, in the lower half the place of its follower.

    bits: bits of the hash that are used, 30 at most. Few bits force collisions, for tests.
    """

    bits: int = attrs.field(default=30, validator=attrs.validators.le(30))
    _mask: int = attrs.field(init=False)

    @_mask.default
    def _mask_of_bits(self) -> int:
        return ((1 << self.bits) - 1) << (_LENGTH_SHIFT - self.bits)

    def keys(self, tokens: NDArray[np.int32], first: int, known: int = 0) -> NDArray[np.uint64]:
        """Return one key for each token and hashed run before it, sorted.

        tokens: int32 [n], of one file. first: the place of the first of them; the others follow. known: how many of
        them are only part of runs, because they have their keys: the last tokens of the file's earlier part.
        """
        words = (tokens.astype(np.int64) + 1).view(np.uint64)
        places = np.arange(first, first + len(tokens), dtype=np.uint64)
        sums = np.zeros(len(tokens), np.uint64)
        mask, parts = np.uint64(self._mask), []
        for distance, factor in enumerate(_FACTORS, 1):
            sums[distance:] += words[:-distance] * np.uint64(factor)
            if distance in HASHED:
                begun = max(distance, known)
                hashes = (sums[begun:] >> np.uint64(_HASH_SHIFT)) & mask
                keys = np.uint64(_TAGS[distance]) | hashes | places[begun:]
                keys.sort()
                parts.append(keys)
        return np.concatenate(parts)

    def bounds(self, history: Sequence[int]) -> list[int]:
        """Return two keys for each hashed run that `history` is long enough for, shortest first.

        All places of the run are between the two.
        """
        sums, keys = 0, list[int]()
        for distance, token in enumerate(history[: -_FARTHEST - 1 : -1], 1):
            sums += (token + 1) * _FACTORS[distance - 1]
            if distance in _TAGS:
                key = _TAGS[distance] | ((sums & _WORD) >> _HASH_SHIFT) & self._mask
                keys += (key, key | PLACES)
        return keys


def windows_of(array: NDArray[np.int32]) -> Windows:
    """Return a view [n - REACH] of an array [n]: item i is REACH tokens from position i on, and their follower.

    Windows are one item each, because NumPy copies an item four times as fast as a row of numbers.
    """
    width = array.itemsize * (REACH + 1)
    return np.ndarray((len(array) - REACH,), f"V{width}", array, strides=(array.itemsize,))


@attrs.frozen(eq=False)
class Candidates:
    """Places of windows whose last tokens have the hash of a run.

    places: int64 [n], group by group, the groups of the longest hashed run first.
    groups: which. sizes: the places of each.
    cut: indices of the groups that may have older places as well.
    """

    places: NDArray[np.int64]
    groups: list[int]
    sizes: list[int]
    cut: list[int]

    @property
    def rare(self) -> "Candidates":
        """The groups of which all places are here."""
        kept = np.ones(len(self.groups), np.bool_)
        kept[self.cut] = False
        of_kept = [index for index in range(len(self.groups)) if kept[index]]
        places = self.places[kept.repeat(self.sizes)]
        return Candidates(
            places, [self.groups[index] for index in of_kept], [self.sizes[index] for index in of_kept], []
        )


def find_candidates(
    hashes: RunHashes, arrays: Sequence[Keys], histories: Sequence[Sequence[int]], most: int
) -> Candidates:
    """Return the latest `most` places of each hashed run at the ends of `histories`. `arrays`: oldest first."""
    bounds: list[int] = []
    groups: list[int] = []
    by_row = [hashes.bounds(history) for history in histories]
    for rank in range(_LAST_HASHED, -1, -1):
        for row, of_row in enumerate(by_row):
            if len(of_row) > 2 * rank:
                bounds += of_row[2 * rank : 2 * rank + 2]
                groups.append(row * GROUPS_A_ROW + rank)
    queries = np.array(bounds, np.uint64)
    searched = [(keys, keys.searchsorted(queries).tolist()) for keys in reversed(arrays)]
    parts: list[Keys] = []
    sizes: list[int] = []
    cut: list[int] = []
    for index in range(len(groups)):
        left = most
        for keys, ends in searched:
            low, high = ends[2 * index], ends[2 * index + 1]
            if low < high:
                if high - low >= left:
                    low = high - left
                    cut.append(index)
                parts.append(keys[low:high])
                left -= high - low
                if not left:
                    break
        sizes.append(most - left)
    keys = np.concatenate(parts) if parts else np.zeros(0, np.uint64)
    places = (keys & np.uint64(PLACES)).view(np.int64)
    return Candidates(places, groups, sizes, cut)


def occurrences(
    candidates: Candidates, windows: Windows, histories: Sequence[Sequence[int]], hidden: range, most: int
) -> NDArray[np.int64] | None:
    """Return one number for each place where a run occurred, or None if older places have to be looked at.

    A number is (group << GROUP_SHIFT) | (follower << PLACE_BITS) | place. The latest `most` places of
    a hashed run count; longer runs are found among those of the longest hashed one.

    hidden: places that do not count.
    """
    places, sizes, groups = candidates.places, candidates.sizes, np.array(candidates.groups, np.int64)
    patterns = np.array([pattern_of(history) for history in histories], np.int32)
    group_of = np.arange(len(groups)).repeat(sizes)
    seen = windows[places].view(np.int32).reshape(-1, REACH + 1)
    differs = seen != (patterns if len(histories) == 1 else patterns[(groups // GROUPS_A_ROW)[group_of]])
    lengths = differs[:, -2::-1].argmax(1)
    matches = lengths >= _LENGTHS[groups % GROUPS_A_ROW][group_of]
    if hidden:
        matches &= (places < hidden.start) | (places >= hidden.stop)
    stop, longest = 0, 0
    for index, size in enumerate(sizes):
        stop += size
        if candidates.groups[index] % GROUPS_A_ROW == _LAST_HASHED:
            longest = stop
        if size >= most:
            group = slice(stop - size, stop)
            matched = np.count_nonzero(matches[group])
            if matched < most and index in candidates.cut:
                return None
            if matched > most:
                matches[group] &= places[group] >= np.sort(places[group][matches[group]])[-most]
    codes = (groups << GROUP_SHIFT)[group_of] | (seen[:, REACH].astype(np.int64) << PLACE_BITS) | places
    parts = [codes[matches]]
    lengths, codes, matches = lengths[:longest], codes[:longest], matches[:longest]
    for rank in range(_LAST_HASHED + 1, GROUPS_A_ROW):
        matches = matches & (lengths >= RUN_LENGTHS[rank])
        if not matches.any():
            break
        parts.append(codes[matches] + ((rank - _LAST_HASHED) << GROUP_SHIFT))
    return np.concatenate(parts) if len(parts) > 1 else parts[0]


def token_counts(tokens: NDArray[np.int32], size: int) -> NDArray[np.int64]:
    """Return how often each token occurs, int64 [size or more]."""
    return np.bincount(tokens, minlength=size)


def pattern_of(history: Sequence[int]) -> list[int]:
    """Return a window that ends with the last tokens of a text. Its first item and its follower equal no token."""
    last = history[1 - REACH :]
    return [*[_NO_TOKEN] * (REACH - len(last)), *last, _NO_TOKEN]
