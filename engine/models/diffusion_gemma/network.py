"""The released layers, run over the rows of many holes at once.

This is the seam for speed. `denoise` is one decoder forward and takes nothing but rows: tokens, signals, positions and
segments. For captured graphs, pad the rows to a bucket (16, 32, 64, 128, 256 for each canvas) and hand attention whole
context buffers with a mask instead of slices: their capacities are powers of two already, so a graph for each pair of
buckets can be kept here. `logits` and `expected_embedding` have static shapes once their rows are padded likewise.
"""

from typing import Any

import torch
from torch import Tensor

from engine.models.diffusion_gemma.attention import NAME, Segment, attend
from engine.models.diffusion_gemma.context import LayerShape, RollingContext


class DiffusionNetwork:
    """Wraps a DiffusionGemmaForBlockDiffusion, whose attention it replaces; images are left out."""

    def __init__(self, model: Any) -> None:
        from transformers import AttentionInterface

        AttentionInterface.register(NAME, attend)
        model.config.text_config._attn_implementation = NAME
        self._decoder, self._encoder = model.model.decoder, model.model.encoder.language_model
        self._head, self._softcap = model.lm_head, model.config.text_config.final_logit_softcapping
        self._kinds: list[str] = model.config.text_config.layer_types
        self._shapes = [
            LayerShape(layer.self_attn.k_proj.out_features // layer.self_attn.head_dim, layer.self_attn.head_dim)
            for layer in self._decoder.layers
        ]
        embedding = self._decoder.embed_tokens.weight
        self.vocabulary, self.width = embedding.shape
        self.dtype: torch.dtype = embedding.dtype
        self.device: torch.device = embedding.device

    @property
    def parameters(self) -> int:
        """How many weights there are, tied ones counted once."""
        weights = [*self._decoder.parameters(), *self._encoder.parameters(), *self._head.parameters()]
        return sum({id(weight): weight.numel() for weight in weights}.values())

    def new_context(self) -> RollingContext:
        return RollingContext(self._shapes, self.dtype, self.device)

    def read(self, tokens: Tensor, positions: Tensor, segments: list[Segment]) -> None:
        """Write the keys and values of tokens [rows] into the contexts of their segments."""
        self._layers(self._encoder, self._encoder.embed_tokens(tokens), positions, segments)

    def denoise(self, tokens: Tensor, signals: Tensor, positions: Tensor, segments: list[Segment]) -> Tensor:
        """Return the last hidden states [rows, width] of canvas tokens [rows].

        `signals` [rows, width] are the embeddings that the last step expected; zeros in the first one.
        """
        inputs = self._decoder.self_conditioning(self._decoder.embed_tokens(tokens), signals)
        hidden: Tensor = self._decoder.norm(self._layers(self._decoder, inputs, positions, segments))
        return hidden

    def _layers(self, half: Any, inputs: Tensor, positions: Tensor, segments: list[Segment]) -> Tensor:
        hidden = inputs[None]
        turns = {kind: half.rotary_emb(hidden, positions[None], kind) for kind in set(self._kinds)}
        for layer, kind in zip(half.layers, self._kinds, strict=True):
            hidden = layer(hidden, position_embeddings=turns[kind], attention_mask=None, segments=segments)
        return hidden[0]

    def embed(self, tokens: Tensor) -> Tensor:
        """Return the embeddings [rows, width] of tokens [rows]."""
        embeddings: Tensor = self._decoder.embed_tokens(tokens)
        return embeddings

    def expected_embedding(self, probabilities: Tensor) -> Tensor:
        """Return the mean embeddings [rows, width] under probabilities [rows, vocabulary]."""
        table = self._decoder.embed_tokens
        mean: Tensor = (probabilities.to(self.dtype) @ table.weight) * table.embed_scale.to(self.dtype)
        return mean

    def logits(self, hidden: Tensor) -> Tensor:
        """Return logits [rows, vocabulary] in fp32."""
        logits: Tensor = self._head(hidden).float()
        return logits.div_(self._softcap).tanh_().mul_(self._softcap)
