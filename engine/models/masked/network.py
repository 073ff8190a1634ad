"""The network of a masked family: the stock modules' own layers, run bidirectionally over the rows of several holes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
import torch
from torch import Tensor
from torch.nn import functional as F

from engine.models.masked.sides import Sides, turned


@attrs.define
class MaskedPass:
    """Implements models.base.Pass: middles shown between one hole's sides.

    With `reads_sides` the sides are read around the first of the `middles`; the others, of other lengths, look at the
    same keys and values, moved to where the suffix stands for them. `wanted` numbers the live rows, one middle's behind
    the other's.
    """

    sides: Sides
    middles: list[list[int]]
    wanted: Sequence[int]
    reads_sides: bool

    @property
    def rows(self) -> int:
        live = sum(len(self.sides.anchor) + len(middle) for middle in self.middles)
        return live + (len(self.sides.fixed) if self.reads_sides else 0)


@attrs.define
class _Segment:
    """One middle's rows in the batch, with the fixed ones before them where it reads those."""

    sides: Sides
    tokens: list[int]
    positions: list[int]
    length: int
    fixed: int
    aside: bool
    """Whether the sides stand for another length than this middle's, so that a copy of them must be moved."""


class MaskedNetwork:
    """Rows of all holes share the matrix products; attention is each middle's own, so nothing is padded and shapes need
    not agree."""

    def __init__(self, stock: Any) -> None:
        self._trunk, self._head = stock.model, stock.lm_head
        self._layers: Sequence[Any] = stock.model.layers
        attention = self._layers[0].self_attn
        self._head_width = attention.head_dim
        self._key_heads = attention.k_proj.out_features // attention.head_dim
        weight: Tensor = stock.model.embed_tokens.weight
        self.vocabulary, self.device, self.dtype = weight.shape[0], weight.device, weight.dtype
        self.parameters = sum(parameter.numel() for parameter in stock.parameters())

    @torch.inference_mode()
    def run(self, passes: Sequence[MaskedPass]) -> list[Tensor]:
        """Return for each pass its logits [wanted, vocabulary] in fp32 on the CPU: of the asked rows, not shifted."""
        for item in passes:
            self._prepare(item)
        segments = [_segments(item) for item in passes]
        flat = [segment for group in segments for segment in group]
        rows = self._trunk.embed_tokens(self._integers([token for segment in flat for token in segment.tokens]))
        cosine, sine = self._rotary(rows, [position for segment in flat for position in segment.positions])
        for number, layer in enumerate(self._layers):
            mixed = self._attend(number, layer, flat, layer.input_layernorm(rows), cosine, sine)
            rows = rows + layer.self_attn.o_proj(mixed)
            rows = rows + layer.mlp(layer.post_attention_layernorm(rows))
        wanted: list[int] = []
        start = 0
        for item, group in zip(passes, segments, strict=True):
            live = start + group[0].fixed
            wanted += [live + row for row in item.wanted]
            start += item.rows
        logits: Tensor = self._head(self._trunk.norm(rows[self._integers(wanted)])).float().cpu()
        return list(torch.split(logits, [len(item.wanted) for item in passes]))

    def _attend(
        self, number: int, layer: Any, segments: list[_Segment], rows: Tensor, cosine: Tensor, sine: Tensor
    ) -> Tensor:
        attention = layer.self_attn
        shape = (len(rows), -1, self._head_width)
        query, key = attention.q_proj(rows).view(shape), attention.k_proj(rows).view(shape)
        if hasattr(attention, "q_norm"):  # Qwen3
            query, key = attention.q_norm(query), attention.k_norm(key)
        query, key = (turned(each, cosine, sine).transpose(0, 1) for each in (query, key))
        value = attention.v_proj(rows).view(shape).transpose(0, 1)
        mixed, at = [], 0
        for segment in segments:
            own = slice(at, at + len(segment.tokens))
            keys, values = self._seen(number, segment, key[:, own], value[:, own])
            found = F.scaled_dot_product_attention(
                query[None, :, own], keys[None], values[None], scale=attention.scaling, enable_gqa=True
            )
            mixed.append(found[0].transpose(0, 1).flatten(1))
            at = own.stop
        return torch.cat(mixed)

    def _seen(self, number: int, segment: _Segment, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
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
        sides.length = length

    def _moved(self, keys: Tensor, distance: int) -> Tensor:
        """Return keys [..., head width] as they are `distance` positions further on."""
        wide = keys.float()
        cosine, sine = self._rotary(wide[..., :1, :], [distance])
        scaling = float(self._trunk.rotary_emb.attention_scaling)
        return turned(wide, cosine[0] / scaling, sine[0] / scaling).to(keys.dtype)

    def _rotary(self, like: Tensor, positions: list[int]) -> tuple[Tensor, Tensor]:
        """Return cosines and sines [positions, 1, head width] in the precision of `like`."""
        cosine, sine = self._trunk.rotary_emb(like, self._integers(positions)[None])
        return cosine[0][:, None], sine[0][:, None]

    def _integers(self, numbers: list[int]) -> Tensor:
        return torch.tensor(numbers, dtype=torch.long, device=self.device)


def _segments(item: MaskedPass) -> list[_Segment]:
    segments: list[_Segment] = []
    sides = item.sides
    for number, middle in enumerate(item.middles):
        fixed, live = sides.positions(len(middle))
        read = item.reads_sides and number == 0
        tokens = [*(sides.fixed if read else ()), *sides.anchor, *middle]
        positions = [*(fixed if read else ()), *live]
        segments.append(_Segment(sides, tokens, positions, len(middle), len(sides.fixed) if read else 0, number > 0))
    return segments
