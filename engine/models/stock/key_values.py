"""A context whose keys and values are in one buffer."""

import torch
from torch import Tensor


class KeyValues:
    """Implements interface.Context. `buffer` [layers, 2, heads, capacity, head_width] has the keys and values.

    The rows of a running canvas are written after those of `tokens`, and the next pass overwrites them.
    """

    def __init__(self, buffer: Tensor) -> None:
        self.tokens: list[int] = []
        self.buffer = buffer

    @property
    def bytes(self) -> int:
        return self.buffer.nbytes

    @property
    def capacity(self) -> int:
        """How many positions the buffer has."""
        return self.buffer.shape[3]

    def truncate(self, length: int) -> None:
        del self.tokens[length:]

    def fork(self, length: int) -> "KeyValues":
        copy = KeyValues(torch.zeros_like(self.buffer))
        copy.tokens = self.tokens[:length]
        copy.buffer[:, :, :, :length] = self.buffer[:, :, :, :length]
        return copy
