"""The keys and values of several contexts at addresses that never change."""

from collections.abc import Sequence

import attrs
import torch
from torch import Tensor

from engine.schedule.context_cache import common_prefix

LEAST_CAPACITY = 256
SHARE = 4
"""Slots take at most one part in so many of the memory that the weights leave free; the rest is for cached contexts,
the graphs' intermediate results and reading long contexts."""


@attrs.frozen
class SlotShape:
    """Heads and their width in the keys and values of one layer."""

    heads: int
    width: int


class Slots:
    """`layers` holds keys and values [2, slots, heads, capacity, width] of every layer.

    All is zeros at first, and not whatever memory held: a masked value is multiplied by 0, which leaves NaN as it is.
    """

    def __init__(
        self, shapes: Sequence[SlotShape], count: int, capacity: int, dtype: torch.dtype, device: torch.device
    ) -> None:
        self.count, self.capacity = count, capacity
        self.layers = [
            torch.zeros(2, count, shape.heads, capacity, shape.width, dtype=dtype, device=device) for shape in shapes
        ]
        self._held: list[list[int]] = [[] for _ in range(count)]

    def assign(self, names: Sequence[list[int]], among: int) -> list[int]:
        """Return a slot for each context, of the first `among`: the free one that holds most of it already.

        `names` say what stands at each position: token numbers, where keys and values depend on nothing but those.
        """
        free = list(range(among))
        chosen = []
        for own in names:
            best = max(free, key=lambda slot: common_prefix(self._held[slot], own))
            free.remove(best)
            chosen.append(best)
        return chosen

    def load(self, slot: int, names: list[int], layers: Sequence[Tensor]) -> None:
        """Copy into a slot what it lacks of a context's keys and values, each layer's [2, heads, positions, width].

        Whatever the slot holds behind them is given up: the step writes its rows there.
        """
        first, last = common_prefix(self._held[slot], names), len(names)
        self._held[slot] = list(names)
        if first < last:
            for own, other in zip(self.layers, layers, strict=True):
                own[:, slot, :, first:last] = other[:, :, first:last]

    def store(self, slot: int, names: list[int], layers: Sequence[Tensor]) -> None:
        """Copy rows that a step has written behind a context into that context's own memory; they stand for `names`."""
        first, last = len(self._held[slot]), len(self._held[slot]) + len(names)
        self._held[slot] += names
        if names:
            for own, other in zip(self.layers, layers, strict=True):
                other[:, :, first:last] = own[:, slot, :, first:last]

    def forget(self) -> None:
        """Hold nothing: a step has run over rows of no meaning."""
        self._held = [[] for _ in range(self.count)]


def affordable_capacity(
    shapes: Sequence[SlotShape], count: int, wanted: int, dtype: torch.dtype, device: torch.device
) -> int:
    """Return how many positions `count` slots can have, at most `wanted`, in a SHARE of the free memory; 0 for none."""
    if device.type != "cuda":
        return wanted
    position = 2 * dtype.itemsize * sum(shape.heads * shape.width for shape in shapes)
    free, _ = torch.cuda.mem_get_info(device)
    capacity = min(wanted, free // SHARE // (position * count)) // LEAST_CAPACITY * LEAST_CAPACITY
    return int(capacity)
