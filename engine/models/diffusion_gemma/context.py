"""A context that rolls back exactly: the keys and values of all its tokens, also where a layer sees only the last ones.

Stock caches drop what has left a sliding layer's window and so cannot go back past it. Keeping everything costs memory
(225 kB a token for the 26B checkpoint in bf16, nine tenths of it in sliding layers), and saves a prefill each time an
edit lands further up in the file.
"""

from collections.abc import Sequence

import attrs
import torch
from torch import Tensor

SMALLEST = 256
"""Positions of the smallest buffer. Buffers double, so that there are few sizes for a captured graph to be made for."""


@attrs.frozen
class LayerShape:
    """Heads and their width in the keys and values of one layer."""

    heads: int
    width: int


class RollingContext:
    """Implements models.base.Context. `layers` holds keys and values [2, heads, capacity, width] of every layer."""

    def __init__(self, shapes: Sequence[LayerShape], dtype: torch.dtype, device: torch.device) -> None:
        self.tokens: list[int] = []
        self._shapes, self._dtype, self._device = shapes, dtype, device
        self.capacity = 0
        self.layers = self._buffers(0)

    @property
    def bytes(self) -> int:
        return sum(buffer.nbytes for buffer in self.layers)

    def truncate(self, length: int) -> None:
        del self.tokens[length:]

    def fork(self, length: int) -> "RollingContext":
        copy = RollingContext(self._shapes, self._dtype, self._device)
        copy.tokens = self.tokens[:length]
        copy.reserve(length)
        for mine, other in zip(self.layers, copy.layers, strict=True):
            other[:, :, :length] = mine[:, :, :length]
        return copy

    def reserve(self, length: int) -> None:
        """Make room for `length` positions; what is stored stays."""
        if length <= self.capacity:
            return
        held, old = self.capacity, self.layers
        self.capacity = max(SMALLEST, 1 << (length - 1).bit_length())
        self.layers = self._buffers(self.capacity)
        for before, after in zip(old, self.layers, strict=True):
            after[:, :, :held] = before

    def _buffers(self, capacity: int) -> list[Tensor]:
        return [
            torch.empty(2, shape.heads, capacity, shape.width, dtype=self._dtype, device=self._device)
            for shape in self._shapes
        ]
