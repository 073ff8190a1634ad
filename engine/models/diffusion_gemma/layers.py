"""The layers of the released model, run over the rows of many holes at once, and the contexts that they see.

The caller passes the attention: over each hole's own context (SegmentAttention), or over slots in a captured step
(cuda_graphs.slots.SlotAttention). The rest never waits for the device, and its shapes depend only on the number of
rows.

A context can be truncated at any token: all layers keep the keys and values of all tokens. The caches of transformers
drop what has left the window of a sliding layer, so they cannot roll back past it. Keeping all costs memory (225 kB per
token for the 26B checkpoint in bf16, 90 % of it in sliding layers). It saves a prefill whenever the user edits further
up in the file.
"""

from collections.abc import Callable, Sequence
from typing import Any

import attrs
import torch
from torch import Tensor

from engine.models.cuda_graphs.graphs import fused
from engine.models.cuda_graphs.slots import LayerShape
from engine.models.quantization.quantizer import count_parameters
from engine.models.stock.attention import CausalRows, attend, rotate

STEP = 256
"""Buffers have a multiple of this many positions."""
MEMORY_SHARE = 5
"""One context takes at most a fifth of the memory that the weights leave free, or a quarter once it has grown. Graphs'
slots take a quarter, cached contexts a quarter, and what a pass computes has the rest."""
LEAST_WINDOW = 1024
"""Tokens that are read on any device."""
GROWTH = 4
"""A full buffer grows by at least a quarter, so that a long context is copied few times. A doubled one would hold up to
twice a context's bytes, and three times while it is copied."""


