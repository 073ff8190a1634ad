"""A network's weights as they are on disk: in 4 bits with a scale and an offset for each 32 inputs, int8, or fp32.

Does not import torch.
"""

from collections.abc import Mapping
from pathlib import Path

import attrs
import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file

from engine.models.embedded.shape import GROUP, Floats, Shape

SCALE, OFFSET = ".scale", ".offset"
CENTRE, STEPS = ".centre", ".steps"
HALF = 32
"""Weights of 4 bits of an output that share a scale and an offset."""
MIDDLE = 7.5
"""The mean of the numbers from 0 to 15."""
_SHARED = 8
"""Outputs whose centres count in one step."""
_REFITS = 3
"""Scale and offset of a group are fitted to its numbers again so often: more changes next to nothing."""
_LARGEST = np.float32(np.finfo(np.float16).max)
_SMALLEST = np.float32(np.finfo(np.float16).tiny)

Scales = NDArray[np.float16]
Part = tuple[str, str, NDArray[np.uint8], int, int]
"""A tensor of another program's file: name, type, its bytes, its outputs, and the width of heads whose halves it has
side by side, else 0."""
Blocks = tuple[int, tuple[Part, ...]]
"""A matrix as it is in such a file, for the kernel to pack: its bits there, 8 or 4 with offsets, and its parts."""


@attrs.frozen(eq=False)
class Packed:
    """A quantized matrix: int8 [outputs, inputs] with scales [outputs, inputs / 64], or 4 bits.

    These are uint8 [outputs, inputs / 2], with scales and offsets [outputs, inputs / 32]: byte j has input 2j in its
    low half and 2j + 1 in its high one, and a weight is its number from 0 to 15 times the scale, plus the offset.
    """

    values: NDArray[np.uint8] | NDArray[np.int8]
    scales: Scales
    offsets: Scales | None = None

    def dense(self) -> Floats:
        """Return the matrix in fp32."""
        return _dense(self.values, self.scales, self.offsets)

    @property
    def all_scales(self) -> Scales:
        """Scales as the kernel takes them: with offsets [outputs, inputs / 64, 4], two scales and then two offsets."""
        if self.offsets is None:
            return self.scales
        pairs = [each.reshape(len(each), -1, 2) for each in (self.scales, self.offsets)]
        return np.concatenate(pairs, 2)


