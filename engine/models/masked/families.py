"""The families of masked models, and which of them a checkpoint belongs to. Only this module decides it.

In this order: "family" in midspan.json; the catalog, for a model from `midspan models pull`; "model_type" in
config.json; and if that is ambiguous, the tokens of the tokenizer.

    model_type "Dream"                        DreamOn with <|expand|>, DiffuCoder with <|dlm_pad|>, else Dream-Coder
    model_type "a2d-qwen2", -qwen3, -llama    dLLM's conversions
    model_type "llada"                        LLaDA
    model_type "CoDA"                         CoDA
    model_type "qwen2" with a mask token      Open-dCoder; without one it is Qwen itself, which is not a masked model
                                              but reads left to right: models/left_to_right/

Dream is Qwen2.5-Coder turned into a diffusion model; its logits stay shifted. In all three releases config.json has
model_type "Dream", architectures ["DreamModel"], an auto_map to modeling_dream.DreamModel and mask_token_id 151666; the
tensors have the names of Qwen2. Open-dCoder's own code loads it as a Qwen2ForCausalLM, and its mask is the tokenizer's
mask_token. In dLLM's releases (a2d) lm_head is not tied, even if config.json claims so. LLaDA is a Llama with other
names in config.json (OLMo's keys) and for its tensors. CoDA is a Qwen3 with its names, and a lm_head of its own. Only
the tokenizer names its end token (CoDALanguageModel/ in SalesforceAIResearch/CoDA).
"""

import re

import attrs
from tokenizers import Tokenizer

from engine.errors import ModelError
from engine.library.resolve import known_model
from engine.models.stock.checkpoint import NOTES, Checkpoint, JsonObject, MaskedTokens, ModelFamily, Stock


def qwen2(config: JsonObject) -> Stock:
    """Return config.json as a Qwen2 config."""
    return Stock("Qwen2", config)


DREAM = ModelFamily(
    name="dream",
    model_types=("Dream", "qwen2"),
    licence="Apache-2.0",
    shifted=True,
    special_tokens=MaskedTokens(mask=151666, end=151643),
    stock=qwen2,
)
DIFFUCODER = attrs.evolve(
    DREAM, name="diffucoder", licence="apple-amlr", special_tokens=MaskedTokens(151666, 151643, (151667,))
)
DREAMON = attrs.evolve(
    DREAM,
    name="dreamon",
    special_tokens=MaskedTokens(mask=151666, end=151643, begin=151665, expand=151667),
    context_tokens=2048,
)


_CONVERTED = {"a2d-qwen2": "Qwen2", "a2d-qwen3": "Qwen3", "a2d-llama": "Llama"}


def converted(config: JsonObject) -> Stock:
    """Return config.json as the config of the converted architecture."""
    return Stock(_CONVERTED[config["model_type"]], config)


OPEN_DCODER = ModelFamily(
    name="open-dcoder",
    model_types=("qwen2",),
    licence="Apache-2.0",
    shifted=True,
    special_tokens=MaskedTokens(mask=151665, end=151643),
    stock=qwen2,
)
DLLM_QWEN = ModelFamily(
    name="dllm-qwen",
    model_types=tuple(_CONVERTED),
    licence="unknown",
    shifted=False,
    special_tokens=MaskedTokens(mask=151665, end=151643),
    stock=converted,
)


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


def coda(config: JsonObject) -> Stock:
    """Return config.json as a Qwen3 config."""
    return Stock("Qwen3", {"tie_word_embeddings": True, **config})


CODA = ModelFamily(
    name="coda",
    model_types=("CoDA",),
    licence="CC-BY-NC-4.0",
    shifted=True,
    special_tokens=MaskedTokens(mask=151669, end=151645, padding=(151643,)),
    stock=coda,
)


QWEN_FIM = "qwen-fim"
MASKED_FAMILIES = {family.name: family for family in (DREAM, DREAMON, DIFFUCODER, OPEN_DCODER, DLLM_QWEN, LLADA, CODA)}


def said_family(checkpoint: Checkpoint) -> str:
    """Return the family that midspan.json or the catalog says; "" if neither does."""
    known = known_model(checkpoint.folder)
    return checkpoint.notes.family or ("" if known is None else known.family)


def reads_left_to_right(checkpoint: Checkpoint) -> bool:
    """Return whether a checkpoint is Qwen itself, or is named so. Raises ModelError if its folder is damaged."""
    if name := said_family(checkpoint):
        return name == QWEN_FIM
    return checkpoint.config.get("model_type") == "qwen2" and not _has_mask(checkpoint)


def denoises(checkpoint: Checkpoint) -> bool:
    """Return whether a checkpoint is a masked model by its catalog entry or its files. Raises ModelError if damaged."""
    if name := said_family(checkpoint):
        return name in MASKED_FAMILIES
    masked_types = {each for family in MASKED_FAMILIES.values() for each in family.model_types}
    return _has_mask(checkpoint) or checkpoint.config.get("model_type") in masked_types - {"qwen2"}


def family_of(checkpoint: Checkpoint, tokenizer: Tokenizer) -> ModelFamily:
    """Return the family of a checkpoint. Raises ModelError if it is unknown, or contradicts config.json."""
    name = said_family(checkpoint)
    model_type = checkpoint.config.get("model_type")
    family = MASKED_FAMILIES.get(name) if name else _by_files(checkpoint, tokenizer)
    if family is None:
        raise unknown_family(checkpoint)
    if model_type not in family.model_types:
        raise ModelError(
            f"the model in {checkpoint.folder} is said to be of family {family.name}, but its config.json has "
            f"model_type {model_type!r} and not {' or '.join(family.model_types)}"
        )
    return family


def unknown_family(checkpoint: Checkpoint) -> ModelError:
    """Return the error for a checkpoint of a family that is not known."""
    name = said_family(checkpoint)
    said = f"of family {name!r}" if name else f"of model_type {checkpoint.config.get('model_type')!r}"
    remedy = f'or set "family" in {NOTES} there to one of {", ".join((*MASKED_FAMILIES, QWEN_FIM))}'
    return ModelError(
        f"the model in {checkpoint.folder} is {said}, which is not supported; use another model, {remedy}"
    )


def _by_files(checkpoint: Checkpoint, tokenizer: Tokenizer) -> ModelFamily | None:
    match checkpoint.config.get("model_type"):
        case "Dream":
            configured = {**checkpoint.generation, **checkpoint.config}
            if "expand_token_id" in configured or tokenizer.token_to_id("<|expand|>") is not None:
                return DREAMON
            return DREAM if tokenizer.token_to_id("<|dlm_pad|>") is None else DIFFUCODER
        case "qwen2":
            return OPEN_DCODER if _has_mask(checkpoint) else None
        case "llada":
            return LLADA
        case "CoDA":
            return CODA
        case other:
            return DLLM_QWEN if other in DLLM_QWEN.model_types else None


def _has_mask(checkpoint: Checkpoint) -> bool:
    return bool(checkpoint.tokenizer.get("mask_token") or checkpoint.config.get("mask_token_id"))
