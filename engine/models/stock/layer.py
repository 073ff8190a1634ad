"""A stock layer in two pieces, before and after its attention, which is the caller's."""

from typing import Any

from torch import Tensor

from engine.models.masked.sides import turned


def before_attention(layer: Any, rows: Tensor, cosine: Tensor, sine: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the queries, keys and values [rows, heads, head width] of rows [rows, width]."""
    attention = layer.self_attn
    normed = layer.input_layernorm(rows)
    shape = (len(rows), -1, attention.head_dim)
    query, key = attention.q_proj(normed).view(shape), attention.k_proj(normed).view(shape)
    if hasattr(attention, "q_norm"):  # Qwen3
        query, key = attention.q_norm(query), attention.k_norm(key)
    return turned(query, cosine, sine), turned(key, cosine, sine), attention.v_proj(normed).view(shape)


def after_attention(layer: Any, rows: Tensor, mixed: Tensor) -> Tensor:
    """Return the layer's rows [rows, width] from those that came in and its mixed values [rows, heads, head width]."""
    rows = rows + layer.self_attn.o_proj(mixed.flatten(1))
    added: Tensor = layer.mlp(layer.post_attention_layernorm(rows))
    return rows + added
