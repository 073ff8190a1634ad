"""Hashes of runs of tokens, for a whole file at once or for the last tokens of a text."""

from collections.abc import Sequence

import attrs
import numpy as np
from numpy.typing import NDArray

from engine.memory.followers import PLACES

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


@attrs.frozen
class RunHashes:
    """Makes keys of 64 bits: in the upper half a run's length and hash, in the lower half the place of its follower.

    bits: bits of the hash that are used, 30 at most. Few bits force collisions, for tests.
    """

    bits: int = attrs.field(default=30, validator=attrs.validators.le(30))
    _mask: int = attrs.field(init=False)

    @_mask.default
    def _mask_of_bits(self) -> int:
        return ((1 << self.bits) - 1) << (_LENGTH_SHIFT - self.bits)

    def keys(self, tokens: NDArray[np.int32], first: int) -> NDArray[np.uint64]:
        """Return one key for each token and hashed run before it, sorted.

        tokens: int32 [n], a file. first: the place of its first token; the others follow.
        """
        words = (tokens.astype(np.int64) + 1).view(np.uint64)
        places = np.arange(first, first + len(tokens), dtype=np.uint64)
        sums = np.zeros(len(tokens), np.uint64)
        mask, parts = np.uint64(self._mask), []
        for distance, factor in enumerate(_FACTORS, 1):
            sums[distance:] += words[:-distance] * np.uint64(factor)
            if distance in HASHED:
                hashes = (sums[distance:] >> np.uint64(_HASH_SHIFT)) & mask
                keys = np.uint64(_TAGS[distance]) | hashes | places[distance:]
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
