"""Near-duplicates: files that share most of their lines with a file kept before.

MinHash signatures over shingles of lines, banded as in locality-sensitive hashing (Broder, "On the resemblance and
containment of documents", 1997). A candidate counts only if the true Jaccard similarity of the shingles is high.
"""

import zlib

import attrs
import numpy as np
from numpy.typing import NDArray

Shingles = NDArray[np.uint64]

SIMILAR = 0.7  # files with at least this Jaccard similarity of their shingles are near-duplicates
_LINES = 3  # lines in a shingle; one changed line changes three shingles, so 0.7 means about 9 of 10 lines are equal
_BANDS, _ROWS = 16, 4  # a pair at 0.7 becomes a candidate in 99 of 100 cases, a pair at 0.3 in 12
_random = np.random.default_rng(0)
_FACTORS = _random.integers(1, 2**63, _BANDS * _ROWS, dtype=np.uint64) * np.uint64(2) + np.uint64(1)
_TERMS = _random.integers(0, 2**63, _BANDS * _ROWS, dtype=np.uint64)
_MIX = np.uint64(0x9E3779B97F4A7C15)


def shingles_of(text: str) -> Shingles:
    """Return the sorted, distinct hashes of all runs of three lines, shape [n] with n >= 1.

    Empty lines and white space at the ends of lines are ignored.
    """
    lines = [zlib.crc32(line) for line in map(bytes.strip, text.encode().split(b"\n")) if line]
    hashes = np.array(lines or [0], dtype=np.uint64)
    rolled = hashes[: max(1, len(hashes) - _LINES + 1)].copy()
    for step in range(1, min(_LINES, len(hashes))):
        rolled = rolled * _MIX + hashes[step : step + len(rolled)]
    rolled ^= rolled >> np.uint64(29)
    return np.unique(rolled * _MIX)


def jaccard(first: Shingles, second: Shingles) -> float:
    """Return the size of the intersection divided by the size of the union."""
    both = len(np.intersect1d(first, second, assume_unique=True))
    return both / (len(first) + len(second) - both)


def _bands(shingles: Shingles) -> list[bytes]:
    """Return the MinHash signature of a file, cut into bands; equal bands make two files candidates."""
    signature = np.full(_BANDS * _ROWS, np.iinfo(np.uint64).max, dtype=np.uint64)
    for start in range(0, len(shingles), 1024):
        hashes = shingles[start : start + 1024, None] * _FACTORS + _TERMS
        signature = np.minimum(signature, (hashes >> np.uint64(16)).min(axis=0))
    return [bytes([band]) + row.tobytes() for band, row in enumerate(signature.reshape(_BANDS, _ROWS))]


@attrs.define
class Index:
    """The files kept so far."""

    _kept: list[Shingles] = attrs.field(init=False, factory=list)
    _buckets: dict[bytes, list[int]] = attrs.field(init=False, factory=dict)

    def add(self, text: str) -> int | None:
        """Keep the text and return None, or return the index of the kept text that it nearly duplicates."""
        shingles = shingles_of(text)
        bands = _bands(shingles)
        for index in dict.fromkeys(index for band in bands for index in self._buckets.get(band, ())):
            other = self._kept[index]
            similar_size = min(len(shingles), len(other)) >= SIMILAR * max(len(shingles), len(other))
            if similar_size and jaccard(shingles, other) >= SIMILAR:
                return index
        for band in bands:
            self._buckets.setdefault(band, []).append(len(self._kept))
        self._kept.append(shingles)
        return None
