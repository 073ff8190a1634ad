"""Which networks the kernel runs, a row a family, and what their tensors are called in each file format.

All are Llama-shaped: see embedded/network.py. What a row does not have, a network of the family must not have.
"""

from collections.abc import Mapping
from typing import Any

import attrs

from engine.errors import ModelError
from engine.library.gguf_file import GgufHeader
from engine.models.embedded.shape import Shape


@attrs.frozen
class Family:
    """A family of networks.

    model_types: what config.json calls it. biased, head_norms: see Shape. pairs_halves: llama.cpp stores the two halves
    of a head of q and k, which rotate together, side by side. head_width: where config.json does not say it; 0 is what
    the width has for each head.
    """

    architecture: str
    model_types: tuple[str, ...]
    biased: bool = False
    head_norms: bool = False
    pairs_halves: bool = False
    head_width: int = 0


FAMILIES = (
    Family("llama", ("llama", "a2d-llama"), pairs_halves=True),
    Family("qwen2", ("qwen2", "a2d-qwen2", "Dream"), biased=True),
    Family("qwen3", ("qwen3", "a2d-qwen3", "CoDA"), head_norms=True, head_width=128),
)


@attrs.frozen
class Names:
    """A tensor's names: ours, those in safetensors and in a GGUF. Several are one matrix here, one after the other."""

    ours: str
    safetensors: tuple[str, ...]
    gguf: tuple[str, ...]


def _of(ours: str, safetensors: str, gguf: str) -> Names:
    return Names(ours, tuple(safetensors.split()), tuple(gguf.split()))


_NETWORK = (
    _of("embed.weight", "model.embed_tokens.weight", "token_embd.weight"),
    _of("norm.weight", "model.norm.weight", "output_norm.weight"),
    _of("head.weight", "lm_head.weight", "output.weight"),
)
_LAYER = (
    _of("norm.weight", "input_layernorm.weight", "attn_norm.weight"),
    _of(
        "qkv.weight",
        "self_attn.q_proj.weight self_attn.k_proj.weight self_attn.v_proj.weight",
        "attn_q.weight attn_k.weight attn_v.weight",
    ),
    _of(
        "qkv.bias",
        "self_attn.q_proj.bias self_attn.k_proj.bias self_attn.v_proj.bias",
        "attn_q.bias attn_k.bias attn_v.bias",
    ),
    _of("query_norm.weight", "self_attn.q_norm.weight", "attn_q_norm.weight"),
    _of("key_norm.weight", "self_attn.k_norm.weight", "attn_k_norm.weight"),
    _of("out.weight", "self_attn.o_proj.weight", "attn_output.weight"),
    _of("feed_norm.weight", "post_attention_layernorm.weight", "ffn_norm.weight"),
    _of("gate_up.weight", "mlp.gate_proj.weight mlp.up_proj.weight", "ffn_gate.weight ffn_up.weight"),
    _of("down.weight", "mlp.down_proj.weight", "ffn_down.weight"),
)


def names_of(layers: int) -> dict[str, Names]:
    """Return the names of all tensors that a network of so many layers may have, by ours."""
    found = {names.ours: names for names in _NETWORK}
    for layer in range(layers):
        for names in _LAYER:
            ours = f"blocks.{layer}.{names.ours}"
            safetensors = tuple(f"model.layers.{layer}.{name}" for name in names.safetensors)
            found[ours] = Names(ours, safetensors, tuple(f"blk.{layer}.{name}" for name in names.gguf))
    return found


def family_of_header(header: GgufHeader) -> Family:
    """Return the family of a GGUF. Raises ModelError for one that the kernel does not run."""
    for family in FAMILIES:
        if family.architecture == header.architecture:
            return family
    known = ", ".join(family.architecture for family in FAMILIES)
    raise ModelError(f"{header.path} holds a {header.architecture[:40]!r}; the kernel runs {known}")


def family_of_config(config: Mapping[str, Any]) -> Family | None:
    """Return the family of a config.json; None for one that the kernel does not run."""
    return next((family for family in FAMILIES if config.get("model_type") in family.model_types), None)


