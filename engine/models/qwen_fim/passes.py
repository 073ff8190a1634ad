"""The network of a left-to-right model: the layers of transformers, run causally over the rows of several holes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
import torch
from torch import Tensor

from engine.fill.interface import expect_type
from engine.fill.stream import StreamPass
from engine.models.cuda_graphs.graphs import synchronize
from engine.models.stock.attention import CausalRows, attend
from engine.models.stock.key_values import KeyValues
from engine.models.stock.layer import after_attention, before_attention

_GROWTH = 256
"""A context's buffer grows by this many tokens: a buffer for the whole window takes much memory in a large model."""


@attrs.frozen
class _Segment:
    """The rows of one pass in the batch, after the first `start` tokens of its context."""

    context: KeyValues
    start: int
    rows: int
    causal: CausalRows


class CausalNetwork:
    """Rows of all holes share the matrix products. Each hole has its own attention, so nothing is padded."""

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
        """Append the tokens of each pass to its context; return its logits [wanted, vocabulary] in fp32."""
        segments = [self._segment(each) for each in passes]
        rows = self._trunk.embed_tokens(self._integers([token for each in passes for token in each.append]))
        positions = [segment.start + row for segment in segments for row in range(segment.rows)]
        cosine, sine = (table[0][:, None] for table in self._trunk.rotary_emb(rows, self._integers(positions)[None]))
        for index, layer in enumerate(self._layers):
            query, key, value = before_attention(layer, rows, cosine, sine)
            mixed = self._mix(index, segments, query, key, value, layer.self_attn.scaling)
            rows = after_attention(layer, rows, mixed)
        wanted: list[int] = []
        start = 0
        for each in passes:
            wanted += [start + row for row in each.wanted]
            start += each.rows
        logits: Tensor = self._head(self._trunk.norm(rows[self._integers(wanted)])).float()
        for segment, each in zip(segments, passes, strict=True):
            segment.context.tokens += each.append
        synchronize(self.device)
        return list(torch.split(logits, [len(each.wanted) for each in passes]))

    def _segment(self, item: StreamPass) -> _Segment:
        """Make room for the rows of a pass in its context, and return where they go."""
        context, start = expect_type(item.context, KeyValues), len(item.context.tokens)
        stop = start + len(item.append)
        if stop > context.buffer.shape[3]:
            grown = self._buffer(-(-stop // _GROWTH) * _GROWTH)
            grown[:, :, :, :start] = context.buffer[:, :, :, :start]
            context.buffer = grown
        return _Segment(context, start, len(item.append), CausalRows(start))

    def _mix(
        self, layer: int, segments: list[_Segment], query: Tensor, key: Tensor, value: Tensor, scale: float
    ) -> Tensor:
        """Return the mixed values [rows, heads, width]. A hole's rows see its context and its own rows before them."""
        query, key, value = (heads.transpose(0, 1) for heads in (query, key, value))
        mixed, first = [], 0
        for segment in segments:
            rows, stop = slice(first, first + segment.rows), segment.start + segment.rows
            keys, values = segment.context.buffer[layer].unbind(0)
            keys[:, segment.start : stop], values[:, segment.start : stop] = key[:, rows], value[:, rows]
            mixed.append(attend(query[:, rows], keys[:, :stop], values[:, :stop], scale, segment.causal))
            first = rows.stop
        return torch.cat(mixed)

    def _integers(self, numbers: list[int]) -> Tensor:
        return torch.tensor(numbers, dtype=torch.long, device=self.device)
