"""Randomness that depends on nothing but a hole's seed, the step and the position in the fill.

So a hole's answer is the same alone and in any batch. All of it is elementwise work on the device: nothing is asked of
the host between two steps.
"""

from typing import Protocol

import torch
from torch import Tensor

_WINDOWS = 1 << 20
LARGEST = (1 << 63) - 1


class Noise(Protocol):
    """What a Denoiser draws with. `keys` [rows] are those of `key_of`; one that ignores them draws as it likes."""

    def uniform(self, keys: Tensor) -> Tensor:
        """Return tokens [rows], each equally likely."""
        ...

    def draw(self, keys: Tensor, logits: Tensor) -> Tensor:
        """Return tokens [rows] drawn from logits [rows, vocabulary]."""
        ...


class SeededNoise:
    """Draws by Gumbel-max: the largest of logit plus noise is a draw from the distribution.

    The noise of a row is a window of one table of Gumbel numbers, at a place that the row's key says: as many fresh
    numbers as the vocabulary is long would cost more than the logits themselves.
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
    """Return the keys [rows] of positions [rows] of a fill in one of its steps; seeds and steps may be [rows] too."""
    return _scrambled(_scrambled(_scrambled(positions + 1) + step) + (seed & LARGEST))


def _scrambled(numbers: Tensor) -> Tensor:
    """Return numbers of 0 up to 2**63 - 1 in which every bit of the int64 `numbers` counts (splitmix64's mixing)."""
    mixed = numbers * -0x61C8864680B583EB
    mixed = (mixed ^ _shifted(mixed, 30)) * -0x40A7B892E31B1A47
    mixed = (mixed ^ _shifted(mixed, 27)) * -0x6B2FB644ECCEEE15
    return (mixed ^ _shifted(mixed, 31)) & LARGEST


def _shifted(numbers: Tensor, bits: int) -> Tensor:
    return (numbers >> bits) & ((1 << (64 - bits)) - 1)
