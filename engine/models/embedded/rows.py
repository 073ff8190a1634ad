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
        positions = [np.arange(start, start + item.rows) for item, start in zip(passes, starts, strict=True)]
        return cls(np.stack((np.array(tokens, np.int64), np.concatenate(positions))))
