"""A context that can be truncated at any token: all layers keep the keys and values of all tokens.

The caches of transformers drop what has left the window of a sliding layer, so they cannot roll back past it. Keeping
all costs memory (225 kB per token for the 26B checkpoint in bf16, 90 % of it in sliding layers). It saves a prefill
whenever the user edits further up in the file.
"""

from collections.abc import Sequence

import attrs
import torch
from torch import Tensor

STEP = 256
"""Buffers have a multiple of this many positions."""
MEMORY_SHARE = 5
"""One context takes at most a fifth of the memory that the weights leave free, or a quarter once it has grown. Graphs'
slots take a quarter, cached contexts a quarter, and what a pass computes has the rest."""
LEAST_WINDOW = 1024
"""Tokens that are read on any device."""
GROWTH = 4
"""A full buffer grows by at least a quarter, so that a long context is copied few times. A doubled one would hold up to
twice a context's bytes, and three times while it is copied."""


@attrs.frozen
class LayerShape:
    """The number of heads and their width in the keys and values of one layer."""

    heads: int
    width: int


def bytes_per_token(shapes: Sequence[LayerShape], dtype: torch.dtype) -> int:
    """Return the bytes of the keys and values of one token."""
    return 2 * dtype.itemsize * sum(shape.heads * shape.width for shape in shapes)


def affordable_window(free: int, per_token: int, window: int) -> int:
    """Return how many tokens a context may have, at most `window`, if it may take MEMORY_SHARE of `free` bytes."""
    return min(window, max(LEAST_WINDOW, free // MEMORY_SHARE // per_token // STEP * STEP))


class RollingContext:
    """Implements interface.Context. `layers` holds keys and values [2, heads, capacity, width] of every layer."""

    def __init__(self, shapes: Sequence[LayerShape], dtype: torch.dtype, device: torch.device) -> None:
        self.tokens: list[int] = []
        self._shapes, self._dtype, self._device = shapes, dtype, device
        self.capacity = 0
        self.layers = [self._buffer(shape, 0) for shape in shapes]

    @property
    def bytes(self) -> int:
        return sum(buffer.nbytes for buffer in self.layers)

    def truncate(self, length: int) -> None:
        del self.tokens[length:]

    def fork(self, length: int) -> "RollingContext":
        copy = RollingContext(self._shapes, self._dtype, self._device)
        copy.tokens = self.tokens[:length]
        copy.reserve(length)
        for source, target in zip(self.layers, copy.layers, strict=True):
            target[:, :, :length] = source[:, :, :length]
        return copy

    def reserve(self, length: int) -> None:
        """Make room for `length` positions. Stored keys and values stay."""
        if length <= self.capacity:
            return
        old_capacity = self.capacity
        self.capacity = -(-max(length, old_capacity + old_capacity // GROWTH) // STEP) * STEP
        for index, shape in enumerate(self._shapes):  # one by one, so that only one layer is in memory twice
            grown = self._buffer(shape, self.capacity)
            grown[:, :, :old_capacity] = self.layers[index]
            self.layers[index] = grown

    def _buffer(self, shape: LayerShape, capacity: int) -> Tensor:
        return torch.empty(2, shape.heads, capacity, shape.width, dtype=self._dtype, device=self._device)
