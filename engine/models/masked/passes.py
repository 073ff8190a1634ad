"""The network of a masked model: the layers of transformers, run bidirectionally over the rows of several holes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from engine.models.cuda_graphs.fused import fused
from engine.models.cuda_graphs.graphs import synchronize
from engine.models.cuda_graphs.slots import SlotShape
from engine.models.masked.rows import MaskedPass, MiddleSegment, segments_of
from engine.models.quantization.quantizer import count_parameters
from engine.models.stock.attention import attend
from engine.models.stock.layer import after_attention, before_attention, rotate

Mix = Callable[[int, Tensor, Tensor, Tensor, float], Tensor]
"""Attention: from a layer's index, queries, keys and values [rows, heads, width] and a scale to mixed values."""


class MaskedNetwork:
    """Rows of all holes share the matrix products. Each middle has its own attention, so nothing is padded."""

    def __init__(self, stock: Any) -> None:
        self._trunk, self._head = stock.model, stock.lm_head
        self._layers: Sequence[Any] = stock.model.layers
        attention = self._layers[0].self_attn
        self._head_width = attention.head_dim
        self._key_heads = attention.k_proj.out_features // attention.head_dim
        self.slot_shapes = [SlotShape(self._key_heads, self._head_width)] * len(self._layers)
        self.window: int = stock.config.max_position_embeddings
        weight: Tensor = stock.model.embed_tokens.weight
        self.vocabulary, self.device, self.dtype = weight.shape[0], weight.device, weight.dtype
        self.parameters = count_parameters(stock)
        self._before, self._after = fused(before_attention, self.device), fused(after_attention, self.device)

    @torch.inference_mode()
    def run(self, passes: Sequence[MaskedPass]) -> list[Tensor]:
        """Return for each pass the logits [wanted, vocabulary] of its wanted rows, in fp32 and not shifted."""
        self.prepare(passes)
        segments = [segments_of(each) for each in passes]
        flat = [segment for group in segments for segment in group]

        def mix(layer: int, query: Tensor, key: Tensor, value: Tensor, scale: float) -> Tensor:
            return self._mix(layer, flat, query, key, value, scale)

        rows = self.layers(
            self._integers([token for segment in flat for token in segment.tokens]),
            self._integers([position for segment in flat for position in segment.positions]),
            mix,
        )
        wanted: list[int] = []
        start = 0
        for each, group in zip(passes, segments, strict=True):
            live = start + group[0].fixed
            wanted += [live + row for row in each.wanted]
            start += each.rows
        logits = self.logits(rows[self._integers(wanted)])
        synchronize(self.device)
        return list(torch.split(logits, [len(each.wanted) for each in passes]))

    def prepare(self, passes: Sequence[MaskedPass]) -> None:
        """Make the buffers of the passes ready for the length of their first middle."""
        for each in passes:
            self._prepare(each)

    def layers(self, tokens: Tensor, positions: Tensor, mix: Mix) -> Tensor:
        """Return the last hidden states [rows, width] of tokens [rows] at positions [rows]."""
        rows: Tensor = self._trunk.embed_tokens(tokens)
        cosine, sine = self._rotary(rows, positions)
        for index, layer in enumerate(self._layers):
            query, key, value = self._before(layer, rows, cosine, sine)
            rows = self._after(layer, rows, mix(index, query, key, value, layer.self_attn.scaling))
        return rows

    def logits(self, rows: Tensor) -> Tensor:
        """Return logits [rows, vocabulary] in fp32 of hidden states [rows, width]."""
        logits: Tensor = self._head(self._trunk.norm(rows)).float()
        return logits

    def _mix(
        self, layer: int, segments: list[MiddleSegment], query: Tensor, key: Tensor, value: Tensor, scale: float
    ) -> Tensor:
        """Return the mixed values [rows, heads, width]. The rows of a middle attend to its surroundings and itself."""
        query, key, value = (heads.transpose(0, 1) for heads in (query, key, value))
        mixed, start = [], 0
        for segment in segments:
            rows = slice(start, start + len(segment.tokens))
            keys, values = self._visible(layer, segment, key[:, rows], value[:, rows])
            mixed.append(attend(query[:, rows], keys, values, scale))
            start = rows.stop
        return torch.cat(mixed)

    def _visible(self, layer: int, segment: MiddleSegment, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Return the keys and values [heads, seen, width] that the rows of a middle see, including their own."""
        surrounding = segment.surrounding
        assert surrounding.buffer is not None
        keys, values = surrounding.buffer[layer].unbind(0)
        fixed = len(surrounding.fixed)
        if segment.moves_suffix:
            suffix = self._moved(keys[:, surrounding.suffix], segment.length - surrounding.length)
            prefix = keys[:, : surrounding.suffix.start]
            return torch.cat((prefix, suffix, key), 1), torch.cat((values[:, :fixed], value), 1)
        start = fixed - segment.fixed
        stop = start + key.shape[1]
        keys[:, start:stop], values[:, start:stop] = key, value
        return keys[:, :stop], values[:, :stop]

    def _prepare(self, item: MaskedPass) -> None:
        surrounding, length = item.surrounding, len(item.middles[0])
        if surrounding.buffer is None:
            capacity = len(surrounding.fixed) + 1 + surrounding.room
            size = (len(self._layers), 2, self._key_heads, capacity, self._head_width)
            surrounding.buffer = torch.empty(size, dtype=self.dtype, device=self.device)
        elif surrounding.length != length and not item.reads_surrounding:
            keys = surrounding.buffer[:, 0]
            distance = length - surrounding.length
            keys[:, :, surrounding.suffix] = self._moved(keys[:, :, surrounding.suffix], distance)
            surrounding.renew()
        if item.reads_surrounding:
            surrounding.renew()
        surrounding.length = length

    def _moved(self, keys: Tensor, distance: int) -> Tensor:
        """Return keys [..., head width] rotated to a position `distance` further on."""
        wide = keys.float()
        cosine, sine = self._rotary(wide[..., :1, :], self._integers([distance]))
        scaling = float(self._trunk.rotary_emb.attention_scaling)
        return rotate(wide, cosine[0] / scaling, sine[0] / scaling).to(keys.dtype)

    def _rotary(self, like: Tensor, positions: Tensor) -> tuple[Tensor, Tensor]:
        """Return cosines and sines [rows, 1, head width] of positions [rows], in the dtype of `like`."""
        cosine, sine = self._trunk.rotary_emb(like, positions[None])
        return cosine[0][:, None], sine[0][:, None]

    def _integers(self, numbers: list[int]) -> Tensor:
        return torch.tensor(numbers, dtype=torch.long, device=self.device)
