"""A pass of the embedded model in the kernel (native/): numpy_pass.NumpyPass in C, several times faster.

docs/kernel.md explains the kernel. Where it was not built, `kernel_paths` is empty.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from engine.models.embedded.numpy_pass import Hole, Ids
from engine.models.embedded.shape import Floats, Shape, rope_angles
from engine.models.embedded.weights import Weights

try:
    from engine.models.embedded import _kernel
except ImportError:  # There was no compiler, or it is another machine's build.
    _kernel = None  # type: ignore[assignment]

BLOCK = 64


def kernel_paths() -> list[str]:
    """Return the kernel's paths on this processor, the fastest first; none where the kernel was not built."""
    return [] if _kernel is None else list(_kernel.paths())


class KernelPass:
    """Implements numpy_pass.HostPass. Raises ValueError for sizes that do not fit; never reads or writes beyond."""

    dtype: type[np.float16] | type[np.float32] = np.float16

    def __init__(self, weights: Weights, shape: Shape, path: str = "", threads: int = 1) -> None:
        """Pack the weights for a path of `kernel_paths`, by default the fastest. The threads start when needed."""
        if _kernel is None:
            raise ValueError("the kernel was not built")
        self.name = path or kernel_paths()[0]
        self._shape = shape
        sizes = (
            shape.vocabulary,
            shape.width,
            shape.layers,
            shape.heads,
            shape.key_heads,
            shape.head_width,
            shape.hidden,
            shape.positions,
        )
        self._network = _kernel.Network(self.name, threads, shape.norm_epsilon, sizes, _arrays(weights, shape))

    def run(self, numbers: Ids, holes: Sequence[Hole], wanted: Ids) -> Floats:
        vocabulary = self._shape.vocabulary
        logits = np.empty((len(wanted), -(-vocabulary // BLOCK) * BLOCK), np.float32)
        described = [(hole.rows, hole.append, hole.start, hole.slabs) for hole in holes]
        self._network.run(numbers, described, wanted, logits)
        return logits[:, :vocabulary]


def _arrays(weights: Weights, shape: Shape) -> list[NDArray[np.generic]]:
    """Return all weights in the order in which native/module.c takes them."""
    matrices = ["embed"]
    vectors = ["norm"]
    for layer in range(shape.layers):
        matrices += [f"blocks.{layer}.{part}" for part in ("qkv", "out", "gate_up", "down")]
        vectors += [f"blocks.{layer}.{part}" for part in ("norm", "feed_norm")]
    arrays: list[NDArray[np.generic]] = [*rope_angles(shape, shape.positions)]
    arrays += [weights.dense(f"{name}.weight") for name in vectors]
    for name in matrices:
        packed = weights.packed(f"{name}.weight")
        arrays += [packed.values, packed.scales]
    return [np.ascontiguousarray(array) for array in arrays]