def shape_of_header(header: GgufHeader, most_tokens: int) -> Shape:
    """Return the shape that a GGUF says, for contexts of at most `most_tokens`. Raises ModelError in one line."""
    family = family_of_header(header)

    def key(name: str) -> str:
        return f"{family.architecture}.{name}"

    for name in ("expert_count", "attention.sliding_window"):
        if header.fields.get(key(name)):
            raise ModelError(f"{header.path} has {key(name)}, which the kernel does not run")
    if header.fields.get(key("rope.scaling.type"), "none") != "none" or "rope_freqs.weight" in header.tensors:
        raise ModelError(f"{header.path} has scaled rotary positions, which the kernel does not run")
    width, heads = header.whole(key("embedding_length")), header.whole(key("attention.head_count"))
    head_width = header.whole(key("attention.key_length"), width // max(heads, 1))
    if header.whole(key("attention.value_length"), head_width) != head_width:
        raise ModelError(f"{header.path} has keys and values of different widths, which the kernel does not run")
    if header.whole(key("rope.dimension_count"), head_width) != head_width:
        raise ModelError(f"{header.path} rotates a part of each head, which the kernel does not run")
    embedding = header.tensors.get("token_embd.weight")
    if embedding is None:
        raise ModelError(f"{header.path} lacks the tensor token_embd.weight")
    return _shape(
        str(header.path),
        vocabulary=embedding.sides[0],
        width=width,
        layers=header.whole(key("block_count")),
        heads=heads,
        key_heads=header.whole(key("attention.head_count_kv"), heads),
        head_width=head_width,
        hidden=header.whole(key("feed_forward_length")),
        context_tokens=min(header.whole(key("context_length")), most_tokens),
        canvas_tokens=0,
        rope_base=header.number(key("rope.freq_base"), 10_000.0),
        norm_epsilon=header.number(key("attention.layer_norm_rms_epsilon")),
        biased=family.biased,
        head_norms=family.head_norms,
        tied="output.weight" not in header.tensors,
    )


def shape_of_config(config: Mapping[str, Any], most_tokens: int) -> Shape:
    """Return the shape that a config.json says. Raises ModelError in one line for what the kernel does not run."""
    family = family_of_config(config)
    if family is None:
        raise ModelError(f"the kernel does not run a {str(config.get('model_type'))[:40]!r}")
    rope = config.get("rope_parameters") or config.get("rope_scaling") or {}
    unknown = [name for name in ("attention_bias", "mlp_bias", "use_sliding_window") if config.get(name)]
    if rope.get("rope_type", rope.get("type", "default")) != "default":
        unknown.append("rope_scaling")
    if config.get("hidden_act", "silu") != "silu":
        unknown.append("hidden_act")
    if unknown:
        raise ModelError(f"the kernel does not run a network with {unknown[0]}")
    try:
        heads, width = config["num_attention_heads"], config["hidden_size"]
        return _shape(
            "config.json",
            vocabulary=config["vocab_size"],
            width=width,
            layers=config["num_hidden_layers"],
            heads=heads,
            key_heads=config.get("num_key_value_heads") or heads,
            head_width=config.get("head_dim") or family.head_width or width // heads,
            hidden=config["intermediate_size"],
            context_tokens=min(config["max_position_embeddings"], most_tokens),
            canvas_tokens=0,
            rope_base=float(rope.get("rope_theta") or config.get("rope_theta") or 10_000.0),
            norm_epsilon=float(config["rms_norm_eps"]),
            biased=family.biased,
            head_norms=family.head_norms,
            tied=bool(config.get("tie_word_embeddings")),
        )
    except (KeyError, TypeError, ValueError, ZeroDivisionError) as error:
        raise ModelError(f"its config.json does not say {error}") from None


def _shape(where: str, **sizes: Any) -> Shape:
    try:
        return Shape(**sizes)
    except (ValueError, TypeError, ZeroDivisionError) as error:
        raise ModelError(f"{where} says sizes that the kernel does not run: {error}") from None
