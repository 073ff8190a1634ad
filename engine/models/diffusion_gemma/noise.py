"""Noise that depends only on a hole's seed, the step and the position in the fill.

So a hole gets the same answer alone and in any batch. Everything is elementwise work on the device, and nothing waits
for the host between two steps.
"""

from typing import Protocol

import torch
from torch import Tensor

_WINDOWS = 1 << 20
MOST_SEED = (1 << 63) - 1


class Noise(Protocol):
    """The noise of a Denoiser. `keys` [rows] come from `key_of`; tests pass noise that ignores them."""

    def uniform(self, keys: Tensor) -> Tensor:
        """Return tokens [rows], drawn uniformly from the vocabulary."""
        ...

    def draw(self, keys: Tensor, logits: Tensor) -> Tensor:
        """Return tokens [rows], drawn from logits [rows, vocabulary]."""
        ...


class SeededNoise:
    """Draws by Gumbel-max: the argmax of logits plus Gumbel noise is a draw from their distribution.

    The noise of a row is a window into one table of Gumbel numbers, at an offset that its key selects. New numbers for
    the whole vocabulary would cost more than the logits.
    """

    def __init__(self, vocabulary: int, device: torch.device) -> None:
        self._vocabulary = vocabulary
        uniform = torch.rand(_WINDOWS + vocabulary - 1, generator=torch.Generator().manual_seed(0))
        self._windows = (-(-uniform.clamp_(1e-7, 1 - 1e-7).log()).log()).to(device).unfold(0, vocabulary, 1)

    def uniform(self, keys: Tensor) -> Tensor:
        return keys % self._vocabulary

    def draw(self, keys: Tensor, logits: Tensor) -> Tensor:
        return (logits + self._windows[_scrambled(keys) % _WINDOWS]).argmax(-1)


def key_of(seed: int | Tensor, step: int | Tensor, positions: Tensor) -> Tensor:
    """Return the keys [rows] of positions [rows] of a fill in one step. `seed` and `step` may be [rows] too."""
    return _scrambled(_scrambled(_scrambled(positions + 1) + step) + (seed & MOST_SEED))


def _scrambled(numbers: Tensor) -> Tensor:
    """Return hashes from 0 to 2**63 - 1 of the int64 `numbers`; every bit counts (the mixing of splitmix64)."""
    mixed = numbers * -0x61C8864680B583EB
    mixed = (mixed ^ _shifted(mixed, 30)) * -0x40A7B892E31B1A47
    mixed = (mixed ^ _shifted(mixed, 27)) * -0x6B2FB644ECCEEE15
    return (mixed ^ _shifted(mixed, 31)) & MOST_SEED


def _shifted(numbers: Tensor, bits: int) -> Tensor:
    """Return a logical shift to the right; torch's own keeps the sign."""
    return (numbers >> bits) & ((1 << (64 - bits)) - 1)