class Weights:
    """The weights of one network by their names (`shapes_of`).

    `stored` has each matrix as fp32, or quantized (see Packed) with its scales under the name + ".scale", and offsets
    under the name + ".offset". Vectors are fp32.
    """

    def __init__(self, stored: Mapping[str, NDArray[np.generic]]) -> None:
        self._stored = dict(stored)

    @classmethod
    def load(cls, path: Path) -> "Weights":
        """Read model.safetensors.

        Scales and centres in 8 bits (`in_steps`) become scales and offsets in fp16. Raises FileNotFoundError,
        SafetensorError for a damaged file, and ValueError for centres that do not fit their scales.
        """
        stored: dict[str, NDArray[np.generic]] = load_file(path)
        for name in [name.removesuffix(STEPS) for name in stored if name.endswith(STEPS)]:
            parts = [stored.pop(name + part, np.zeros(0)) for part in (SCALE, CENTRE, STEPS)]
            scale, centre, steps = parts
            outputs = len(scale)
            count = outputs + -(-outputs // _SHARED)
            fits = scale.ndim == 2 and scale.shape == centre.shape and steps.shape == (count,)
            if not fits or [part.dtype for part in parts] != [np.uint8, np.int8, np.float16]:
                raise ValueError(f"the scales, centres and steps of {name} do not fit each other")
            of_scales, of_centres = _of_outputs(steps, outputs)
            scales, centres = scale.astype(np.float32) * of_scales, centre.astype(np.float32) * of_centres
            stored[name + SCALE], stored[name + OFFSET] = _to_half(scales), _to_half(centres - MIDDLE * scales)
        return cls(stored)

    def check(self, shape: Shape) -> None:
        """Raise ValueError in one line unless these are the weights of a network of this shape, all finite."""
        expected = shapes_of(shape)
        if set(self.names) != expected.keys():
            name = min(set(self.names) ^ expected.keys())
            raise ValueError(f"{name} is {'missing' if name in expected else 'not known'}")
        for name, size in expected.items():
            stored, scale = self._stored[name], self._stored.get(name + SCALE)
            quantized = scale is not None and len(size) == 2
            if stored.dtype not in ((np.uint8, np.int8) if quantized else (np.float32,)):
                raise ValueError(f"{name} is in {stored.dtype}")
            held = (size[0], size[1] // 2) if stored.dtype == np.uint8 else size
            if stored.shape != held:
                raise ValueError(f"{name} is {list(stored.shape)}, not {list(held)}")
            offset = self._stored.get(name + OFFSET)
            if scale is not None:
                if not quantized or (offset is None) == (stored.dtype == np.uint8):
                    raise ValueError(f"{name} in {stored.dtype} has {'no' if offset is None else 'an'} offset")
                groups = (size[0], size[1] // (GROUP if offset is None else HALF))
                for part, found in ((SCALE, scale), (OFFSET, offset)):
                    if found is not None and (found.shape != groups or found.dtype != np.float16):
                        raise ValueError(f"{name}{part} is {list(found.shape)} in {found.dtype}")
            numbers = [each for each in (stored if scale is None else scale, offset) if each is not None]
            if not all(np.isfinite(each).all() for each in numbers):
                raise ValueError(f"{name} holds numbers that are not finite")
        for name in self._stored:
            if name.endswith((SCALE, OFFSET)) and name.removesuffix(SCALE).removesuffix(OFFSET) not in expected:
                raise ValueError(f"{name} is not known")

    @property
    def names(self) -> list[str]:
        """The names of the matrices and vectors."""
        return [name for name in self._stored if not name.endswith((SCALE, OFFSET))]

    @property
    def count(self) -> int:
        """How many parameters there are."""
        return sum(self._stored[name].size * (2 if self._stored[name].dtype == np.uint8 else 1) for name in self.names)

    @property
    def bits(self) -> int:
        """How many bits most of the weights have that the kernel computes with."""
        sizes = {4: 0, 8: 0}
        for name in self.names:
            stored = self._stored[name]
            sizes[4 if stored.dtype == np.uint8 else 8] += stored.size * (2 if stored.dtype == np.uint8 else 1)
        return 4 if sizes[4] > sizes[8] else 8

    def dense(self, name: str) -> Floats:
        """Return a matrix or vector in fp32."""
        return _dense(self._stored[name], self._stored.get(name + SCALE), self._stored.get(name + OFFSET))

    def taken(self, name: str) -> Packed | Blocks | memoryview:
        """Return a matrix as the kernel takes it; as a memoryview if the kernel packed it before."""
        return self.packed(name)

    def packed(self, name: str) -> Packed:
        """Return a quantized matrix. One that is stored in fp32 is rounded to int8."""
        stored, scale = self._stored[name], self._stored.get(name + SCALE)
        if scale is None:
            return Packed(*quantize_int8(self.dense(name)))
        values: NDArray[np.uint8] | NDArray[np.int8] = (
            stored.astype(np.uint8, copy=False) if stored.dtype == np.uint8 else stored.astype(np.int8, copy=False)
        )
        offset = self._stored.get(name + OFFSET)
        offsets = None if offset is None else offset.astype(np.float16, copy=False)
        return Packed(values, scale.astype(np.float16, copy=False), offsets)


def shapes_of(shape: Shape) -> dict[str, tuple[int, ...]]:
    """Return the size of each matrix [outputs, inputs] and vector of a network."""
    width, mixed = shape.width, shape.heads * shape.head_width
    sizes: dict[str, tuple[int, ...]] = {"embed.weight": (shape.vocabulary, width), "norm.weight": (width,)}
    for layer in range(shape.layers):
        block = f"blocks.{layer}"
        sizes[f"{block}.norm.weight"] = (width,)
        sizes[f"{block}.qkv.weight"] = (mixed + 2 * shape.key_heads * shape.head_width, width)
        if shape.biased:
            sizes[f"{block}.qkv.bias"] = (mixed + 2 * shape.key_heads * shape.head_width,)
        if shape.head_norms:
            sizes[f"{block}.query_norm.weight"] = sizes[f"{block}.key_norm.weight"] = (shape.head_width,)
        sizes[f"{block}.out.weight"] = (width, mixed)
        sizes[f"{block}.feed_norm.weight"] = (width,)
        sizes[f"{block}.gate_up.weight"] = (2 * shape.hidden, width)
        sizes[f"{block}.down.weight"] = (width, shape.hidden)
    if not shape.tied:
        sizes["head.weight"] = (shape.outputs, width)
    return sizes


def quantize_int8(dense: Floats) -> tuple[NDArray[np.int8], Scales]:
    """Round a matrix to int8 [outputs, inputs], with fp16 scales for each 64 inputs."""
    groups = _groups(dense)
    scales = _half(np.abs(groups).max(-1) / 127)
    whole = np.rint(groups / scales.astype(np.float32)[..., None])
    return np.clip(whole, -127, 127).astype(np.int8).reshape(dense.shape), scales


def in_steps(scales: Floats, centres: Floats) -> tuple[NDArray[np.uint8], NDArray[np.int8], Scales]:
    """Return scales and centres in 8 bits [outputs, inputs / 32], and the steps fp16 that they count in.

    The scales of each output have a step of their own, and the centres of each 8 outputs one, after these. With one
    step for all centres of a matrix the embedded model lost 1.1 nats at each <end>. A centre is what the mean of the
    numbers, 7.5, stands for. Scales are not negative.
    """
    least, largest = np.finfo(np.float16).smallest_subnormal, _LARGEST
    outputs = len(scales)
    largest_centres = np.maximum.reduceat(np.abs(centres).max(-1), np.arange(0, outputs, _SHARED))
    steps = np.append(scales.max(-1) / 255, largest_centres / 127).clip(least, largest).astype(np.float16)
    of_scales, of_centres = _of_outputs(steps, outputs)
    codes = np.rint(scales / of_scales).clip(0, 255), np.rint(centres / of_centres).clip(-127, 127)
    return codes[0].astype(np.uint8), codes[1].astype(np.int8), steps


def _of_outputs(steps: NDArray[np.generic], outputs: int) -> tuple[Floats, Floats]:
    """Return the steps [outputs, 1] of each output's scales, and of its centres, from those of `in_steps`."""
    wide = steps.astype(np.float32)[:, None]
    return wide[:outputs], np.repeat(wide[outputs:], _SHARED, 0)[:outputs]


def quantize_int4(dense: Floats) -> tuple[NDArray[np.uint8], Scales, Scales]:
    """Round a matrix to 4 bits, with fp16 scales and offsets for each 32 inputs: see Packed.

    At first the numbers of a group reach from its smallest weight to its largest one. Then its scale and offset are
    those of least squares for its numbers, and these those for the scale and the offset, in turns.
    """
    groups = dense.astype(np.float32, copy=False).reshape(len(dense), -1, HALF)
    least = groups.min(-1)
    offsets = least.clip(-_LARGEST, _LARGEST).astype(np.float16)
    scales = _half((groups.max(-1) - least) / 15)
    whole, missed = _rounded_with(groups, scales, offsets)
    going_on = missed > 0
    for _ in range(_REFITS):
        numbers, weights = whole.astype(np.float64), groups.astype(np.float64)
        sums, of_weights = numbers.sum(-1), weights.sum(-1)
        spread = HALF * np.square(numbers).sum(-1) - np.square(sums)
        going_on &= spread > 0
        unit = (HALF * (numbers * weights).sum(-1) - sums * of_weights) / np.where(spread > 0, spread, 1)
        other_scales = unit.astype(np.float32).clip(_SMALLEST, _LARGEST).astype(np.float16)
        other_offsets = ((of_weights - unit * sums) / HALF).astype(np.float32).clip(-_LARGEST, _LARGEST)
        others, other_missed = _rounded_with(groups, other_scales, other_offsets.astype(np.float16))
        going_on &= other_missed < missed
        scales = np.where(going_on, other_scales, scales)
        offsets = np.where(going_on, other_offsets.astype(np.float16), offsets)
        whole = np.where(going_on[..., None], others, whole)
        missed = np.where(going_on, other_missed, missed)
    return packed_pairs(whole.reshape(dense.shape)), scales, offsets


def _rounded_with(groups: Floats, scales: Scales, offsets: Scales) -> tuple[NDArray[np.uint8], NDArray[np.float64]]:
    """Return the numbers of groups [outputs, groups, 32], and the sums of the squares of what they miss."""
    units, starts = scales.astype(np.float32)[..., None], offsets.astype(np.float32)[..., None]
    whole = np.rint((groups - starts) / units).clip(0, 15)
    missed = groups.astype(np.float64) - starts - whole.astype(np.float64) * units
    return whole.astype(np.uint8), np.square(missed).sum(-1)


def packed_pairs(whole: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return numbers from 0 to 15 [outputs, inputs] as Packed.values."""
    packed: NDArray[np.uint8] = (whole[:, ::2] | whole[:, 1::2] << 4).astype(np.uint8, copy=False)
    return packed


def unpacked_pairs(packed: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return the numbers from 0 to 15 [outputs, inputs] of Packed.values."""
    return np.stack((packed & 15, packed >> 4), -1).reshape(*packed.shape[:-1], -1)


def _groups(dense: Floats) -> Floats:
    """Return a matrix as [outputs, inputs / 64, 64]."""
    return dense.astype(np.float32, copy=False).reshape(len(dense), -1, GROUP)


def _to_half(numbers: Floats) -> Scales:
    with np.errstate(over="ignore"):  # what becomes infinite is refused by `check`
        return numbers.astype(np.float16)


def _half(scales: Floats) -> Scales:
    """Round scales to fp16. None becomes 0 or infinite, so that one can divide by it."""
    bounded = np.clip(np.abs(scales), _SMALLEST, _LARGEST)
    signed: Floats = np.copysign(bounded, scales)
    return signed.astype(np.float16)


def _dense(
    stored: NDArray[np.generic], scale: NDArray[np.generic] | None, offset: NDArray[np.generic] | None = None
) -> Floats:
    """Return numbers [..., inputs] in fp32."""
    if scale is None:
        return stored.astype(np.float32)
    if stored.dtype == np.uint8:
        whole = unpacked_pairs(stored.astype(np.uint8, copy=False)).astype(np.float32)
    else:
        whole = stored.astype(np.float32)
    grouped = whole.reshape(*scale.shape, GROUP if offset is None else HALF) * scale.astype(np.float32)[..., None]
    if offset is not None:
        grouped += offset.astype(np.float32)[..., None]
    return grouped.reshape(*stored.shape[:-1], -1)
