"""A pass of the embedded model in NumPy, fp32: the kernel in readable form, and its stand-in where there is none.

The network is network.Network without torch; tests hold the two, and every path of the kernel, to the same numbers.
"""

from collections.abc import Sequence
from typing import Protocol

import attrs
import numpy as np
from numpy.typing import NDArray

from engine.models.embedded.shape import Floats, Shape, rope_angles
from engine.models.embedded.slabs import SLAB, Slab, keys_and_values
from engine.models.embedded.weights import Weights

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


@attrs.frozen(eq=False)
class Result:
    """fp32 logits [wanted, vocabulary], and the rows [wanted, width] from the trunk that they come from."""

    logits: Floats
    rows: Floats


class HostPass(Protocol):
    """Computes passes in the processor's memory."""

    name: str
    """What computes: "numpy", or a path of the kernel."""
    dtype: type[np.float16] | type[np.float32]
    """What keys and values are stored in."""

    def run(self, numbers: Ids, holes: Sequence[Hole], wanted: Ids) -> Result:
        """Run the rows of several holes.

        numbers: [FIELDS, rows] of rows.PackedRows. wanted: [n], the rows whose logits are wanted. Writes the keys and
        values of all rows into the slabs of their holes.
        """
        ...


class NumpyPass:
    """Implements HostPass."""

    name = "numpy"

    def __init__(self, weights: Weights, shape: Shape, dtype: type[np.float16] | type[np.float32] = np.float32) -> None:
        self.dtype = dtype
        self._weights, self._shape = weights, shape
        self._cosine, self._sine = rope_angles(shape, shape.positions)
        products = ("head", "gram_out", *(f"blocks.{layer}.{name}" for layer in range(shape.layers) for name in _PARTS))
        self._matrices = {name: weights.dense(f"{name}.weight") for name in products}

    def run(self, numbers: Ids, holes: Sequence[Hole], wanted: Ids) -> Result:
        rows = self._entry(numbers)
        positions = numbers[1]
        for layer in range(self._shape.layers):
            rows = rows + self._multiply(f"blocks.{layer}.out", self._attention(layer, rows, positions, holes))
            hidden = np.maximum(self._multiply(f"blocks.{layer}.up", _normalized(rows)), 0)
            rows = rows + self._multiply(f"blocks.{layer}.down", hidden * hidden)
        trunk = _normalized(rows[wanted])
        return Result(self._logits(trunk, numbers[2, wanted], numbers[3, wanted]), trunk)

    def _multiply(self, name: str, rows: Floats) -> Floats:
        product: Floats = rows @ self._matrices[name].T
        return product

    def _entry(self, numbers: Ids) -> Floats:
        """Return the input of the first layer: network.Network.entry."""
        weights, (tokens, _, hints, strengths) = self._weights, numbers[:4]
        grams = numbers[4:].T + np.array([0, self._shape.gram_buckets])
        rows = weights.rows("embed.weight", tokens)
        rows += weights.rows("hint.weight", hints) * weights.rows("strength.weight", strengths)
        rows += self._multiply("gram_out", weights.rows("gram.weight", grams).reshape(len(tokens), -1))
        return _normalized(rows)

    def _attention(self, layer: int, rows: Floats, positions: Ids, holes: Sequence[Hole]) -> Floats:
        """Write keys and values of all rows, and return the mixed values [rows, width]."""
        shape = self._shape
        qkv = self._multiply(f"blocks.{layer}.qkv", _normalized(rows)).reshape(
            len(rows), 3, shape.heads, shape.head_width
        )
        cosine, sine = self._cosine[positions][:, None, None], self._sine[positions][:, None, None]
        turned = _rotated(_normalized(qkv[:, :2]), cosine, sine)
        mixed, first = np.empty((len(rows), shape.width), np.float32), 0
        for hole in holes:
            own = slice(first, first + hole.rows)
            self._write(layer, hole, turned[own, 1], qkv[own, 2])
            mixed[own] = self._attend(layer, hole, turned[own, 0])
            first += hole.rows
        return mixed

    def _write(self, layer: int, hole: Hole, keys: Floats, values: Floats) -> None:
        """Write keys and values [rows, heads, head_width] of a hole into its slabs."""
        heads = self._shape.heads
        for row in range(hole.rows):
            number, place = divmod(hole.start + row, SLAB)
            slab = hole.slabs[number][layer]
            slab[:, 0].reshape(heads, -1, SLAB)[:, :, place] = keys[row]
            slab[:, 1].reshape(heads, SLAB, -1)[:, place] = values[row]

    def _attend(self, layer: int, hole: Hole, queries: Floats) -> Floats:
        """Return the mixed values [rows, width] of queries [rows, heads, head_width]."""
        end = hole.start + hole.rows
        keys, values = keys_and_values(hole.slabs[: -(-end // SLAB)], layer, self._shape.heads)
        scores = queries.transpose(1, 0, 2) @ keys[..., :end] * np.float32(self._shape.head_width**-0.5)
        seen = np.full(hole.rows, end)
        seen[: hole.append] = hole.start + 1 + np.arange(hole.append)
        scores[:, np.arange(end) >= seen[:, None]] = -np.inf
        shares = np.exp(scores - scores.max(-1, keepdims=True))
        shares /= shares.sum(-1, keepdims=True)
        mixed: Floats = (shares @ values[:, :end]).transpose(1, 0, 2).reshape(hole.rows, -1)
        return mixed

    def _logits(self, rows: Floats, hints: Ids, strengths: Ids) -> Floats:
        """Return the logits of rows with their hints: network.Network.logits."""
        logits = self._multiply("head", rows)
        copy = self._weights.rows("copy.weight", strengths)
        logits[np.arange(len(rows)), hints] += (rows * copy[:, :-1]).sum(-1) + copy[:, -1]
        return logits


_PARTS = ("qkv", "out", "up", "down")


def _normalized(rows: Floats) -> Floats:
    """Scale each row [..., n] to unit mean square."""
    size = np.sqrt(np.square(rows).mean(-1, keepdims=True))
    scaled: Floats = rows / np.maximum(size, np.float32(1e-6))
    return scaled


def _rotated(rows: Floats, cosine: Floats, sine: Floats) -> Floats:
    """Apply rotary positions to rows [..., head_width]."""
    first, second = np.split(rows, 2, axis=-1)
    return np.concatenate((first * cosine - second * sine, second * cosine + first * sine), -1)
