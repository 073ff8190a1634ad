"""Random networks and rows for the passes of the embedded model that need no torch.

Imports NumPy, pytest, attrs and safetensors only: an emulated processor runs it too (tests/engine/run_neon.py).
"""

from typing import Literal

import numpy as np
import pytest
from numpy.typing import NDArray

from engine.models.embedded.adapter import Adapter, LowRank, Rounded, sides_of
from engine.models.embedded.numpy_pass import NumpyPass
from engine.models.embedded.runner import kernel_paths
from engine.models.embedded.shape import GROUP, Floats, Shape
from engine.models.embedded.slabs import Hole, HostPass, SlabContext
from engine.models.embedded.weights import (
    OFFSET,
    SCALE,
    Weights,
    quantize_int4,
    quantize_int8,
    shapes_of,
)

KERNELS = ("avx512-vnni", "avx-vnni", "avx2", "neon-dot", "plain")
SAME_VECTORS = (("avx-vnni", "avx2"),)
"""Paths that differ in their products alone, whose groups sum up to whole numbers: they compute the same bits."""
Storage = Literal["int4", "int8", "fp32"]
STORAGES: tuple[Storage, ...] = ("int4", "int8", "fp32")
ODD = Shape(
    vocabulary=77,
    width=128,
    layers=1,
    heads=6,
    key_heads=2,
    head_width=32,
    hidden=192,
    context_tokens=192,
    canvas_tokens=8,
)
"""No count of outputs but the hidden one is a multiple of a block; three heads share keys."""
EQUAL = Shape(
    vocabulary=130,
    width=64,
    layers=2,
    heads=4,
    key_heads=4,
    head_width=48,
    hidden=64,
    context_tokens=192,
    canvas_tokens=8,
    rope_base=500.0,
    norm_epsilon=1e-2,
)
"""Each head has its own keys, and a width that leaves a rest on each path."""
SHARED = Shape(
    vocabulary=64,
    width=192,
    layers=1,
    heads=8,
    key_heads=1,
    head_width=16,
    hidden=128,
    context_tokens=192,
    canvas_tokens=8,
)
"""More heads share keys than attention computes at once."""
QWEN2 = Shape(
    vocabulary=130,
    width=128,
    layers=2,
    heads=2,
    key_heads=1,
    head_width=64,
    hidden=192,
    context_tokens=192,
    canvas_tokens=0,
    biased=True,
)
"""Biases, and an embedding that is the head too."""
QWEN3 = Shape(
    vocabulary=77,
    width=64,
    layers=2,
    heads=2,
    key_heads=1,
    head_width=128,
    hidden=128,
    context_tokens=192,
    canvas_tokens=0,
    rope_base=1e6,
    norm_epsilon=1e-6,
    head_norms=True,
    tied=False,
)
"""Norms of queries and keys, wide heads that together are wider than a row, and a head of its own."""
SHAPES = {"odd": ODD, "equal": EQUAL, "shared": SHARED, "qwen2": QWEN2, "qwen3": QWEN3}


class RoundedPass(NumpyPass):
    """NumpyPass with what the kernel rounds: the rows of each product, and weights that are stored in fp32."""

    def _dense(self, weights: Weights, name: str) -> Floats:
        return weights.dense(name) if "norm" in name or "bias" in name else weights.packed(name).dense()

    def _multiply(self, name: str, rows: Floats) -> Floats:
        grouped = rows.reshape(len(rows), rows.shape[1] // GROUP, GROUP)
        most = np.maximum(np.abs(grouped).max(-1, keepdims=True), np.float32(1e-30))
        rounded = np.rint(grouped * (np.float32(127) / most)) * (most * np.float32(1 / 127))
        return super()._multiply(name, rounded.reshape(rows.shape))


def skip_without(runner: str) -> None:
    """Skip the test if `runner` is a path of the kernel that is not here."""
    if runner in KERNELS and runner not in kernel_paths():
        pytest.skip(f"no path {runner} here: the kernel was not built, or the processor lacks the instructions")


def random_weights(shape: Shape, storage: Storage = "int4", seed: int = 0) -> Weights:
    """Return weights of a shape: its matrices in `storage`, but in int4 networks the embedding in int8."""
    rng = np.random.default_rng(seed)
    stored: dict[str, NDArray[np.generic]] = {}
    for name, size in shapes_of(shape).items():
        if len(size) == 1:
            around = 0.0 if "bias" in name else 1.0
            stored[name] = (rng.uniform(-0.5, 0.5, size) + around).astype(np.float32)
            continue
        dense = rng.normal(0, 1.5 / size[1] ** 0.5, size).astype(np.float32)
        if storage == "fp32":
            stored[name] = dense
        elif storage == "int4" and name != "embed.weight":
            stored[name], stored[name + SCALE], stored[name + OFFSET] = quantize_int4(dense)
        else:
            stored[name], stored[name + SCALE] = quantize_int8(dense)
    return Weights(stored)


def random_adapter(shape: Shape, rank: int = 24, seed: int = 5) -> Adapter:
    """Return an adapter whose additions are as large as the products of random_weights."""
    rng = np.random.default_rng(seed)

    def matrix(outputs: int, inputs: int) -> Rounded:
        return Rounded.of(rng.normal(0, 1 / inputs**0.5, (outputs, inputs)).astype(np.float32))

    layers = [
        {
            name: LowRank(matrix(rank, inputs), matrix(outputs, rank))
            for name, (outputs, inputs) in sides_of(shape).items()
        }
        for _ in range(shape.layers)
    ]
    return Adapter(rank, 8, rng.normal(0, 1, shape.width).astype(np.float32), layers)


def random_rows(shape: Shape, count: int, start: int, seed: int = 0) -> NDArray[np.int64]:
    """Return the numbers [FIELDS, count] of rows from position `start` on."""
    rng = np.random.default_rng(seed)
    return np.stack((rng.integers(0, shape.vocabulary, count), np.arange(start, start + count)))


def run_holes(host: HostPass, shape: Shape, sizes: list[tuple[int, int, int]]) -> tuple[Floats, list[SlabContext]]:
    """Run a batch of holes, each with a read context of its own: (context, appended rows, canvas rows) each.

    Return the logits of all rows, and the contexts.
    """
    holes, numbers, contexts = [], [], []
    for seed, (read, append, canvas) in enumerate(sizes):
        context = SlabContext(shape, host.dtype)
        context.reserve(read + append + canvas)
        if read:
            host.run(random_rows(shape, read, 0, seed), [Hole(read, read, 0, context.slabs)], np.zeros(0, np.int64))
        holes.append(Hole(append + canvas, append, read, context.slabs))
        numbers.append(random_rows(shape, append + canvas, read, 100 + seed))
        contexts.append(context)
    rows = sum(hole.rows for hole in holes)
    return host.run(np.concatenate(numbers, 1), holes, np.arange(rows)), contexts
