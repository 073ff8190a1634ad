"""Attention of a step's rows over slots: every shape is known before, and which key is seen is a mask."""

import attrs
import torch
from torch import Tensor
from torch.nn import functional as F

from engine.models.cuda_graphs.slots import Slots


@attrs.frozen
class Sight:
    """What rows [slots, rows] see; all are places in their slot, int64.

    A row is written at `lengths` plus its number. It sees the context, which ends at its slot's `lengths` [slots], and
    of the step's own rows those from `begins` up to `ends` [slots, rows]. Of both a sliding window leaves what stands
    less than a window before `anchors` [slots, rows]. A row must see one other or itself, padding too.
    """

    lengths: Tensor
    begins: Tensor
    ends: Tensor
    anchors: Tensor

    def mask(self, capacity: int, window: int | None) -> Tensor:
        """Return which keys are seen, bool [slots, 1, rows, capacity]."""
        places = torch.arange(capacity, device=self.lengths.device)
        seen = (places >= self.begins[..., None]) & (places < self.ends[..., None])
        seen = seen | (places < self.lengths[:, None, None])
        if window is not None:
            seen = seen & (places > self.anchors[..., None] - window)
        return seen[:, None]


class SlotAttention:
    """The attention of one step over the first `capacity` places of its slots; made anew in every step."""

    def __init__(self, slots: Slots, sight: Sight, capacity: int) -> None:
        self._slots, self._sight, self._capacity = slots, sight, capacity
        count, rows = sight.begins.shape
        device = sight.lengths.device
        self._slot = torch.arange(count, device=device)[:, None]
        self._place = sight.lengths[:, None] + torch.arange(rows, device=device)
        self._masks: dict[tuple[int | None, int], Tensor] = {}

    def mix(
        self, layer: int, query: Tensor, key: Tensor, value: Tensor, scale: float | None, window: int | None = None
    ) -> Tensor:
        """Return the mixed values [slots * rows, heads, width] of query, key and value, the latter two of fewer heads.

        Keys and values are written into the slots. The queries that share a key's head stand as rows below each other,
        so that no key is copied for each of them.
        """
        count, rows = self._place.shape
        heads, width = key.shape[1:]
        groups = query.shape[1] // heads
        keys, values = self._slots.layers[layer][:, :count, :, : self._capacity].unbind(0)
        keys[self._slot, :, self._place] = key.reshape(count, rows, heads, width)
        values[self._slot, :, self._place] = value.reshape(count, rows, heads, width)
        asked = query.reshape(count, rows, heads, groups, width).permute(0, 2, 3, 1, 4).flatten(2, 3)
        found = F.scaled_dot_product_attention(asked, keys, values, self._mask(window, groups), scale=scale)
        mixed = found.view(count, heads, groups, rows, width).permute(0, 3, 1, 2, 4)
        return mixed.reshape(count * rows, heads * groups, width)

    def _mask(self, window: int | None, groups: int) -> Tensor:
        if (window, groups) not in self._masks:
            self._masks[window, groups] = self._sight.mask(self._capacity, window).repeat(1, 1, groups, 1)
        return self._masks[window, groups]
