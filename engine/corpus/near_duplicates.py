"""Near-duplicates: files that share most of their lines with a file kept before.

MinHash signatures over shingles of lines, banded as in locality-sensitive hashing (Broder, "On the resemblance and
containment of documents", 1997); a candidate counts only when the true Jaccard similarity of the shingles is high.
"""

import zlib

import attrs
import numpy as np
from numpy.typing import NDArray

Shingles = NDArray[np.uint64]

SIMILAR = 0.7  # Jaccard similarity of the shingles from which on two files are near-duplicates
_LINES = 3  # of a shingle: one changed line spoils three, so that 0.7 means some nine lines in ten are the same
_BANDS, _ROWS = 16, 4  # a pair at 0.7 becomes a candidate in 99 of 100 cases, one at 0.3 in 12
_random = np.random.default_rng(0)
_FACTORS = _random.integers(1, 2**63, _BANDS * _ROWS, dtype=np.uint64) * np.uint64(2) + np.uint64(1)
_TERMS = _random.integers(0, 2**63, _BANDS * _ROWS, dtype=np.uint64)
_MIX = np.uint64(0x9E3779B97F4A7C15)


def shingles_of(text: str) -> Shingles:
    """Return the sorted, distinct hashes of every three lines in a row, white space at their ends and empty ones aside.

    Shape [n], n >= 1.
    """
    lines = [zlib.crc32(line) for line in map(bytes.strip, text.encode().split(b"\n")) if line]
    hashes = np.array(lines or [0], dtype=np.uint64)
    rolled = hashes[: max(1, len(hashes) - _LINES + 1)].copy()
    for step in range(1, min(_LINES, len(hashes))):
        rolled = rolled * _MIX + hashes[step : step + len(rolled)]
    rolled ^= rolled >> np.uint64(29)
    return np.unique(rolled * _MIX)


def jaccard(first: Shingles, second: Shingles) -> float:
    """Return the size of the intersection over that of the union."""
    both = len(np.intersect1d(first, second, assume_unique=True))
    return both / (len(first) + len(second) - both)


def _bands(shingles: Shingles) -> list[bytes]:
    least = np.full(_BANDS * _ROWS, np.iinfo(np.uint64).max, dtype=np.uint64)
    for start in range(0, len(shingles), 1024):
        spread = shingles[start : start + 1024, None] * _FACTORS + _TERMS
        least = np.minimum(least, (spread >> np.uint64(16)).min(axis=0))
    return [bytes([band]) + row.tobytes() for band, row in enumerate(least.reshape(_BANDS, _ROWS))]


@attrs.define
class Index:
    """The files kept so far."""

    _kept: list[Shingles] = attrs.field(init=False, factory=list)
    _buckets: dict[bytes, list[int]] = attrs.field(init=False, factory=dict)

    def add(self, text: str) -> int | None:
        """Keep the text and return None, or return the number of the kept text of which it is a near-duplicate."""
        shingles = shingles_of(text)
        bands = _bands(shingles)
        for number in dict.fromkeys(number for band in bands for number in self._buckets.get(band, ())):
            other = self._kept[number]
            alike = min(len(shingles), len(other)) >= SIMILAR * max(len(shingles), len(other))
            if alike and jaccard(shingles, other) >= SIMILAR:
                return number
        for band in bands:
            self._buckets.setdefault(band, []).append(len(self._kept))
        self._kept.append(shingles)
        return None
