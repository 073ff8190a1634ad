"""The sizes of the embedded model's network, and its rotary tables. Does not import torch."""

import attrs
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]

POSITIONS_BEYOND = 256
"""Fills may run past the context's length by this many positions."""

_MOST = {
    "vocabulary": 1_000_000,
    "width": 65_536,
    "layers": 1024,
    "heads": 1024,
    "context_tokens": 1_000_000,
    "canvas_tokens": 65_536,
    "gram_buckets": 10_000_000,
    "gram_width": 65_536,
    "feed_forward": 64,
    "link_width": 65_536,
}
_MAY_BE_0 = ("gram_buckets", "gram_width", "link_width", "canvas_tokens")


@attrs.frozen
class Shape:
    """The sizes of the network, as in config.json."""

    vocabulary: int
    width: int
    layers: int
    heads: int
    context_tokens: int
    canvas_tokens: int
    gram_buckets: int
    gram_width: int
    rope_base: float = 10_000.0
    feed_forward: int = 4
    link_width: int = 0  # hidden width of link.Link; 0 for no link

    def __attrs_post_init__(self) -> None:
        """Raise ValueError for sizes that no network has: the kernel trusts them."""
        for name, most in _MOST.items():
            value = getattr(self, name)
            if not (0 if name in _MAY_BE_0 else 1) <= value <= most:
                raise ValueError(f"{name} is {value}")
        if self.width % self.heads or self.head_width % 2:
            raise ValueError(f"a width of {self.width} cannot be split over {self.heads} heads")
        if not 1.0 < self.rope_base < 1e9:
            raise ValueError(f"rope_base is {self.rope_base}")

    @property
    def head_width(self) -> int:
        return self.width // self.heads

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
