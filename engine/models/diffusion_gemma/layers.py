"""The layers of the released model, run over the rows of many holes at once.

The caller passes the attention: over each hole's own context (SegmentAttention), or over slots in a captured step
(cuda_graphs.attention.SlotAttention). The rest never waits for the device, and its shapes depend only on the number of
rows.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from engine.models.cuda_graphs.fused import fused
from engine.models.diffusion_gemma.attention import ContextSegment, SegmentAttention
from engine.models.diffusion_gemma.context import LayerShape, RollingContext
from engine.models.quantization.quantizer import count_parameters
from engine.models.stock.layer import rotate


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
