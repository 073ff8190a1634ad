"""Random matrices in the types of GGUF files, for the kernel to pack. Needs no torch and no package gguf."""

import numpy as np
from numpy.typing import NDArray

from engine.library.gguf_file import BLOCKS
from engine.models.embedded.shape import Shape
from engine.models.embedded.weights import Blocks, Part, Weights, shapes_of

SIZES = {name: (weights, size) for name, weights, size in BLOCKS.values()}
_HALVES = {
    "Q4_0": (0,),
    "Q4_1": (0, 2),
    "Q5_0": (0,),
    "Q5_1": (0, 2),
    "Q8_0": (0,),
    "Q2_K": (80, 82),
    "Q3_K": (108,),
    "Q4_K": (0, 2),
    "Q5_K": (0, 2),
    "Q6_K": (208,),
}
"""Where the numbers in fp16 of a block are."""
LARGE = Shape(
    vocabulary=130,
    width=256,
    layers=1,
    heads=6,
    key_heads=2,
    head_width=128,
    hidden=512,
    context_tokens=192,
    canvas_tokens=0,
)
"""Its inputs are whole blocks of each type. Its vocabulary and the parts of a matrix are no multiples of 64 outputs."""


def random_blocks(kind: str, outputs: int, inputs: int, seed: int) -> NDArray[np.uint8]:
    """Return the bytes [outputs, n] of a matrix: all numbers that a block may hold, with small scales."""
    rng, (weights, size) = np.random.default_rng(seed), SIZES[kind]
    if weights == 1:
        dense = rng.normal(0, 0.1, (outputs, inputs)).astype(np.float16 if kind == "F16" else np.float32)
        return (dense.view(np.uint16)[:, 1::2].copy() if kind == "BF16" else dense).view(np.uint8)
    blocks = rng.integers(0, 256, (outputs, inputs // weights, size), np.uint8)
    for at in _HALVES[kind]:
        halves = rng.uniform(0.001, 0.003, (outputs, inputs // weights, 1)).astype(np.float16)
        blocks[:, :, at : at + 2] = halves.view(np.uint8)
    return blocks.reshape(outputs, -1)


class BlockWeights(Weights):
    """Weights of LARGE in a file's types. Each matrix has as many parts as `kinds`, its last one the rest.

    head_width: where it is not 0, the file has the halves of the heads of queries, keys and values side by side.
    """

    def __init__(self, kinds: tuple[str, ...], bits: int, head_width: int = 0) -> None:
        rng = np.random.default_rng(1)
        vectors = {name: size for name, size in shapes_of(LARGE).items() if len(size) == 1}
        super().__init__({name: rng.uniform(0.5, 1.5, size).astype(np.float32) for name, size in vectors.items()})
        self.parts = {name: self._random_parts(kinds, size) for name, size in shapes_of(LARGE).items() if len(size) > 1}
        self._bits, self._head_width = bits, head_width

    def _random_parts(self, kinds: tuple[str, ...], size: tuple[int, ...]) -> list[tuple[str, NDArray[np.uint8]]]:
        rows = [size[0] // 4 // 2 * 2] * (len(kinds) - 1)
        rows.append(size[0] - sum(rows))
        return [
            (kind, random_blocks(kind, count, size[1], seed))
            for seed, (kind, count) in enumerate(zip(kinds, rows, strict=True))
        ]

    def taken(self, name: str) -> Blocks:
        width = self._head_width if "qkv" in name else 0
        parts: list[Part] = [(name, kind, rows.reshape(-1), len(rows), width) for kind, rows in self.parts[name]]
        return self._bits, tuple(parts)
