"""Weights for the kernel from a file of others: each matrix is read, joined and rounded when the kernel takes it."""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.errors import ModelError
from engine.models.embedded.shape import GROUP, Floats, Shape
from engine.models.embedded.weights import (
    HALF,
    Packed,
    Scales,
    Weights,
    quantize_int8,
    quantize_with_offsets,
    shapes_of,
)
from engine.models.llama.family import Names, names_of
from engine.models.llama.tensor_files import FOUR_BITS, TensorFile

_AT_ONCE = 1 << 22
"""Weights that are in fp32 at once."""
_WHOLE = ("embed.weight", "head.weight")
"""Matrices that int4 never rounds: their errors reach every token."""


class FileWeights(Weights):
    """The weights of a network in `file`, by our names.

    Matrices that the file has in 4 bits stay as they are. Others become int8; with `in_four_bits` those of the layers
    become int4. A matrix of several tensors, of which one is not in 4 bits, counts as not in 4 bits.
    """

    def __init__(
        self,
        file: TensorFile,
        shape: Shape,
        names: Callable[[Names], tuple[str, ...]],
        pairs_halves: bool = False,
        in_four_bits: bool | None = None,
        on_share: Callable[[float], None] = lambda share: None,
    ) -> None:
        """names: which of a Names the file uses. pairs_halves: see Family. in_four_bits: None keeps 4 bits as they are,
        False makes int8 of them. on_share: is told the share of the parameters that was taken."""
        super().__init__({})
        self._file, self._shape, self._pairs_halves, self._in_four_bits = file, shape, pairs_halves, in_four_bits
        self._sizes = shapes_of(shape)
        self._theirs = {ours: names(each) for ours, each in names_of(shape.layers).items() if ours in self._sizes}
        self._on_share, self._taken = on_share, 0

    def check(self, shape: Shape) -> None:
        """Raise ModelError in one line unless the file has each tensor in its size. Reads no weights."""
        for ours, size in self._sizes.items():
            for name in self._theirs[ours]:
                if self._file.sides(name) is None:
                    raise ModelError(f"the tensor {name} is missing")
            found = [self._sides(name) for name in self._theirs[ours]]
            if sum(sides[0] for sides in found) != size[0] or any(sides[1:] != size[1:] for sides in found):
                raise ModelError(f"the tensor {self._theirs[ours][0]} has the sides {list(found[0])}")
        heads, width = self._shape.heads * self._shape.head_width, self._shape.key_heads * self._shape.head_width
        for layer in range(self._shape.layers):
            if [self._sides(name)[0] for name in self._theirs[f"blocks.{layer}.qkv.weight"]] != [heads, width, width]:
                raise ModelError(f"layer {layer} has not as many heads as the file says")

    @property
    def names(self) -> list[str]:
        return list(self._sizes)

    @property
    def count(self) -> int:
        return sum(math.prod(size) for size in self._sizes.values())

    @property
    def bits(self) -> int:
        four = sum(math.prod(size) for name, size in self._sizes.items() if len(size) == 2 and self._bits(name) == 4)
        return 4 if 2 * four > self.count else 8

    @property
    def bytes(self) -> int:
        """What the kernel holds them in."""
        sizes = 0.0
        for name, size in self._sizes.items():
            each = 4.0 if len(size) == 1 else 1 + 2 / GROUP if self._bits(name) == 8 else 0.5 + 4 / HALF
            sizes += math.prod(size) * each
        return round(sizes)

    def dense(self, name: str) -> Floats:
        return np.concatenate([self._ordered(name, part, rows) for part, rows in self._read(name)])

    def rows(self, name: str, indices: NDArray[np.int64] | int) -> Floats:
        return self.dense(name)[indices]

    def packed(self, name: str) -> Packed:
        parts = [self._packed(name, part) for part in range(len(self._theirs[name]))]
        result = _joined(parts)
        kept = result.scales if result.offsets is None else np.stack((result.scales, result.offsets))
        if not np.isfinite(kept).all():
            raise ModelError(f"the tensor {self._theirs[name][0]} holds numbers that are not finite")
        self._taken += math.prod(self._sizes[name])
        self._on_share(self._taken / self.count)
        return result

    def _bits(self, name: str) -> int:
        if self._keeps(name):
            return 4
        return 4 if self._in_four_bits and name not in _WHOLE else 8

    def _keeps(self, name: str) -> bool:
        """Return whether all parts of a matrix are in 4 bits and stay so."""
        kinds = [self._file.kind(each) for each in self._theirs[name]]
        return self._in_four_bits is not False and all(kind in FOUR_BITS for kind in kinds)

    def _packed(self, name: str, part: int) -> Packed:
        theirs = self._theirs[name][part]
        packed = self._file.packed(theirs) if self._keeps(name) else self._rounded(theirs, self._bits(name))
        if (order := self._order(name, part)) is None:
            return packed
        offsets = None if packed.offsets is None else packed.offsets[order]
        return Packed(packed.values[order], packed.scales[order], offsets)

    def _rounded(self, theirs: str, bits: int) -> Packed:
        """Round a tensor, some rows at a time."""
        pieces = []
        for first, stop in self._pieces(theirs):
            rows = self._file.dense(theirs, first, stop)
            if not np.isfinite(rows).all():
                raise ModelError(f"the tensor {theirs} holds numbers that are not finite")
            pieces.append(Packed(*(quantize_int8(rows) if bits == 8 else quantize_with_offsets(rows))))
        return _joined(pieces)

    def _pieces(self, theirs: str) -> Iterator[tuple[int, int]]:
        rows, *inputs = self._sides(theirs)
        step = max(1, _AT_ONCE // math.prod(inputs))
        return ((first, min(first + step, rows)) for first in range(0, rows, step))

    def _read(self, name: str) -> Iterator[tuple[int, Floats]]:
        for part, theirs in enumerate(self._theirs[name]):
            yield part, self._file.dense(theirs, 0, self._sides(theirs)[0]).astype(np.float32)

    def _ordered(self, name: str, part: int, rows: Floats) -> Floats:
        order = self._order(name, part)
        return rows if order is None else rows[order]

    def _order(self, name: str, part: int) -> NDArray[np.int64] | None:
        """Return which of the file's rows of q or k are ours, one after the other; None where they are in our order."""
        if not self._pairs_halves or ".qkv." not in name or part == 2:
            return None
        rows = self._sides(self._theirs[name][part])[0]
        return np.arange(rows).reshape(-1, self._shape.head_width // 2, 2).transpose(0, 2, 1).reshape(-1)

    def _sides(self, theirs: str) -> tuple[int, ...]:
        sides = self._file.sides(theirs)
        if sides is None:
            raise ModelError(f"the tensor {theirs} is missing")
        return sides


def _joined(pieces: Sequence[Packed]) -> Packed:
    """Return pieces of a matrix, which have the same inputs, as one."""
    values: NDArray[Any] = np.concatenate([piece.values for piece in pieces])
    scales: Scales = np.concatenate([piece.scales for piece in pieces])
    offsets = [piece.offsets for piece in pieces if piece.offsets is not None]
    return Packed(values, scales, np.concatenate(offsets) if offsets else None)
