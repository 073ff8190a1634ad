"""Keys and values of several contexts at fixed addresses, as captured graphs need them, and attention over them.

All shapes of an attention are fixed, and a mask says which keys each row sees.
"""

from collections.abc import Sequence

import attrs
import torch
from torch import Tensor
from torch.nn import functional as F

from engine.models.cuda_graphs.graphs import rounded
from engine.schedule.caches import common_prefix

LEAST_CAPACITY = 256
SHARE = 4
"""Slots take at most a quarter of the memory that the weights leave free. The rest is for cached contexts, the graphs'
intermediate results and reading long contexts."""


@attrs.frozen
class LayerShape:
    """The number of heads and their width in the keys and values of one layer."""

    heads: int
    width: int


class Slots:
    """`layers` holds keys and values [2, slots, heads, capacity, width] of every layer.

    Memory starts as zeros: a masked value is multiplied by 0, and a NaN in uninitialized memory would stay NaN.
    """

    def __init__(
        self, shapes: Sequence[LayerShape], count: int, capacity: int, dtype: torch.dtype, device: torch.device
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
    shapes: Sequence[LayerShape], count: int, wanted: int, dtype: torch.dtype, device: torch.device
) -> int:
    """Return how many positions each of `count` slots can have within the memory share, at most `wanted`."""
    if device.type != "cuda":
        return wanted
    return _capacity(_room(device), bytes_per_token(shapes, dtype) * count, wanted)


def affordable_slots(
    shapes: Sequence[LayerShape], most: int, enough: int, wanted: int, dtype: torch.dtype, device: torch.device
) -> tuple[int, int]:
    """Return how many slots, at most `most`, and how many positions each of them can have, at most `wanted`.

    Where memory is short there are fewer slots rather than ones with less than `enough` positions: a hole that is
    longer than its slot runs without a graph, also for a user alone; only holes filled at once need several.
    """
    if device.type != "cuda":
        return most, wanted
    return slots_within(_room(device), bytes_per_token(shapes, dtype), most, enough, wanted)


def slots_within(room: int, position: int, most: int, enough: int, wanted: int) -> tuple[int, int]:
    """Return the same for `room` bytes, where a position of a slot takes `position` bytes."""
    count = most
    while count > 1 and room // (position * count) < min(wanted, enough):
        count //= 2
    return count, _capacity(room, position * count, wanted)


def _room(device: torch.device) -> int:
    free, _ = torch.cuda.mem_get_info(device)
    return free // SHARE


def bytes_per_token(shapes: Sequence[LayerShape], dtype: torch.dtype) -> int:
    """Return the bytes of the keys and values of one token."""
    return 2 * dtype.itemsize * sum(shape.heads * shape.width for shape in shapes)


def _capacity(room: int, position: int, wanted: int) -> int:
    return min(wanted, room // position) // LEAST_CAPACITY * LEAST_CAPACITY


def capacity_for(length: int, least: int, most: int) -> int | None:
    """Return the bucket's capacity for a step over `length` positions; None if it exceeds `most`."""
    if length > most:
        return None
    return min(rounded(length, least), most)


@attrs.frozen
class Sight:
    """What the rows [slots, rows] of a step see. All values are positions within a slot, int64.

    lengths: [slots], where each slot's context ends; row i of a slot is written at `lengths` + i
    begins, ends: [slots, rows], the range of the step's own rows that a row sees, besides the context
    anchors: [slots, rows], where a sliding window ends; a row sees nothing a window or more before its anchor

    Every row must see at least one row, padding too: a softmax over nothing gives NaN.
    """

    lengths: Tensor
    begins: Tensor
    ends: Tensor
    anchors: Tensor

    def mask(self, capacity: int, window: int | None) -> Tensor:
        """Return which keys are seen, bool [slots, 1, rows, capacity]."""
        positions = torch.arange(capacity, device=self.lengths.device)
        seen = (positions >= self.begins[..., None]) & (positions < self.ends[..., None])
        seen = seen | (positions < self.lengths[:, None, None])
        if window is not None:
            seen = seen & (positions > self.anchors[..., None] - window)
        return seen[:, None]


class SlotAttention:
    """The attention of one step over the first `capacity` positions of its slots. Each step makes a new one."""

    def __init__(self, slots: Slots, sight: Sight, capacity: int) -> None:
        self._slots, self._sight, self._capacity = slots, sight, capacity
        count, rows = sight.begins.shape
        device = sight.lengths.device
        self._slot = torch.arange(count, device=device)[:, None]
        self._position = sight.lengths[:, None] + torch.arange(rows, device=device)
        self._masks: dict[tuple[int | None, int], Tensor] = {}

    def mix(
        self, layer: int, query: Tensor, key: Tensor, value: Tensor, scale: float | None, window: int | None = None
    ) -> Tensor:
        """Write keys and values into the slots and return the mixed values [slots * rows, heads, width].

        `query` is [slots * rows, heads, width]; `key` and `value` have fewer heads (grouped-query attention). Queries
        that share a key head become rows of one head, so that no key is copied for each of them.
        """
        count, rows = self._position.shape
        heads, width = key.shape[1:]
        groups = query.shape[1] // heads
        keys, values = self._slots.layers[layer][:, :count, :, : self._capacity].unbind(0)
        keys[self._slot, :, self._position] = key.reshape(count, rows, heads, width)
        values[self._slot, :, self._position] = value.reshape(count, rows, heads, width)
        queries = query.reshape(count, rows, heads, groups, width).permute(0, 2, 3, 1, 4).flatten(2, 3)
        attended = F.scaled_dot_product_attention(queries, keys, values, self._mask(window, groups), scale=scale)
        mixed = attended.view(count, heads, groups, rows, width).permute(0, 3, 1, 2, 4)
        return mixed.reshape(count * rows, heads * groups, width)

    def _mask(self, window: int | None, groups: int) -> Tensor:
        if (window, groups) not in self._masks:
            self._masks[window, groups] = self._sight.mask(self._capacity, window).repeat(1, 1, groups, 1)
        return self._masks[window, groups]
