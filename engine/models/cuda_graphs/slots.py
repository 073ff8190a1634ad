"""Keys and values of several contexts at fixed addresses, as captured graphs need them."""

from collections.abc import Sequence

import attrs
import torch
from torch import Tensor

from engine.models.cuda_graphs.graphs import rounded
from engine.schedule.job import common_prefix

LEAST_CAPACITY = 256
SHARE = 4
"""Slots take at most a quarter of the memory that the weights leave free. The rest is for cached contexts, the graphs'
intermediate results and reading long contexts."""


@attrs.frozen
class SlotShape:
    """The number of heads and their width in the keys and values of one layer."""

    heads: int
    width: int


class Slots:
    """`layers` holds keys and values [2, slots, heads, capacity, width] of every layer.

    Memory starts as zeros: a masked value is multiplied by 0, and a NaN in uninitialized memory would stay NaN.
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
        """Choose a slot for each context from the first `among` slots: the free one that shares the longest prefix.

        `names` identify the keys and values at each position. They are token ids where keys and values depend on the
        tokens alone.
        """
        free = list(range(among))
        chosen = []
        for context_names in names:
            best = max(free, key=lambda slot: common_prefix(self._held[slot], context_names))
            free.remove(best)
            chosen.append(best)
        return chosen

    def load(self, slot: int, names: list[int], layers: Sequence[Tensor]) -> None:
        """Copy the keys and values that a slot lacks from a context: `layers` are [2, heads, positions, width] each.

        Later positions of the slot become free: the step writes its rows there.
        """
        first, last = common_prefix(self._held[slot], names), len(names)
        self._held[slot] = list(names)
        if first < last:
            for slot_layer, context_layer in zip(self.layers, layers, strict=True):
                slot_layer[:, slot, :, first:last] = context_layer[:, :, first:last]

    def store(self, slot: int, names: list[int], layers: Sequence[Tensor]) -> None:
        """Copy the rows that a step wrote after a context into the context's own memory. `names` identify them."""
        first, last = len(self._held[slot]), len(self._held[slot]) + len(names)
        self._held[slot] += names
        if names:
            for slot_layer, context_layer in zip(self.layers, layers, strict=True):
                context_layer[:, :, first:last] = slot_layer[:, slot, :, first:last]

    def forget(self) -> None:
        """Treat all slots as empty, because a step has run over meaningless rows."""
        self._held = [[] for _ in range(self.count)]


def affordable_capacity(
    shapes: Sequence[SlotShape], count: int, wanted: int, dtype: torch.dtype, device: torch.device
) -> int:
    """Return how many positions each of `count` slots can have within the memory share, at most `wanted`."""
    if device.type != "cuda":
        return wanted
    return _capacity(_room(device), _position_bytes(shapes, dtype) * count, wanted)


def affordable_slots(
    shapes: Sequence[SlotShape], most: int, enough: int, wanted: int, dtype: torch.dtype, device: torch.device
) -> tuple[int, int]:
    """Return how many slots, at most `most`, and how many positions each of them can have, at most `wanted`.

    Where memory is short there are fewer slots rather than ones with less than `enough` positions: a hole that is
    longer than its slot runs without a graph, also for a user alone; only holes filled at once need several.
    """
    if device.type != "cuda":
        return most, wanted
    return slots_within(_room(device), _position_bytes(shapes, dtype), most, enough, wanted)


def slots_within(room: int, position: int, most: int, enough: int, wanted: int) -> tuple[int, int]:
    """Return the same for `room` bytes, where a position of a slot takes `position` bytes."""
    count = most
    while count > 1 and room // (position * count) < min(wanted, enough):
        count //= 2
    return count, _capacity(room, position * count, wanted)


def _room(device: torch.device) -> int:
    free, _ = torch.cuda.mem_get_info(device)
    return free // SHARE


def _position_bytes(shapes: Sequence[SlotShape], dtype: torch.dtype) -> int:
    return 2 * dtype.itemsize * sum(shape.heads * shape.width for shape in shapes)


def _capacity(room: int, position: int, wanted: int) -> int:
    return min(wanted, room // position) // LEAST_CAPACITY * LEAST_CAPACITY


def capacity_for(length: int, least: int, most: int) -> int | None:
    """Return the bucket's capacity for a step over `length` positions; None if it exceeds `most`."""
    if length > most:
        return None
    return min(rounded(length, least), most)
