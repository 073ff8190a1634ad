"""The weights of the embedded model as they are on disk: int4 and int8 with scales, or fp32. Does not import torch."""

from collections.abc import Mapping
from pathlib import Path

import attrs
import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file

from engine.models.embedded.shape import GROUP, Floats, Shape

SCALE = ".scale"
SHRINK = (1.0, 0.96, 0.92, 0.88, 0.84, 0.8, 0.76, 0.72)
"""Scales that are tried for a group, as shares of the one that keeps its largest number: most groups lose less by
clipping it."""
_TINY = 1e-7


@attrs.frozen(eq=False)
class Packed:
    """A matrix [outputs, inputs] in whole numbers: uint8 [outputs, inputs / 2] in int4, or int8 [outputs, inputs].

    int4: byte j has input 2j in its low half and 2j + 1 in its high half, each plus 8. scales: fp16
    [outputs, inputs / GROUP].
    """

    values: NDArray[np.uint8] | NDArray[np.int8]
    scales: NDArray[np.float16]

    @property
    def is_int4(self) -> bool:
        return self.values.dtype == np.uint8


class Weights:
    """The weights of one network by their names in network.Network.

    `stored` has each matrix as Packed's values with its scales under the name + ".scale", or as fp32.
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
            if scale is not None and len(size) == 2 and stored.dtype == np.uint8:
                size = (size[0], size[1] // 2)
            if stored.shape != size:
                raise ValueError(f"{name} is {list(stored.shape)}, not {list(size)}")
            if scale is None:
                if stored.dtype != np.float32:
                    raise ValueError(f"{name} is in {stored.dtype}")
            elif len(size) != 2 or stored.dtype not in (np.uint8, np.int8):
                raise ValueError(f"{name} is in {stored.dtype} with scales")
            elif scale.shape != (size[0], expected[name][1] // GROUP) or scale.dtype != np.float16:
                raise ValueError(f"{name}{SCALE} is {list(scale.shape)} in {scale.dtype}")
            if not np.isfinite(stored if scale is None else scale).all():
                raise ValueError(f"{name} holds numbers that are not finite")

    @property
    def names(self) -> list[str]:
        """The names of the weights."""
        return [name for name in self._stored if not name.endswith(SCALE)]

    @property
    def count(self) -> int:
        """How many parameters there are."""
        halves = (name for name in self.names if self._stored[name].dtype == np.uint8)
        return sum(self._stored[name].size for name in self.names) + sum(self._stored[name].size for name in halves)

    def dense(self, name: str) -> Floats:
        """Return a weight in fp32."""
        return self._dense(self._stored[name], self._stored.get(name + SCALE))

    def rows(self, name: str, indices: NDArray[np.int64]) -> Floats:
        """Return rows of a matrix in fp32, [..., width] for indices [...]."""
        scale = self._stored.get(name + SCALE)
        return self._dense(self._stored[name][indices], None if scale is None else scale[indices])

    @staticmethod
    def _dense(stored: NDArray[np.generic], scale: NDArray[np.generic] | None) -> Floats:
        if scale is None:
            return stored.astype(np.float32)
        if stored.dtype == np.uint8:
            halves = np.stack((stored & np.uint8(15), stored >> np.uint8(4)), -1)  # type: ignore[operator]
            stored = halves.reshape(*stored.shape[:-1], -1).astype(np.int8) - np.int8(8)
        values = stored.reshape(*scale.shape, GROUP).astype(np.float32) * scale.astype(np.float32)[..., None]
        dense: Floats = values.reshape(stored.shape)
        return dense

    def packed(self, name: str) -> Packed:
        """Return a matrix in whole numbers. One that is stored in fp32 is rounded to int8."""
        scale = self._stored.get(name + SCALE)
        if scale is None:
            return Packed(*quantize_int8(self.dense(name)))
        stored = self._stored[name]
        return Packed(stored.astype(stored.dtype, copy=False), scale.astype(np.float16, copy=False))


def shapes_of(shape: Shape) -> dict[str, tuple[int, ...]]:
    """Return the size of each weight of a network."""
    width, mixed = shape.width, shape.heads * shape.head_width
    sizes: dict[str, tuple[int, ...]] = {"embed.weight": (shape.vocabulary, width), "norm.weight": (width,)}
    for layer in range(shape.layers):
        block = f"blocks.{layer}"
        sizes[f"{block}.norm.weight"] = sizes[f"{block}.feed_norm.weight"] = (width,)
        sizes[f"{block}.qkv.weight"] = ((shape.heads + 2 * shape.key_heads) * shape.head_width, width)
        sizes[f"{block}.out.weight"] = (width, mixed)
        sizes[f"{block}.gate_up.weight"] = (2 * shape.hidden, width)
        sizes[f"{block}.down.weight"] = (width, shape.hidden)
    return sizes


def quantize_int8(dense: Floats) -> tuple[NDArray[np.int8], NDArray[np.float16]]:
    """Return a matrix [outputs, inputs] in int8, and its scales [outputs, inputs / GROUP]."""
    groups = dense.reshape(len(dense), -1, GROUP)
    scales = np.maximum(np.abs(groups).max(2, keepdims=True) / 127, _TINY).astype(np.float16)
    # A scale that was rounded down must not push the largest number past 127.
    whole = np.clip(np.rint(groups / scales.astype(np.float32)), -127, 127).astype(np.int8)
    return whole.reshape(dense.shape), scales[..., 0]


def quantize_int4(dense: Floats) -> tuple[NDArray[np.uint8], NDArray[np.float16]]:
    """Return a matrix [outputs, inputs] in int4 (see Packed), and its scales [outputs, inputs / GROUP].

    Of the scales that SHRINK gives, a group takes the one that loses least. -8 stands for the largest number of a
    group, so a scale is negative where that is positive.
    """
    groups = dense.reshape(len(dense), -1, GROUP)
    largest = np.take_along_axis(groups, np.abs(groups).argmax(2, keepdims=True), 2)
    best, least = np.zeros_like(largest), np.full_like(largest, np.inf)
    for shrink in SHRINK:
        scale = (largest * np.float32(-shrink / 8)).astype(np.float16).astype(np.float32)
        scale = np.where(np.abs(scale) < _TINY, np.float32(np.float16(1e-4)), scale)
        lost = np.square(np.clip(np.rint(groups / scale), -8, 7) * scale - groups).sum(2, keepdims=True)
        best, least = np.where(lost < least, scale, best), np.minimum(lost, least)
    whole = (np.clip(np.rint(groups / best), -8, 7) + 8).astype(np.uint8).reshape(dense.shape)
    return whole[:, ::2] | whole[:, 1::2] << 4, best[..., 0].astype(np.float16)
