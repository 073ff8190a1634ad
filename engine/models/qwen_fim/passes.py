"""The network of a left-to-right model: the stock modules' own layers, run causally over the rows of several holes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
import torch
from torch import Tensor
from torch.nn import functional as F

from engine.fill.interface import expect_type
from engine.fill.stream import StreamPass
from engine.models.cuda_graphs.waiting import synchronize
from engine.models.stock.key_values import KeyValues
from engine.models.stock.layer import after_attention, before_attention

_GROWTH = 256
"""A context's buffer grows by so many tokens: what a whole window needs is a lot of memory in a large model."""


@attrs.frozen
class _Segment:
    """One pass's rows in the batch, and which keys each sees: bool [rows, seen], None where it sees all."""

    context: KeyValues
    start: int
    rows: int
    visible: Tensor | None


class CausalNetwork:
    """Rows of all holes share the matrix products; attention is each hole's own, so nothing is padded."""

    def __init__(self, stock: Any) -> None:
        self._trunk, self._head = stock.model, stock.lm_head
        self._layers: Sequence[Any] = stock.model.layers
        self._key_heads, self._head_width = stock.config.num_key_value_heads, self._layers[0].self_attn.head_dim
        weight: Tensor = stock.model.embed_tokens.weight
        self.vocabulary, self.device, self.dtype = weight.shape[0], weight.device, weight.dtype
        self.parameters = sum(parameter.numel() for parameter in stock.parameters())

    def new_context(self) -> KeyValues:
        return KeyValues(self._buffer(0))

    def _buffer(self, capacity: int) -> Tensor:
        size = (len(self._layers), 2, self._key_heads, capacity, self._head_width)
        return torch.empty(size, dtype=self.dtype, device=self.device)

    @torch.inference_mode()
    def run(self, passes: Sequence[StreamPass]) -> list[Tensor]:
        """Add what passes append to their contexts; return for each its logits [wanted, vocabulary] in fp32."""
        segments = [self._segment(item) for item in passes]
        rows = self._trunk.embed_tokens(self._integers([token for item in passes for token in item.append]))
        positions = [segment.start + row for segment in segments for row in range(segment.rows)]
        cosine, sine = (table[0][:, None] for table in self._trunk.rotary_emb(rows, self._integers(positions)[None]))
        for number, layer in enumerate(self._layers):
            query, key, value = before_attention(layer, rows, cosine, sine)
            mixed = self._mix(number, segments, query, key, value, layer.self_attn.scaling)
            rows = after_attention(layer, rows, mixed)
        wanted: list[int] = []
        at = 0
        for item in passes:
            wanted += [at + row for row in item.wanted]
            at += item.rows
        logits: Tensor = self._head(self._trunk.norm(rows[self._integers(wanted)])).float()
        for segment, item in zip(segments, passes, strict=True):
            segment.context.tokens += item.append
        synchronize(self.device)
        return list(torch.split(logits, [len(item.wanted) for item in passes]))

    def _segment(self, item: StreamPass) -> _Segment:
        """See that a pass's rows have room in its context, and where they stand in it."""
        context, start = expect_type(item.context, KeyValues), len(item.context.tokens)
        stop = start + len(item.append)
        if stop > context.buffer.shape[3]:
            grown = self._buffer(-(-stop // _GROWTH) * _GROWTH)
            grown[:, :, :, :start] = context.buffer[:, :, :, :start]
            context.buffer = grown
        visible = None
        if len(item.append) > 1:
            visible = torch.ones(len(item.append), stop, dtype=torch.bool, device=self.device).tril(start)
        return _Segment(context, start, len(item.append), visible)

    def _mix(
        self, number: int, segments: list[_Segment], query: Tensor, key: Tensor, value: Tensor, scale: float
    ) -> Tensor:
        """Attend with each hole's rows to its own keys and values, which are written behind its context."""
        query, key, value = (each.transpose(0, 1) for each in (query, key, value))
        mixed, at = [], 0
        for segment in segments:
            own, stop = slice(at, at + segment.rows), segment.start + segment.rows
            keys, values = segment.context.buffer[number].unbind(0)
            keys[:, segment.start : stop], values[:, segment.start : stop] = key[:, own], value[:, own]
            found = F.scaled_dot_product_attention(
                query[None, :, own],
                keys[None, :, :stop],
                values[None, :, :stop],
                segment.visible,
                scale=scale,
                enable_gqa=True,
            )
            mixed.append(found[0].transpose(0, 1))
            at = own.stop
        return torch.cat(mixed)

    def _integers(self, numbers: list[int]) -> Tensor:
        return torch.tensor(numbers, dtype=torch.long, device=self.device)
