"""LLaDA: a Llama with other names in config.json (model_type "llada", OLMo's keys) and for its tensors."""

import re

from engine.errors import ModelError
from engine.models.stock.family import JsonObject, MaskedTokens, ModelFamily, Stock

_FIELDS = {
    "d_model": "hidden_size",
    "n_layers": "num_hidden_layers",
    "n_heads": "num_attention_heads",
    "mlp_hidden_size": "intermediate_size",
    "max_sequence_length": "max_position_embeddings",
    "rms_norm_eps": "rms_norm_eps",
    "rope_theta": "rope_theta",
}
_AS_LLAMA: JsonObject = {
    "block_type": "llama",
    "layer_norm_type": "rms",
    "activation_type": "silu",
    "rope": True,
    "alibi": False,
    "attention_layer_norm": False,
    "include_bias": False,
    "include_qkv_bias": False,
}
_BLOCK = {
    "q_proj": "self_attn.q_proj",
    "k_proj": "self_attn.k_proj",
    "v_proj": "self_attn.v_proj",
    "attn_out": "self_attn.o_proj",
    "ff_proj": "mlp.gate_proj",
    "up_proj": "mlp.up_proj",
    "ff_out": "mlp.down_proj",
    "attn_norm": "input_layernorm",
    "ff_norm": "post_attention_layernorm",
}
_OUTSIDE = {
    "model.transformer.wte.weight": "model.embed_tokens.weight",
    "model.transformer.ln_f.weight": "model.norm.weight",
    "model.transformer.ff_out.weight": "lm_head.weight",
}
_IN_BLOCK = re.compile(r"model\.transformer\.blocks\.(\d+)\.(\w+)\.weight")


def llama(config: JsonObject) -> Stock:
    """Return config.json as a Llama config. Raises ModelError if no Llama can have these values."""
    for key, value in _AS_LLAMA.items():
        if (configured := config.get(key, value)) != value:
            raise ModelError(f"config.json has {key} {configured!r}; for a LLaDA only {value!r} is supported")
    if missing := [key for key in _FIELDS if key not in config]:
        raise ModelError(f"config.json of a LLaDA lacks {', '.join(missing)}")
    fields: JsonObject = {stock: config[key] for key, stock in _FIELDS.items()}
    fields["num_key_value_heads"] = config.get("n_kv_heads") or config["n_heads"]
    fields["vocab_size"] = config.get("embedding_size") or config.get("vocab_size")
    fields["tie_word_embeddings"] = bool(config.get("weight_tying"))
    return Stock("Llama", fields)


def renamed(name: str) -> str:
    """Return Llama's name of a LLaDA tensor. An unknown name stays as it is; loading then reports it."""
    if (block := _IN_BLOCK.fullmatch(name)) and (part := _BLOCK.get(block[2])):
        return f"model.layers.{block[1]}.{part}.weight"
    return _OUTSIDE.get(name, name)


LLADA = ModelFamily(
    name="llada",
    model_types=("llada",),
    licence="MIT",
    shifted=False,
    special_tokens=MaskedTokens(mask=126336, end=126081, padding=(126348,)),
    stock=llama,
    rename=renamed,
)
