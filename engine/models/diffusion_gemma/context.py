"""A context that can be truncated at any token: all layers keep the keys and values of all tokens.

The caches of transformers drop what has left the window of a sliding layer, so they cannot roll back past it. Keeping
all costs memory (225 kB per token for the 26B checkpoint in bf16, 90 % of it in sliding layers). It saves a prefill
whenever the user edits further up in the file.
"""

from collections.abc import Sequence

import attrs
import torch
from torch import Tensor

SMALLEST = 256
"""Positions of the smallest buffer. Each next size is twice as large."""


@attrs.frozen
class LayerShape:
    """The number of heads and their width in the keys and values of one layer."""

    heads: int
    width: int


class RollingContext:
    """Implements interface.Context. `layers` holds keys and values [2, heads, capacity, width] of every layer."""

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
        for source, target in zip(self.layers, copy.layers, strict=True):
            target[:, :, :length] = source[:, :, :length]
        return copy

    def reserve(self, length: int) -> None:
        """Make room for `length` positions. Stored keys and values stay."""
        if length <= self.capacity:
            return
        old_capacity, old_layers = self.capacity, self.layers
        self.capacity = max(SMALLEST, 1 << (length - 1).bit_length())
        self.layers = self._buffers(self.capacity)
        for source, target in zip(old_layers, self.layers, strict=True):
            target[:, :, :old_capacity] = source

    def _buffers(self, capacity: int) -> list[Tensor]:
        return [
            torch.empty(2, shape.heads, capacity, shape.width, dtype=self._dtype, device=self._device)
            for shape in self._shapes
        ]
