"""Random networks and rows for the passes of the embedded model that need no torch.

Imports NumPy, pytest, attrs and safetensors only: an emulated processor runs it too (tests/engine/run_neon.py).
"""

import numpy as np
import pytest
from numpy.typing import NDArray

from engine.models.embedded.kernel_pass import kernel_paths
from engine.models.embedded.ngram_lookup import STRENGTHS
from engine.models.embedded.numpy_pass import Hole, HostPass, Result
from engine.models.embedded.shape import Shape
from engine.models.embedded.slabs import SlabContext
from engine.models.embedded.weights import SCALE, Weights, shapes_of

KERNELS = ("avx512-vnni", "avx-vnni", "avx2", "neon-matrix", "neon-dot", "plain")
SAME_VECTORS = (("avx-vnni", "avx2"), ("neon-matrix", "neon-dot"))
"""Paths that differ in their products alone, and products are whole numbers: they compute the same bits."""
FP32_ALWAYS = ("strength.weight", "gram_out.weight", "copy.weight")
ODD = Shape(
    vocabulary=77,
    width=48,
    layers=2,
    heads=3,
    context_tokens=192,
    canvas_tokens=8,
    gram_buckets=9,
    gram_width=5,
    feed_forward=3,
)
"""No size is a multiple of a vector or of a block."""
WIDE = Shape(
    vocabulary=130,
    width=192,
    layers=1,
    heads=2,
    context_tokens=192,
    canvas_tokens=8,
    gram_buckets=9,
    gram_width=33,
    link_width=8,
)
"""Its heads take several vectors and a rest on each path."""


def skip_without(runner: str) -> None:
    """Skip the test if `runner` is a path of the kernel that is not here."""
    if runner in KERNELS and runner not in kernel_paths():
        pytest.skip(f"no path {runner} here: the kernel was not built, or the processor lacks the instructions")


def random_weights(shape: Shape, seed: int = 0) -> Weights:
    """Return weights of a shape, in int8 where the kernel has int8."""
    rng = np.random.default_rng(seed)
    stored: dict[str, NDArray[np.generic]] = {}
    for name, size in shapes_of(shape).items():
        if name in FP32_ALWAYS:
            stored[name] = rng.normal(0, 0.3, size).astype(np.float32)
        else:
            stored[name] = rng.integers(-127, 128, size, np.int8)
            stored[name + SCALE] = rng.uniform(0.5, 2, size[0]).astype(np.float32) * np.float32(
                1.5 / 127 / size[1] ** 0.5
            )
    return Weights(stored)


def random_rows(shape: Shape, count: int, start: int, seed: int = 0) -> NDArray[np.int64]:
    """Return the numbers [FIELDS, count] of rows from position `start` on."""
    rng = np.random.default_rng(seed)
    bounds = (shape.vocabulary, 1, shape.vocabulary, STRENGTHS, shape.gram_buckets, shape.gram_buckets)
    numbers = np.stack([rng.integers(0, bound, count) for bound in bounds])
    numbers[1] = np.arange(start, start + count)
    return numbers


def run_holes(host: HostPass, shape: Shape, sizes: list[tuple[int, int, int]]) -> tuple[Result, list[SlabContext]]:
    """Run a batch of holes, each with a read context of its own: (context, appended rows, canvas rows) each.

    Return the results of all rows, and the contexts.
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
