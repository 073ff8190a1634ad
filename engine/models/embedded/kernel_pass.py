"""A pass of a Llama-shaped network in the kernel (native/): numpy_pass.NumpyPass in C, several times faster.

docs/kernel.md explains the kernel. Where it was not built, `kernel_paths` is empty.
"""

from collections.abc import Callable, Sequence
from typing import overload

import numpy as np
from numpy.typing import NDArray

from engine.models.embedded.numpy_pass import Hole, Ids
from engine.models.embedded.shape import Floats, Shape, rope_angles
from engine.models.embedded.weights import Packed, Weights

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
        arrays = _Arrays(weights, shape)
        self._network = _kernel.Network(self.name, threads, shape.norm_epsilon, sizes, arrays)
        arrays.forget()

    def run(self, numbers: Ids, holes: Sequence[Hole], wanted: Ids) -> Floats:
        vocabulary = self._shape.vocabulary
        logits = np.empty((len(wanted), -(-vocabulary // BLOCK) * BLOCK), np.float32)
        described = [(hole.rows, hole.append, hole.start, hole.slabs) for hole in holes]
        self._network.run(numbers, described, wanted, logits)
        return logits[:, :vocabulary]


class _Arrays(Sequence[NDArray[np.generic] | None]):
    """All weights in the order in which native/module.c takes them; each array is made when it is taken."""

    def __init__(self, weights: Weights, shape: Shape) -> None:
        self._weights = weights
        self._made = ("", Packed(np.zeros(0, np.uint8), np.zeros(0, np.float16)))
        layers = [f"blocks.{layer}." for layer in range(shape.layers)]
        tables = rope_angles(shape, shape.positions)
        self._takes: list[Callable[[], NDArray[np.generic] | None]] = [lambda: tables[0], lambda: tables[1]]
        for name in ("norm.weight", *(f"{layer}{norm}.weight" for layer in layers for norm in ("norm", "feed_norm"))):
            self._add_vector(name)
        self._add_matrix("embed.weight")
        for layer in layers:
            for matrix in ("qkv", "out", "gate_up", "down"):
                self._add_matrix(f"{layer}{matrix}.weight")
            self._add_vector(f"{layer}qkv.bias", shape.biased)
            self._add_vector(f"{layer}query_norm.weight", shape.head_norms)
            self._add_vector(f"{layer}key_norm.weight", shape.head_norms)
        if shape.tied:
            self._takes += [lambda: None, lambda: None]
        else:
            self._add_matrix("head.weight")

    def _add_vector(self, name: str, there: bool = True) -> None:
        self._takes.append(lambda: self._weights.dense(name) if there else None)

    def _add_matrix(self, name: str) -> None:
        self._takes.append(lambda: self._packed(name).values)
        self._takes.append(lambda: self._packed(name).all_scales)

    def _packed(self, name: str) -> Packed:
        """Return a matrix. Its scales are taken right after its values, so it is made once."""
        if self._made[0] != name:
            self._made = ("", self._made[1])
            self._made = (name, self._weights.packed(name))
        return self._made[1]

    def forget(self) -> None:
        """Drop the weights, and with them the file that they are in."""
        self._takes.clear()

    def __len__(self) -> int:
        return len(self._takes)

    @overload
    def __getitem__(self, index: int) -> NDArray[np.generic] | None: ...

    @overload
    def __getitem__(self, index: slice) -> list[NDArray[np.generic] | None]: ...

    def __getitem__(self, index: int | slice) -> NDArray[np.generic] | list[NDArray[np.generic] | None] | None:
        if isinstance(index, slice):
            return [self[at] for at in range(*index.indices(len(self)))]
        array = self._takes[index]()
        return None if array is None else np.ascontiguousarray(array)
