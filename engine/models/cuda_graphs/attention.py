"""Attention of a step's rows over slots: all shapes are fixed, and a mask says which keys each row sees."""

import attrs
import torch
from torch import Tensor
from torch.nn import functional as F

from engine.models.cuda_graphs.slots import Slots


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
