"""A pass of a Llama-shaped network in NumPy, fp32.

The kernel in readable form, and its stand-in where there is none.

The network is network.Network without torch, in fp32: unlike the kernel it does not round the rows of a product.
"""

from collections.abc import Sequence

import numpy as np

from engine.models.embedded.adapter import MOST_RANK, Adapter
from engine.models.embedded.shape import Floats, Shape, rope_angles
from engine.models.embedded.slabs import SLAB, Hole, Ids, keys_and_values
from engine.models.embedded.weights import Weights


class NumpyPass:
    """Implements HostPass."""

    name = "numpy"

    def __init__(self, weights: Weights, shape: Shape, dtype: type[np.float16] | type[np.float32] = np.float32) -> None:
        self.dtype = dtype
        self._shape = shape
        self._cosine, self._sine = rope_angles(shape, shape.positions)
        self._weights = {name: self._dense(weights, name) for name in weights.names}
        self._adapter: Adapter | None = None

    def run(self, numbers: Ids, holes: Sequence[Hole], wanted: Ids) -> Floats:
        tokens, positions = numbers
        rows, canvas = self._entered(tokens), _canvas_rows(holes)
        for layer in range(self._shape.layers):
            block = f"blocks.{layer}"
            qkv = self._product(layer, "qkv", self._normalized(f"{block}.norm", rows), canvas)
            if self._shape.biased:
                qkv = qkv + self._weights[f"{block}.qkv.bias"]
            rows = rows + self._product(layer, "out", self._attention(layer, qkv, positions, holes), canvas)
            hidden = self._product(layer, "gate_up", self._normalized(f"{block}.feed_norm", rows), canvas)
            gate, up = np.split(hidden, 2, axis=1)
            rows = rows + self._product(layer, "down", _silu(gate) * up, canvas)
        return self._multiply("embed" if self._shape.tied else "head", self._normalized("norm", rows[wanted]))

    def adapt(self, adapter: Adapter) -> None:
        self._adapter = adapter
        for layer, products in enumerate(adapter.layers):
            for product, low in products.items():
                name, rest = f"blocks.{layer}.{product}", (0, MOST_RANK - adapter.rank)
                self._weights[f"{name}.a.weight"] = np.pad(low.a.dense(), (rest, (0, 0)))
                self._weights[f"{name}.b.weight"] = np.pad(low.b.dense(), ((0, 0), rest))

    def reuse(self, logits: Floats) -> None:
        pass

    def _entered(self, tokens: Ids) -> Floats:
        """Return the rows that tokens enter with."""
        embedding = self._weights["embed.weight"]
        if self._adapter is None:
            return embedding[tokens]
        rows = embedding[np.minimum(tokens, len(embedding) - 1)]
        rows[tokens == len(embedding)] = self._adapter.mask
        return rows

    def _product(self, layer: int, product: str, rows: Floats, canvas: Ids) -> Floats:
        """Return a product of a layer, with what an adapter adds to the canvas rows."""
        name = f"blocks.{layer}.{product}"
        result = self._multiply(name, rows)
        if self._adapter is not None and len(canvas):
            result[canvas] += self._multiply(f"{name}.b", self._multiply(f"{name}.a", rows[canvas]))
        return result

    def _dense(self, weights: Weights, name: str) -> Floats:
        return weights.dense(name)

    def _multiply(self, name: str, rows: Floats) -> Floats:
        product: Floats = rows @ self._weights[f"{name}.weight"].T
        return product

    def _normalized(self, name: str, rows: Floats) -> Floats:
        """Scale each row [..., width] to unit mean square, times the gains of a norm."""
        size = np.sqrt(np.square(rows).mean(-1, keepdims=True) + np.float32(self._shape.norm_epsilon))
        scaled: Floats = rows / size * self._weights[f"{name}.weight"]
        return scaled

    def _attention(self, layer: int, qkv: Floats, positions: Ids, holes: Sequence[Hole]) -> Floats:
        """Write keys and values of all rows, and return the mixed values [rows, heads * head_width]."""
        shape = self._shape
        bounds = np.cumsum((shape.heads, shape.key_heads)) * shape.head_width
        queries, keys, values = (
            part.reshape(len(qkv), -1, shape.head_width) for part in np.split(qkv, bounds.tolist(), axis=1)
        )
        if shape.head_norms:
            queries, keys = (
                self._normalized(f"blocks.{layer}.{name}_norm", part)
                for name, part in (("query", queries), ("key", keys))
            )
        cosine, sine = self._cosine[positions][:, None], self._sine[positions][:, None]
        queries, keys = _rotated(queries, cosine, sine), _rotated(keys, cosine, sine)
        mixed, first = np.empty((len(qkv), shape.heads * shape.head_width), np.float32), 0
        for hole in holes:
            own = slice(first, first + hole.rows)
            self._write(layer, hole, keys[own], values[own])
            mixed[own] = self._attend(layer, hole, queries[own])
            first += hole.rows
        return mixed

    def _write(self, layer: int, hole: Hole, keys: Floats, values: Floats) -> None:
        """Write keys and values [rows, key_heads, head_width] of a hole into its slabs."""
        heads = self._shape.key_heads
        for row in range(hole.rows):
            number, place = divmod(hole.start + row, SLAB)
            slab = hole.slabs[number][layer]
            slab[:, 0].reshape(heads, -1, SLAB)[:, :, place] = keys[row]
            slab[:, 1].reshape(heads, SLAB, -1)[:, place] = values[row]

    def _attend(self, layer: int, hole: Hole, queries: Floats) -> Floats:
        """Return the mixed values [rows, heads * head_width] of queries [rows, heads, head_width]."""
        shape, end = self._shape, hole.start + hole.rows
        keys, values = keys_and_values(hole.slabs[: -(-end // SLAB)], layer, shape.key_heads)
        # [key_heads, heads of each, rows, head_width]: heads that share keys are next to each other.
        grouped = queries.transpose(1, 0, 2).reshape(shape.key_heads, -1, hole.rows, shape.head_width)
        scores = grouped @ keys[:, None, :, :end] * np.float32(shape.head_width**-0.5)
        seen = np.full(hole.rows, end)
        seen[: hole.append] = hole.start + 1 + np.arange(hole.append)
        scores[..., np.arange(end) >= seen[:, None]] = -np.inf
        shares = np.exp(scores - scores.max(-1, keepdims=True))
        shares /= shares.sum(-1, keepdims=True)
        mixed: Floats = (shares @ values[:, None, :end]).transpose(2, 0, 1, 3).reshape(hole.rows, -1)
        return mixed


def _canvas_rows(holes: Sequence[Hole]) -> Ids:
    """Return the indices of the canvas rows of all holes together."""
    firsts = np.cumsum([0, *(hole.rows for hole in holes)])
    parts = [np.arange(first + hole.append, first + hole.rows) for first, hole in zip(firsts, holes, strict=False)]
    return np.concatenate([np.zeros(0, np.int64), *parts])


def _silu(rows: Floats) -> Floats:
    # e to the power of a number that is never positive cannot overflow.
    power = np.exp(-np.abs(rows))
    result: Floats = rows * np.where(rows < 0, power, np.float32(1)) / (1 + power)
    return result


def _rotated(rows: Floats, cosine: Floats, sine: Floats) -> Floats:
    """Apply rotary positions to rows [..., head_width]."""
    first, second = np.split(rows, 2, axis=-1)
    return np.concatenate((first * cosine - second * sine, second * cosine + first * sine), -1)
