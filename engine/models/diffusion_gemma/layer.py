"""A layer of the encoder or the decoder in two parts, before and after its attention."""

from typing import Any

from torch import Tensor

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
