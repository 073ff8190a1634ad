"""Attention of many holes in one forward: their rows are concatenated, and each row sees its own hole's context."""

import attrs
import torch
from torch import Tensor

from engine.models.diffusion_gemma.context import RollingContext
from engine.models.stock.attention import CausalRows, attend


@attrs.define(eq=False)
class ContextSegment:
    """Rows `first_row` up to `last_row` (exclusive) of a forward. They follow the first `start` tokens of `context`."""

    context: RollingContext
    start: int
    first_row: int
    last_row: int
    _causal: dict[int | None, CausalRows] = attrs.field(init=False, factory=dict)

    @property
    def stop(self) -> int:
        """The position after the last row."""
        return self.start + self.last_row - self.first_row

    def first_seen(self, window: int | None) -> int:
        """Return the first position that the first row sees. A window includes the row itself."""
        return 0 if window is None else max(0, self.start - window + 1)

    def causal(self, window: int | None) -> CausalRows:
        """Return which keys each row sees, from `first_seen` on."""
        if window not in self._causal:
            self._causal[window] = CausalRows(self.start, self.first_seen(window), window)
        return self._causal[window]


@attrs.frozen
class SegmentAttention:
    """The attention of a forward over its segments.

    With `causal` (the encoder) keys and values are written into the contexts. Without (the decoder) the rows of a
    segment see its context and each other, and nothing is kept.
    """

    segments: list[ContextSegment]
    causal: bool

    def mix(
        self, layer: int, query: Tensor, key: Tensor, value: Tensor, scale: float | None, window: int | None
    ) -> Tensor:
        """Return the mixed values [rows, heads, width]. `key` and `value` have fewer heads than `query`."""
        query, key, value = (heads.transpose(0, 1) for heads in (query, key, value))
        mixed = []
        for segment in self.segments:
            rows, start, stop = slice(segment.first_row, segment.last_row), segment.start, segment.stop
            first = segment.first_seen(window)
            keys, values = segment.context.layers[layer]
            causal = None
            if self.causal:
                keys[:, start:stop], values[:, start:stop] = key[:, rows], value[:, rows]
                keys, values = keys[:, first:stop], values[:, first:stop]
                causal = segment.causal(window)
            else:
                keys = torch.cat([keys[:, first:start], key[:, rows]], dim=1)
                values = torch.cat([values[:, first:start], value[:, rows]], dim=1)
            mixed.append(attend(query[:, rows], keys, values, scale, causal))
        return torch.cat(mixed)
