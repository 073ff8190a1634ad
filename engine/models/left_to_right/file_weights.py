"""Weights from a file of others. The kernel packs each matrix from the bytes of the file when it takes it."""

import hashlib
import math
from collections.abc import Callable, Iterator, Sequence

import attrs
import numpy as np
from numpy.typing import NDArray

from engine.errors import ModelError
from engine.models.embedded.shape import GROUP, Floats, Shape
from engine.models.embedded.weights import HALF, Blocks, Packed, Part, Weights, quantize_int8, shapes_of
from engine.models.left_to_right.family import Names, names_of
from engine.models.left_to_right.tensor_files import FOUR_BITS, TensorFile

_EMBED, _HEAD = "embed.weight", "head.weight"
_FEW_BITS = ("Q2", "Q3", "Q4", "Q5", "Q6")
"""How the names of types begin that have at most six bits and a half."""
_TABLES = "rotary_emb.inv_freq"
"""A table that old checkpoints store, though config.json says it."""


class FileWeights(Weights):
    """The weights of a network in `file`, by our names.

    Matrices that the file has in 4 bits stay as they are. With `in_four_bits` all others but the embedding become int4,
    and without int8. A matrix of several tensors, of which one is not in 4 bits, counts as not in 4 bits.
    """

    def __init__(
        self,
        file: TensorFile,
        shape: Shape,
        names: Callable[[Names], tuple[str, ...]],
        pairs_halves: bool = False,
        in_four_bits: bool | None = None,
        on_share: Callable[[float], None] = lambda share: None,
        head: NDArray[np.int64] | None = None,
    ) -> None:
        """names: which of a Names the file uses. pairs_halves: see Family. in_four_bits: None keeps 4 bits as they are
        and makes int4 of the others if most of the layers are in few bits, False makes int8 of all. on_share: is told
        the share of the parameters that was taken. head: the tokens of the head, all if None; `shape` says how many.
        Without a head of its own the file's embedding is the head."""
        super().__init__({})
        self._file, self._shape, self._pairs_halves, self._in_four_bits = file, shape, pairs_halves, in_four_bits
        self._sizes = shapes_of(shape)
        self._theirs = {ours: names(each) for ours, each in names_of(shape.layers).items() if ours in self._sizes}
        self._head = head
        if head is not None and file.sides(self._theirs["head.weight"][0]) is None:
            self._theirs["head.weight"] = self._theirs["embed.weight"]
        if in_four_bits is None:
            self._in_four_bits = self._has_few_bits() or None
        self._on_share, self._taken = on_share, 0
        self._packed: dict[str, memoryview] = {}

    def _has_few_bits(self) -> bool:
        """Return whether most weights of the layers have at most six bits in the file."""
        sizes = {True: 0, False: 0}
        for ours, theirs in self._theirs.items():
            if len(self._sizes[ours]) == 2 and ours not in (_EMBED, _HEAD):
                for name in theirs:
                    sides = self._file.sides(name)
                    if sides is not None:
                        sizes[self._file.kind(name).startswith(_FEW_BITS)] += math.prod(sides)
        return sizes[True] > sizes[False]

    def check(self, shape: Shape) -> None:
        """Raise ModelError in one line unless the file has each tensor in its size, and no other. Reads no weights."""
        for ours, size in self._sizes.items():
            for name in self._theirs[ours]:
                if self._file.sides(name) is None:
                    raise ModelError(f"the tensor {name} is missing")
            found = [self._sides(name) for name in self._theirs[ours]]
            if ours == _HEAD and self._head is not None:
                found = [(len(self._head), *sides[1:]) for sides in found]
            if sum(sides[0] for sides in found) != size[0] or any(sides[1:] != size[1:] for sides in found):
                raise ModelError(f"the tensor {self._theirs[ours][0]} has the sides {list(found[0])}")
        known = {name for names in self._theirs.values() for name in names}
        for name in self._file.names:
            # Without it the answers would be wrong, as without the biases that Granite code has in a GGUF of a "llama".
            if name not in known and not name.endswith(_TABLES):
                raise ModelError(f"it has the tensor {name}, which the kernel does not know")
        heads, width = self._shape.heads * self._shape.head_width, self._shape.key_heads * self._shape.head_width
        for layer in range(self._shape.layers):
            if [self._sides(name)[0] for name in self._theirs[f"blocks.{layer}.qkv.weight"]] != [heads, width, width]:
                raise ModelError(f"layer {layer} has not as many heads as the file says")

    @property
    def names(self) -> list[str]:
        return list(self._sizes)

    @property
    def count(self) -> int:
        theirs = {name for names in self._theirs.values() for name in names}
        return sum(math.prod(self._file.sides(name) or ()) for name in theirs)

    @property
    def bits(self) -> int:
        four = sum(math.prod(size) for name, size in self._sizes.items() if len(size) == 2 and self._bits(name) == 4)
        return 4 if 2 * four > self.count else 8

    @property
    def bytes(self) -> int:
        """What the kernel holds them in."""
        sizes = 0.0
        for name, size in self._sizes.items():
            beside = 2 if self._is_centered(name) else 4
            each = 4.0 if len(size) == 1 else 1 + 2 / GROUP if self._bits(name) == 8 else 0.5 + beside / HALF
            sizes += math.prod(size) * each
        return round(sizes)

    def key(self, kernel: str) -> str:
        """Return a sha256 in hex of all that the packed weights depend on. kernel: that of what packs them."""
        layout = [(name, self._bits(name), self._theirs[name]) for name in self._matrices]
        head = b"" if self._head is None else self._head.tobytes()
        depends = (self._file.stamps, attrs.astuple(self._shape), self._pairs_halves, layout, kernel)
        return hashlib.sha256(repr(depends).encode() + head).hexdigest()

    def digest(self) -> str:
        """Return a sha256 in hex of each vector and of the first row of each matrix, which tells models apart.

        A head is left out: the kernel may have only some of its rows.
        """
        sums = hashlib.sha256()
        for ours, size in self._sizes.items():
            for name in self._theirs[ours] if ours != _HEAD else ():
                first = self._file.dense(name, 0, self._sides(name)[0] if len(size) == 1 else 1)
                sums.update(np.ascontiguousarray(first, np.float32).tobytes())
        return sums.hexdigest()

    def use_packed(self, matrices: Sequence[memoryview]) -> None:
        """Let the kernel take matrices that it packed before, in the order of KernelPass.packed."""
        self._packed = dict(zip(self._matrices, matrices, strict=True))

    @property
    def _matrices(self) -> list[str]:
        return [name for name, size in self._sizes.items() if len(size) == 2]

    def dense(self, name: str) -> Floats:
        """Return a matrix or vector in fp32. Raises ModelError where a vector holds numbers that are not finite."""
        found = np.concatenate([self._ordered(name, part, rows) for part, rows in self._read(name)])
        if found.ndim == 1 and not np.isfinite(found).all():
            raise ModelError(f"the tensor {self._theirs[name][0]} holds numbers that are not finite")
        return found

    def taken(self, name: str) -> Blocks | memoryview:
        """Return a matrix as it is in the file, or packed. Tensors that were taken are no longer held in memory."""
        if name in self._packed:
            return self._packed[name]
        self._file.drop()
        self._taken += math.prod(self._sizes[name])
        self._on_share(min(1.0, self._taken / self.count))
        return self._bits(name), tuple(self._part(name, part) for part in range(len(self._theirs[name])))

    def packed(self, name: str) -> Packed:
        return Packed(*quantize_int8(self.dense(name)))

    def _bits(self, name: str) -> int:
        if self._keeps(name):
            return 4
        # The embedding's errors reach every token. A head in int4 cost Qwen2.5-Coder 0.5B nothing (docs/models.md).
        return 4 if self._in_four_bits and name != _EMBED else 8

    def _keeps(self, name: str) -> bool:
        """Return whether all parts of a matrix are in 4 bits and stay so."""
        kinds = [self._file.kind(each) for each in self._theirs[name]]
        return self._in_four_bits is not False and all(kind in FOUR_BITS for kind in kinds)

    def _is_centered(self, name: str) -> bool:
        """Return whether a matrix of 4 bits needs no offsets: native/matrix.h."""
        return self._keeps(name) and all(self._file.kind(each) == "Q4_0" for each in self._theirs[name])

    def _part(self, name: str, part: int) -> Part:
        theirs = self._theirs[name][part]
        paired = self._shape.head_width if self._is_paired(name, part) else 0
        blocks, outputs = self._file.bytes_of(theirs), self._sides(theirs)[0]
        if name == _HEAD and self._head is not None:
            blocks, outputs = blocks.reshape(outputs, -1)[self._head].reshape(-1), len(self._head)
        return theirs, self._file.kind(theirs), blocks, outputs, paired

    def _read(self, name: str) -> Iterator[tuple[int, Floats]]:
        for part, theirs in enumerate(self._theirs[name]):
            rows = self._file.dense(theirs, 0, self._sides(theirs)[0]).astype(np.float32)
            yield part, rows[self._head] if name == _HEAD and self._head is not None else rows

    def _ordered(self, name: str, part: int, rows: Floats) -> Floats:
        """Return rows of the file in our order, in which the halves of a head come one after the other."""
        if not self._is_paired(name, part):
            return rows
        order = np.arange(len(rows)).reshape(-1, self._shape.head_width // 2, 2).transpose(0, 2, 1).reshape(-1)
        return rows[order]

    def _is_paired(self, name: str, part: int) -> bool:
        return self._pairs_halves and ".qkv." in name and part < 2

    def _sides(self, theirs: str) -> tuple[int, ...]:
        sides = self._file.sides(theirs)
        if sides is None:
            raise ModelError(f"the tensor {theirs} is missing")
        return sides
