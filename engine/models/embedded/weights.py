"""The embedded model's weights as they are on disk: int8 with a scale a row, or fp32. Does not import torch."""

from collections.abc import Mapping
from pathlib import Path

import attrs
import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file

from engine.models.embedded.ngram_lookup import STRENGTHS
from engine.models.embedded.shape import Floats, Shape

SCALE = ".scale"


@attrs.frozen(eq=False)
class Int8Rows:
    """A matrix [rows, width] in int8 with the scale of each row, fp32 [rows]."""

    values: NDArray[np.int8]
    scales: Floats


class Weights:
    """The weights of one network by their names in network.Network.

    `stored` has each matrix as int8 with its scales under the name + ".scale", or as fp32.
    """

    def __init__(self, stored: Mapping[str, NDArray[np.generic]]) -> None:
        self._stored = dict(stored)

    @classmethod
    def load(cls, path: Path) -> "Weights":
        """Read model.safetensors. Raises FileNotFoundError, and SafetensorError for a damaged file."""
        return cls(load_file(path))

    def check(self, shape: Shape) -> None:
        """Raise ValueError in one line unless these are the weights of a network of this shape, all finite."""
        expected = shapes_of(shape)
        if set(self.names) != expected.keys():
            name = min(set(self.names) ^ expected.keys())
            raise ValueError(f"{name} is {'missing' if name in expected else 'not known'}")
        for name, size in expected.items():
            stored, scale = self._stored[name], self._stored.get(name + SCALE)
            if stored.shape != size:
                raise ValueError(f"{name} is {list(stored.shape)}, not {list(size)}")
            if stored.dtype != (np.float32 if scale is None else np.int8):
                raise ValueError(f"{name} is in {stored.dtype}")
            if scale is not None and (scale.shape != size[:1] or scale.dtype != np.float32):
                raise ValueError(f"{name}{SCALE} is {list(scale.shape)} in {scale.dtype}")
            if not np.isfinite(stored if scale is None else scale).all():
                raise ValueError(f"{name} holds numbers that are not finite")

    @property
    def names(self) -> list[str]:
        """The names of the matrices."""
        return [name for name in self._stored if not name.endswith(SCALE)]

    @property
    def count(self) -> int:
        """How many parameters there are."""
        return sum(self._stored[name].size for name in self.names)

    def dense(self, name: str) -> Floats:
        """Return a matrix in fp32."""
        stored, scale = self._stored[name], self._stored.get(name + SCALE)
        values = stored.astype(np.float32)
        return values if scale is None else values * scale.astype(np.float32)[:, None]

    def rows(self, name: str, indices: NDArray[np.int64] | int) -> Floats:
        """Return rows of a matrix in fp32, in the shape of `indices` with the matrix's width after it."""
        stored, scale = self._stored[name], self._stored.get(name + SCALE)
        values = stored[indices].astype(np.float32)
        return values if scale is None else values * scale[indices].astype(np.float32)[..., None]

    def int8(self, name: str) -> Int8Rows:
        """Return a matrix in int8. One that is stored in fp32 is rounded (see int8_weights.pack)."""
        scale = self._stored.get(name + SCALE)
        if scale is not None:
            return Int8Rows(self._stored[name].astype(np.int8, copy=False), scale.astype(np.float32, copy=False))
        dense = self.dense(name)
        scales = np.maximum(np.abs(dense).max(1), np.float32(1e-12)) / np.float32(127)
        return Int8Rows(np.rint(dense / scales[:, None]).astype(np.int8), scales)


def shapes_of(shape: Shape) -> dict[str, tuple[int, int]]:
    """Return the size of each matrix of a network."""
    width, hidden = shape.width, shape.feed_forward * shape.width
    sizes = {
        "embed.weight": (shape.vocabulary, width),
        "hint.weight": (shape.vocabulary, width),
        "strength.weight": (STRENGTHS, width),
        "gram.weight": (2 * shape.gram_buckets, shape.gram_width),
        "gram_out.weight": (width, 2 * shape.gram_width),
        "head.weight": (shape.vocabulary, width),
        "copy.weight": (STRENGTHS, width + 1),
    }
    for layer in range(shape.layers):
        sizes[f"blocks.{layer}.qkv.weight"] = (3 * width, width)
        sizes[f"blocks.{layer}.out.weight"] = (width, width)
        sizes[f"blocks.{layer}.up.weight"] = (hidden, width)
        sizes[f"blocks.{layer}.down.weight"] = (width, hidden)
    if shape.link_width:
        sizes["link.up.weight"] = (shape.link_width, 2 * width)
        sizes["link.down.weight"] = (width, shape.link_width)
    return sizes
