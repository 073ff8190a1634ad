"""The rows of several passes, concatenated. Does not import torch."""

from collections.abc import Sequence

import attrs
import numpy as np
from numpy.typing import NDArray

from engine.fill.stream import StreamPass

FIELDS = 2
"""Tokens and positions."""


@attrs.frozen
class PackedRows:
    """`numbers`, int64 [FIELDS, rows]."""

    numbers: NDArray[np.int64]

    @classmethod
    def of(cls, passes: Sequence[StreamPass], starts: Sequence[int]) -> "PackedRows":
        """Return the rows of `passes`, which come after `starts` tokens of their contexts."""
        tokens = [token for item in passes for token in (*item.append, *item.canvas)]
        positions = [
            position for item, start in zip(passes, starts, strict=True) for position in range(start, start + item.rows)
        ]
        return cls(np.array((tokens, positions), np.int64))