def affordable_window(free: int, per_token: int, window: int) -> int:
    """Return how many tokens a context may have, at most `window`, if it may take MEMORY_SHARE of `free` bytes."""
    return min(window, max(LEAST_WINDOW, free // MEMORY_SHARE // per_token // STEP * STEP))


class RollingContext:
    """Implements interface.Context. `layers` holds keys and values [2, heads, capacity, width] of every layer."""

    def __init__(self, shapes: Sequence[LayerShape], dtype: torch.dtype, device: torch.device) -> None:
        self.tokens: list[int] = []
        self._shapes, self._dtype, self._device = shapes, dtype, device
        self.capacity = 0
        self.layers = [self._buffer(shape, 0) for shape in shapes]

    @property
    def bytes(self) -> int:
        return sum(buffer.nbytes for buffer in self.layers)

    def truncate(self, length: int) -> None:
        del self.tokens[length:]

    def fork(self, length: int) -> "RollingContext":
        copy = RollingContext(self._shapes, self._dtype, self._device)
        copy.tokens = self.tokens[:length]
        copy.reserve(length)
        for source, target in zip(self.layers, copy.layers, strict=True):
            target[:, :, :length] = source[:, :, :length]
        return copy

    def reserve(self, length: int) -> None:
        """Make room for `length` positions. Stored keys and values stay."""
        if length <= self.capacity:
            return
        old_capacity = self.capacity
        self.capacity = -(-max(length, old_capacity + old_capacity // GROWTH) // STEP) * STEP
        for index, shape in enumerate(self._shapes):  # one by one, so that only one layer is in memory twice
            grown = self._buffer(shape, self.capacity)
            grown[:, :, :old_capacity] = self.layers[index]
            self.layers[index] = grown

    def _buffer(self, shape: LayerShape, capacity: int) -> Tensor:
        return torch.empty(2, shape.heads, capacity, shape.width, dtype=self._dtype, device=self._device)


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


def before_attention(layer: Any, rows: Tensor, cosine: Tensor, sine: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the queries, keys and values [rows, heads, head width] of rows [rows, width].

    A layer with full attention has no values of its own: its keys, before norm and rotation, are also the values.
    """
    attention = layer.self_attn
    normed = layer.input_layernorm(rows)
    shape = (len(rows), -1, attention.head_dim)
    query = attention.q_norm(attention.q_proj(normed).view(shape))
    key = attention.k_proj(normed).view(shape)
    value = key if attention.v_proj is None else attention.v_proj(normed).view(shape)
    return rotate(query, cosine, sine), rotate(attention.k_norm(key), cosine, sine), attention.v_norm(value)


def after_attention(layer: Any, rows: Tensor, mixed: Tensor) -> Tensor:
    """Return the layer's output [rows, width] from its input rows and mixed values [rows, heads, head width]."""
    rows = rows + layer.post_attention_layernorm(layer.self_attn.o_proj(mixed.flatten(1)))
    dense = layer.post_feedforward_layernorm_1(layer.mlp(layer.pre_feedforward_layernorm(rows)))
    _, weights, chosen = layer.router(rows)
    experts = layer.experts(layer.pre_feedforward_layernorm_2(rows), chosen, weights)
    added = layer.post_feedforward_layernorm(dense + layer.post_feedforward_layernorm_2(experts))
    result: Tensor = (rows + added) * layer.layer_scalar
    return result


Mix = Callable[[int, Tensor, Tensor, Tensor, float | None, int | None], Tensor]
"""Attention: from layer index, queries, keys and values [rows, heads, width], scale and window to mixed values."""


class DiffusionNetwork:
    """Runs a DiffusionGemmaForBlockDiffusion with its own attention, and without its image part."""

    def __init__(self, model: Any) -> None:
        self._decoder, self._encoder = model.model.decoder, model.model.encoder.language_model
        self._head, self._softcap = model.lm_head, model.config.text_config.final_logit_softcapping
        self._layer_types: list[str] = model.config.text_config.layer_types
        self.shapes = [
            LayerShape(layer.self_attn.k_proj.out_features // layer.self_attn.head_dim, layer.self_attn.head_dim)
            for layer in self._decoder.layers
        ]
        embedding = self._decoder.embed_tokens.weight
        self.vocabulary, self.width = embedding.shape
        self.dtype: torch.dtype = embedding.dtype
        self.device: torch.device = embedding.device
        self._before, self._after = fused(before_attention, self.device), fused(after_attention, self.device)

    @property
    def parameters(self) -> int:
        """The number of weights; tied ones count once."""
        return count_parameters(self._decoder, self._encoder, self._head)

    def new_context(self) -> RollingContext:
        return RollingContext(self.shapes, self.dtype, self.device)

    def read(self, tokens: Tensor, positions: Tensor, segments: list[ContextSegment]) -> None:
        """Write the keys and values of tokens [rows] into the contexts of the segments."""
        mix = SegmentAttention(segments, causal=True).mix
        self._layers(self._encoder, self._encoder.embed_tokens(tokens), positions, mix)

    def denoise(self, tokens: Tensor, signals: Tensor, positions: Tensor, segments: list[ContextSegment]) -> Tensor:
        """Return the last hidden states [rows, width] of canvas tokens [rows].

        `signals` [rows, width] are the embeddings that the last step expects; zeros in the first step.
        """
        return self.denoise_over(tokens, signals, positions, SegmentAttention(segments, causal=False).mix)

    def denoise_over(self, tokens: Tensor, signals: Tensor, positions: Tensor, mix: Mix) -> Tensor:
        """As `denoise`, with any attention."""
        inputs = self._decoder.self_conditioning(self._decoder.embed_tokens(tokens), signals)
        hidden: Tensor = self._decoder.norm(self._layers(self._decoder, inputs, positions, mix))
        return hidden

    def _layers(self, half: Any, rows: Tensor, positions: Tensor, mix: Mix) -> Tensor:
        rotations = {}
        for layer_type in sorted(set(self._layer_types)):
            cosine, sine = half.rotary_emb(rows[None], positions[None], layer_type)
            rotations[layer_type] = cosine[0][:, None], sine[0][:, None]
        for index, (layer, layer_type) in enumerate(zip(half.layers, self._layer_types, strict=True)):
            query, key, value = self._before(layer, rows, *rotations[layer_type])
            attention = layer.self_attn
            mixed = mix(index, query, key, value, attention.scaling, attention.sliding_window)
            rows = self._after(layer, rows, mixed)
        return rows

    def embed(self, tokens: Tensor) -> Tensor:
        """Return the embeddings [rows, width] of tokens [rows]."""
        embeddings: Tensor = self._decoder.embed_tokens(tokens)
        return embeddings

    def expected_embedding(self, probabilities: Tensor) -> Tensor:
        """Return the expected embeddings [rows, width] for probabilities [rows, vocabulary]."""
        table = self._decoder.embed_tokens
        mean: Tensor = (probabilities.to(self.dtype) @ table.weight) * table.embed_scale.to(self.dtype)
        return mean

    def logits(self, hidden: Tensor) -> Tensor:
        """Return logits [rows, vocabulary] in fp32."""
        logits: Tensor = self._head(hidden).float()
        return logits.div_(self._softcap).tanh_().mul_(self._softcap)
