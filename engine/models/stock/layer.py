"""A layer of transformers in two parts, before and after its attention. The caller computes the attention."""

from typing import Any

import torch
from torch import Tensor


def before_attention(layer: Any, rows: Tensor, cosine: Tensor, sine: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the queries, keys and values [rows, heads, head width] of rows [rows, width]."""
    attention = layer.self_attn
    normed = layer.input_layernorm(rows)
    shape = (len(rows), -1, attention.head_dim)
    query, key = attention.q_proj(normed).view(shape), attention.k_proj(normed).view(shape)
    if hasattr(attention, "q_norm"):  # Qwen3
        query, key = attention.q_norm(query), attention.k_norm(key)
    return rotate(query, cosine, sine), rotate(key, cosine, sine), attention.v_proj(normed).view(shape)


def after_attention(layer: Any, rows: Tensor, mixed: Tensor) -> Tensor:
    """Return the layer's output [rows, width] from its input rows and mixed values [rows, heads, head width]."""
    rows = rows + layer.self_attn.o_proj(mixed.flatten(1))
    added: Tensor = layer.mlp(layer.post_attention_layernorm(rows))
    return rows + added


def rotate(keys: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    """Apply rotary embeddings to keys or queries [..., head width]; `cosine` and `sine` broadcast to them."""
    first, second = keys.chunk(2, dim=-1)
    return keys * cosine + torch.cat((-second, first), dim=-1) * sine
