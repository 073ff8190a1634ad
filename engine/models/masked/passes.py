"""The network of a masked family: the stock modules' own layers, run bidirectionally over the rows of several holes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from engine.models.cuda_graphs.fused import fused
from engine.models.cuda_graphs.slots import SlotShape
from engine.models.cuda_graphs.waiting import synchronize
from engine.models.masked.cuda_graph import CapturedMiddles
from engine.models.masked.rows import MaskedPass, MiddleSegment, segments_of
from engine.models.masked.sides import turned
from engine.models.quantization.holder import count_parameters
from engine.models.stock.layer import after_attention, before_attention

Mix = Callable[[int, Tensor, Tensor, Tensor, float], Tensor]
"""From the number of a layer, queries, keys and values [rows, heads, width] and a scale to mixed values likewise."""


class MaskedNetwork:
    """Rows of all holes share the matrix products; attention is each middle's own, so nothing is padded and shapes need
    not agree."""

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
        self.captured = CapturedMiddles(self) if self.device.type == "cuda" else None
        """How steps over kept sides run where there are graphs to capture them in."""

    @torch.inference_mode()
    def run(self, passes: Sequence[MaskedPass]) -> list[Tensor]:
        """Return for each pass its logits [wanted, vocabulary] in fp32: of the asked rows, not shifted."""
        for item in passes:
            self._prepare(item)
        found = None if self.captured is None else self.captured.run(passes)
        if found is None:
            found = self._run_plainly(passes)
        synchronize(self.device)
        return found

    def _run_plainly(self, passes: Sequence[MaskedPass]) -> list[Tensor]:
        """Return each pass's logits [wanted, vocabulary], with shapes as they come."""
        segments = [segments_of(item) for item in passes]
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
        for item, group in zip(passes, segments, strict=True):
            live = start + group[0].fixed
            wanted += [live + row for row in item.wanted]
            start += item.rows
        logits = self.logits(rows[self._integers(wanted)])
        return list(torch.split(logits, [len(item.wanted) for item in passes]))

    def layers(self, tokens: Tensor, positions: Tensor, mix: Mix) -> Tensor:
        """Return the last hidden states [rows, width] of tokens [rows] at positions [rows]."""
        rows: Tensor = self._trunk.embed_tokens(tokens)
        cosine, sine = self._rotary(rows, positions)
        for number, layer in enumerate(self._layers):
            query, key, value = self._before(layer, rows, cosine, sine)
            rows = self._after(layer, rows, mix(number, query, key, value, layer.self_attn.scaling))
        return rows

    def logits(self, rows: Tensor) -> Tensor:
        """Return logits [rows, vocabulary] in fp32 of hidden states [rows, width]."""
        logits: Tensor = self._head(self._trunk.norm(rows)).float()
        return logits

    def _mix(
        self, number: int, segments: list[MiddleSegment], query: Tensor, key: Tensor, value: Tensor, scale: float
    ) -> Tensor:
        """Attend with each middle's rows to its own keys and values, which are written behind its sides."""
        query, key, value = (each.transpose(0, 1) for each in (query, key, value))
        mixed, at = [], 0
        for segment in segments:
            own = slice(at, at + len(segment.tokens))
            keys, values = self._seen(number, segment, key[:, own], value[:, own])
            found = F.scaled_dot_product_attention(
                query[None, :, own], keys[None], values[None], scale=scale, enable_gqa=True
            )
            mixed.append(found[0].transpose(0, 1))
            at = own.stop
        return torch.cat(mixed)

    def _seen(self, number: int, segment: MiddleSegment, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Return the keys and values [heads, seen, width] that a middle's rows see, their own among them."""
        sides = segment.sides
        assert sides.buffer is not None
        keys, values = sides.buffer[number].unbind(0)
        fixed = len(sides.fixed)
        if segment.aside:
            behind = self._moved(keys[:, sides.suffix], segment.length - sides.length)
            beside = keys[:, : sides.suffix.start]
            return torch.cat((beside, behind, key), 1), torch.cat((values[:, :fixed], value), 1)
        start = fixed - segment.fixed
        stop = start + key.shape[1]
        keys[:, start:stop], values[:, start:stop] = key, value
        return keys[:, :stop], values[:, :stop]

    def _prepare(self, item: MaskedPass) -> None:
        """See that the buffer stands for the first middle's length."""
        sides, length = item.sides, len(item.middles[0])
        if sides.buffer is None:
            size = (len(self._layers), 2, self._key_heads, len(sides.fixed) + 1 + sides.room, self._head_width)
            sides.buffer = torch.empty(size, dtype=self.dtype, device=self.device)
        elif sides.length != length and not item.reads_sides:
            keys = sides.buffer[:, 0]
            keys[:, :, sides.suffix] = self._moved(keys[:, :, sides.suffix], length - sides.length)
            sides.renew()
        if item.reads_sides:
            sides.renew()
        sides.length = length

    def _moved(self, keys: Tensor, distance: int) -> Tensor:
        """Return keys [..., head width] as they are `distance` positions further on."""
        wide = keys.float()
        cosine, sine = self._rotary(wide[..., :1, :], self._integers([distance]))
        scaling = float(self._trunk.rotary_emb.attention_scaling)
        return turned(wide, cosine[0] / scaling, sine[0] / scaling).to(keys.dtype)

    def _rotary(self, like: Tensor, positions: Tensor) -> tuple[Tensor, Tensor]:
        """Return cosines and sines [rows, 1, head width] of positions [rows] in the precision of `like`."""
        cosine, sine = self._trunk.rotary_emb(like, positions[None])
        return cosine[0][:, None], sine[0][:, None]

    def _integers(self, numbers: list[int]) -> Tensor:
        return torch.tensor(numbers, dtype=torch.long, device=self.device)
