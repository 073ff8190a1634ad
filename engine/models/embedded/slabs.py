"""The context of a pass in the processor's memory: slabs of keys and values; and what computes passes over them."""

from collections.abc import Sequence
from typing import Any, Protocol

import attrs
import numpy as np
from numpy.typing import NDArray

from engine.models.embedded.adapter import Adapter
from engine.models.embedded.shape import Floats, Shape

SLAB = 64
"""Positions of a slab. The kernel has the same number (native/network.h)."""
_ALIGNMENT = 64
Slab = NDArray[np.float16] | NDArray[np.float32]


class SlabContext:
    """Implements interface.Context.

    A slab has the keys and values of 64 positions: [layers, key_heads, 2, 64 * head_width], keys as [head_width, 64]
    and values as [64, head_width]. The rows of a running canvas are written after those of `tokens`, and the next pass
    overwrites them.
    """

    def __init__(self, shape: Shape, dtype: type[np.float16] | type[np.float32]) -> None:
        self.tokens: list[int] = []
        self.slabs: list[Slab] = []
        self._shape, self._dtype = shape, dtype

    @property
    def bytes(self) -> int:
        return sum(slab.nbytes for slab in self.slabs)

    def reserve(self, positions: int) -> None:
        """Have slabs for this many positions. New ones are zero: hidden keys are read too, and NaN would spread."""
        while len(self.slabs) * SLAB < positions:
            self.slabs.append(self._new_slab())

    def truncate(self, length: int) -> None:
        del self.tokens[length:]
        del self.slabs[_slabs(length) + 1 :]  # One more is kept: the next key needs it.

    def fork(self, length: int) -> "SlabContext":
        copy = SlabContext(self._shape, self._dtype)
        copy.tokens = self.tokens[:length]
        for slab in self.slabs[: _slabs(length)]:
            copy.slabs.append(copy._new_slab())
            copy.slabs[-1][:] = slab
        return copy

    def _new_slab(self) -> Slab:
        shape = self._shape
        size = (shape.layers, shape.key_heads, 2, SLAB * shape.head_width)
        count = int(np.prod(size))
        memory: NDArray[Any] = np.zeros(count * np.dtype(self._dtype).itemsize + _ALIGNMENT, np.uint8)
        first = -memory.ctypes.data % _ALIGNMENT
        slab: NDArray[Any] = memory[first : len(memory) - _ALIGNMENT + first].view(self._dtype).reshape(size)
        return slab


def keys_and_values(slabs: Sequence[Slab], layer: int, heads: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return a layer's keys [heads, head_width, positions] and values [heads, positions, head_width] of all slabs."""
    keys = [slab[layer, :, 0].reshape(heads, -1, SLAB) for slab in slabs]
    values = [slab[layer, :, 1].reshape(heads, SLAB, -1) for slab in slabs]
    return np.concatenate(keys, 2, dtype=np.float32), np.concatenate(values, 1, dtype=np.float32)


def _slabs(positions: int) -> int:
    return -(-positions // SLAB)


Ids = NDArray[np.int64]


@attrs.frozen(eq=False)
class Hole:
    """The rows of one hole in a pass: row i is at position start + i of its slabs.

    The first `append` rows see the rows up to their own, the others (the canvas) see all.
    """

    rows: int
    append: int
    start: int
    slabs: list[Slab]


class HostPass(Protocol):
    """Computes passes in the processor's memory."""

    name: str
    """What computes: "numpy", or a path of the kernel."""
    dtype: type[np.float16] | type[np.float32]
    """What keys and values are stored in."""

    def run(self, numbers: Ids, holes: Sequence[Hole], wanted: Ids) -> Floats:
        """Run the rows of several holes. Return fp32 logits [wanted, vocabulary].

        numbers: [FIELDS, rows] of runner.pack_rows. wanted: [n], the rows whose logits are wanted. Writes the keys and
        values of all rows into the slabs of their holes.
        """
        ...

    def adapt(self, adapter: Adapter) -> None:
        """Let canvas rows take an adapter's additions from now on, and the token after the last one be its mask."""
        ...

    def reuse(self, logits: Floats) -> None:
        """Take logits back that nobody looks at any more, for a later pass."""
        ...
