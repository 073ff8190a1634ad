"""A pass of the embedded model in the kernel (native/): numpy_pass.NumpyPass in C, several times faster.

docs/kernel.md explains the kernel. Where it was not built, or cannot run a network's shape, `kernel_pass` says so.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from engine.models.embedded.ngram_lookup import STRENGTHS
from engine.models.embedded.numpy_pass import Hole, Ids, Result
from engine.models.embedded.shape import Shape, rope_angles
from engine.models.embedded.weights import Weights

try:
    from engine.models.embedded import _kernel
except ImportError:  # There was no compiler, or it is another machine's build.
    _kernel = None  # type: ignore[assignment]

BLOCK = 64
_LANES = 16
"""A head's width must be a multiple of the widest vector."""


def kernel_paths() -> list[str]:
    """Return the kernel's paths on this processor, the fastest first; none where the kernel was not built."""
    return [] if _kernel is None else list(_kernel.paths())


def kernel_runs(shape: Shape) -> bool:
    """Return whether the kernel is here and can run a network of this shape."""
    return _kernel is not None and shape.width % shape.heads == 0 and shape.head_width % _LANES == 0


class KernelPass:
    """Implements numpy_pass.HostPass. Raises ValueError for sizes that do not fit; never reads or writes beyond."""

    dtype: type[np.float16] | type[np.float32] = np.float16

    def __init__(self, weights: Weights, shape: Shape, path: str = "") -> None:
        """Pack the weights for a path of `kernel_paths`, by default the fastest."""
        if _kernel is None:
            raise ValueError("the kernel was not built")
        self.name = path or kernel_paths()[0]
        self._shape = shape
        sizes = (
            shape.vocabulary,
            shape.width,
            shape.layers,
            shape.heads,
            shape.feed_forward * shape.width,
            shape.gram_buckets,
            shape.gram_width,
            shape.positions,
            STRENGTHS,
        )
        self._network = _kernel.Network(self.name, sizes, _arrays(weights, shape))

    def run(self, numbers: Ids, holes: Sequence[Hole], wanted: Ids) -> Result:
        shape = self._shape
        logits = np.empty((len(wanted), _padded(shape.vocabulary)), np.float32)
        rows = np.empty((len(wanted), shape.width), np.float32)
        described = [(hole.rows, hole.append, hole.start, hole.slabs) for hole in holes]
        self._network.run(numbers, described, wanted, logits, rows)
        return Result(logits[:, : shape.vocabulary], rows)


def _arrays(weights: Weights, shape: Shape) -> list[NDArray[np.generic]]:
    """Return all weights in the order in which native/module.c takes them."""
    matrices = ["embed", "hint", "gram", "head"]
    matrices += [f"blocks.{layer}.{part}" for layer in range(shape.layers) for part in ("qkv", "out", "up", "down")]
    arrays: list[NDArray[np.generic]] = []
    for name in matrices:
        packed = weights.int8(f"{name}.weight")
        arrays += [packed.values, packed.scales]
    gram_out = np.zeros((2 * shape.gram_width, _padded(shape.width)), np.float32)
    gram_out[:, : shape.width] = weights.dense("gram_out.weight").T
    cosine, sine = rope_angles(shape, shape.positions)
    arrays += [weights.dense("strength.weight"), gram_out, weights.dense("copy.weight"), cosine, sine]
    return [np.ascontiguousarray(array) for array in arrays]


def _padded(count: int) -> int:
    return -(-count // BLOCK) * BLOCK
