"""Attention of many holes in one forward: rows of all of them stand one behind the other, each sees its own context.

Registered with transformers as an attention function, so that the released layers run as they are.
"""

from typing import Any

import attrs
import torch
from torch import Tensor
from torch.nn import functional as F

from engine.models.diffusion_gemma.context import RollingContext

NAME = "midspan-segments"


@attrs.define(eq=False)
class Segment:
    """Rows `first_row` up to `last_row` (not included) of a forward. They stand behind `start` tokens of `context`."""

    context: RollingContext
    start: int
    first_row: int
    last_row: int
    _masks: dict[int | None, Tensor] = attrs.field(init=False, factory=dict)

    @property
    def stop(self) -> int:
        """The position behind the last row."""
        return self.start + self.last_row - self.first_row

    def first_seen(self, window: int | None) -> int:
        """Return the first position that the first row sees; a window counts the row itself."""
        return 0 if window is None else max(0, self.start - window + 1)

    def causal_mask(self, window: int | None, device: torch.device) -> Tensor | None:
        """Return which keys each row sees, bool [rows, positions from first_seen to stop]; None when all see all."""
        if self.last_row - self.first_row == 1:
            return None
        if window not in self._masks:
            keys = torch.arange(self.first_seen(window), self.stop, device=device)
            queries = torch.arange(self.start, self.stop, device=device)[:, None]
            seen = keys <= queries
            self._masks[window] = seen if window is None else seen & (keys > queries - window)
        return self._masks[window]


def attend(
    module: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    *,
    segments: list[Segment],
    scaling: float,
    is_causal: bool,
    sliding_window: int | None = None,
    **_: object,
) -> tuple[Tensor, None]:
    """Return the mixed values [1, rows, heads, width] of query [1, heads, rows, width], key and value of fewer heads.

    The encoder's rows (`is_causal`) are written into their contexts; the decoder's see the context and each other, and
    leave nothing behind.
    """
    mixed = []
    for segment in segments:
        rows, start, stop = slice(segment.first_row, segment.last_row), segment.start, segment.stop
        first = segment.first_seen(sliding_window)
        keys, values = segment.context.layers[module.layer_idx]
        mask = None
        if is_causal:
            keys[:, start:stop], values[:, start:stop] = key[0, :, rows], value[0, :, rows]
            keys, values = keys[:, first:stop], values[:, first:stop]
            mask = segment.causal_mask(sliding_window, query.device)
        else:
            keys = torch.cat([keys[:, first:start], key[0, :, rows]], dim=1)
            values = torch.cat([values[:, first:start], value[0, :, rows]], dim=1)
        found = F.scaled_dot_product_attention(
            query[:, :, rows], keys[None], values[None], mask, scale=scaling, enable_gqa=True
        )
        mixed.append(found.transpose(1, 2))
    return torch.cat(mixed, dim=1), None
