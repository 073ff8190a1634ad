"""The sizes of a network that the kernel runs, and its rotary tables. Does not import torch."""

import attrs
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]

POSITIONS_BEYOND = 256
"""Fills may run past the context's length by this many positions."""
GROUP = 64
"""Weights of an output that share a scale, and numbers of a row that do."""

_MOST = {
    "vocabulary": 1_000_000,
    "width": 65_536,
    "layers": 1024,
    "heads": 1024,
    "key_heads": 1024,
    "head_width": 1024,
    "hidden": 262_144,
    "context_tokens": 1_000_000,
    "canvas_tokens": 65_536,
}
_MAY_BE_0 = ("canvas_tokens",)


@attrs.frozen
class Shape:
    """The sizes of a Llama-shaped network, as in config.json.

    biased: queries, keys and values have a bias, as in Qwen2. head_norms: each head of a query or key is normalized, as
    in Qwen3. tied: logits are products with the embedding; otherwise the network has a head of its own.
    head_tokens: how many tokens this head has, where it has only those that come often; 0 for all.
    """

    vocabulary: int
    width: int
    layers: int
    heads: int
    key_heads: int
    head_width: int
    hidden: int
    context_tokens: int
    canvas_tokens: int
    rope_base: float = 10_000.0
    norm_epsilon: float = 1e-5
    biased: bool = False
    head_norms: bool = False
    tied: bool = True
    head_tokens: int = 0

    def __attrs_post_init__(self) -> None:
        """Raise ValueError for sizes that no network has: the kernel trusts them."""
        for name, most in _MOST.items():
            value = getattr(self, name)
            if not (0 if name in _MAY_BE_0 else 1) <= value <= most:
                raise ValueError(f"{name} is {value}")
        if self.heads % self.key_heads:
            raise ValueError(f"{self.heads} heads cannot share {self.key_heads} heads of keys and values")
        if self.head_width % 16:
            raise ValueError(f"head_width is {self.head_width}; it must be a multiple of 16")
        for name, inputs in (("width", self.width), ("hidden", self.hidden), ("heads", self.heads * self.head_width)):
            if inputs % GROUP:
                raise ValueError(f"{name} gives {inputs} inputs; they must be a multiple of {GROUP}")
        if not 0 <= self.head_tokens <= (0 if self.tied else self.vocabulary):
            raise ValueError(f"head_tokens is {self.head_tokens}")
        if not 1.0 < self.rope_base < 1e9:
            raise ValueError(f"rope_base is {self.rope_base}")
        if not 0.0 < self.norm_epsilon < 1.0:
            raise ValueError(f"norm_epsilon is {self.norm_epsilon}")

    @property
    def outputs(self) -> int:
        """How many tokens have logits."""
        return self.head_tokens or self.vocabulary

    @property
    def positions(self) -> int:
        """The most positions of a context with its fill."""
        return self.context_tokens + POSITIONS_BEYOND


def rope_angles(shape: Shape, length: int) -> tuple[Floats, Floats]:
    """Return cosines and sines [length, head_width / 2] of the rotary embedding (arXiv 2104.09864)."""
    half = shape.head_width // 2
    frequency = shape.rope_base ** (-np.arange(half, dtype=np.float64) / half)
    angle = np.arange(length, dtype=np.float64)[:, None] * frequency
    return np.cos(angle).astype(np.float32), np.sin(angle).astype(np.float32)
