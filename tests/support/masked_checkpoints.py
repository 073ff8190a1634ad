"""Tiny random checkpoints of the masked families, with the files and names of their releases."""

import json
from pathlib import Path
from typing import Any

import attrs
import torch
import transformers
from safetensors.torch import save_file
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from torch import Tensor
from transformers.models.qwen2.tokenization_qwen2 import PRETOKENIZE_REGEX

from support.sources import source_paths

ROOT = Path(__file__).parents[2]
TEXT_TOKENS, VOCABULARY, WINDOW = 384, 400, 256
END, BEGIN, MASK, EXPAND, PAD = 384, 385, 386, 387, 387
CODA_END = BEGIN
"""CoDA's <|im_end|>; END pads."""
FAMILIES = ("dream", "dreamon", "diffucoder", "open-dcoder", "dllm-qwen", "llada", "coda")
_SIZES: dict[str, Any] = {
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": WINDOW,
    "rope_theta": 1000000.0,
    "rms_norm_eps": 1e-06,
    "vocab_size": VOCABULARY,
    "bos_token_id": END,
    "eos_token_id": END,
    "pad_token_id": END,
}
_DREAM: dict[str, Any] = {
    **_SIZES,
    "architectures": ["DreamModel"],
    "attention_dropout": 0.0,
    "auto_map": {"AutoConfig": "configuration_dream.DreamConfig", "AutoModel": "modeling_dream.DreamModel"},
    "hidden_act": "silu",
    "initializer_range": 0.02,
    "mask_token_id": MASK,
    "max_window_layers": 28,
    "model_type": "Dream",
    "rope_scaling": None,
    "sliding_window": None,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
    "transformers_version": "4.46.2",
    "use_cache": True,
    "use_mrope": False,
    "use_sliding_window": False,
}
_A2D: dict[str, Any] = {
    **_SIZES,
    "architectures": ["A2DQwen2LMHeadModel"],
    "model_type": "a2d-qwen2",
    "tie_word_embeddings": True,
}
_LLADA: dict[str, Any] = {
    "activation_type": "silu",
    "alibi": False,
    "architectures": ["LLaDAModelLM"],
    "attention_layer_norm": False,
    "auto_map": {"AutoConfig": "configuration_llada.LLaDAConfig", "AutoModel": "modeling_llada.LLaDAModelLM"},
    "block_type": "llama",
    "d_model": 32,
    "embedding_size": VOCABULARY,
    "eos_token_id": END,
    "include_bias": False,
    "include_qkv_bias": False,
    "layer_norm_type": "rms",
    "mask_token_id": MASK,
    "max_sequence_length": WINDOW,
    "mlp_hidden_size": 64,
    "model_type": "llada",
    "n_heads": 4,
    "n_kv_heads": 4,
    "n_layers": 2,
    "pad_token_id": END,
    "rms_norm_eps": 1e-05,
    "rope": True,
    "rope_theta": 500000.0,
    "vocab_size": VOCABULARY,
    "weight_tying": False,
}
_CODA: dict[str, Any] = {
    **{key: value for key, value in _SIZES.items() if key not in ("bos_token_id", "eos_token_id")},
    "architectures": ["CoDALanguageModel"],
    "attention_bias": False,
    "attention_dropout": 0.0,
    "attention_kernel": "flash_attention",
    "auto_map": {"AutoConfig": "model_config.CoDAConfig", "AutoModel": "modeling_coda.CoDALanguageModel"},
    "block_masking_probability": [0.25, 0.5],
    "hidden_act": "silu",
    "initializer_range": 0.02,
    "mask_block_sizes": [4, 8, 16, 32],
    "mask_token_id": MASK,
    "max_window_layers": 28,
    "model_type": "CoDA",
    "prefix_probability": 0,
    "rope_scaling": None,
    "sampling_eps": [0.001, 0.25],
    "sliding_window": None,
    "torch_dtype": "float32",
    "transformers_version": "4.47.1",
    "truncate_probability": 0,
    "use_cache": True,
    "use_sliding_window": False,
}
_OUTSIDE = {"model.embed_tokens": "wte", "model.norm": "ln_f", "lm_head": "ff_out"}
_INSIDE = {
    "self_attn.o_proj": "attn_out",
    "self_attn.": "",
    "mlp.gate_proj": "ff_proj",
    "mlp.up_proj": "up_proj",
    "mlp.down_proj": "ff_out",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ff_norm",
}


@attrs.frozen
class TinyCheckpoint:
    """A checkpoint's folder, and the transformers network with the same weights."""

    folder: Path
    network: Any

    def logits(self, tokens: list[int]) -> Tensor:
        """Return the network's logits [tokens, vocabulary]; every token sees all others."""
        visible = torch.ones(1, 1, len(tokens), len(tokens), dtype=torch.bool)
        with torch.inference_mode():
            logits: Tensor = self.network(torch.tensor([tokens]), attention_mask=visible).logits[0]
        return logits


def tiny_tokenizer() -> Tokenizer:
    """Return a byte-level BPE like Qwen's, trained on this project's sources."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    split = pre_tokenizers.Split(Regex(PRETOKENIZE_REGEX), behavior="isolated")
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([split, byte_level])
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=TEXT_TOKENS, initial_alphabet=alphabet, show_progress=False)
    sources = source_paths()
    tokenizer.train_from_iterator((path.read_text() for path in sources), trainer)
    return tokenizer


def save_checkpoint(family: str, folder: Path, **changed: object) -> TinyCheckpoint:
    """Write a family's checkpoint into a new folder. `changed` overrides keys of config.json."""
    folder.mkdir(parents=True)
    torch.manual_seed(7)
    config, network = _network(family, changed)
    with torch.no_grad():
        for weight in network.parameters():
            weight.normal_(std=0.3) if weight.ndim > 1 else weight.uniform_(0.5, 1.5)
    weights = dict(network.state_dict())
    if config.get("tie_word_embeddings") and family == "open-dcoder":
        del weights["lm_head.weight"]
    if family == "llada":
        weights = {_as_llada(name): weight for name, weight in weights.items()}
    write_json(folder / "config.json", config)
    _write_weights(folder, weights, 1 if family in ("open-dcoder", "dllm-qwen") else 2)
    _write_tokenizer(family, folder)
    return TinyCheckpoint(folder, network.eval())


def write_json(path: Path, content: object) -> None:
    path.write_text(json.dumps(content, indent=2))


def _network(family: str, changed: dict[str, object]) -> tuple[dict[str, Any], Any]:
    match family:
        case "llada":
            config = {**_LLADA, **changed}
            stock = {**_SIZES, "num_key_value_heads": 4, "rope_theta": 500000.0, "rms_norm_eps": 1e-05}
            return config, transformers.LlamaForCausalLM(transformers.LlamaConfig(**stock, tie_word_embeddings=False))
        case "open-dcoder":
            config = {**_SIZES, "architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", **changed}
            config.setdefault("tie_word_embeddings", True)
            stock = {**config, "tie_word_embeddings": True}
        case "coda":
            config = {**_CODA, **changed}
            config.setdefault("head_dim", config["hidden_size"] // config["num_attention_heads"])
            stock = {**config, "tie_word_embeddings": False}
        case "dllm-qwen":
            config = {**_A2D, **changed}
            stock = {**config, "tie_word_embeddings": False}
        case _:
            config = {**_DREAM, **changed}
            stock = dict(config)
    for key in ("architectures", "auto_map", "model_type", "torch_dtype", "transformers_version"):
        stock.pop(key, None)
    if config["model_type"] == "CoDA":
        return config, transformers.Qwen3ForCausalLM(transformers.Qwen3Config(**stock))
    if config["model_type"] == "a2d-qwen3":
        return config, transformers.Qwen3ForCausalLM(transformers.Qwen3Config(**{**stock, "head_dim": 16}))
    return config, transformers.Qwen2ForCausalLM(transformers.Qwen2Config(**stock))


def _as_llada(name: str) -> str:
    for ours, theirs in _OUTSIDE.items():
        if name.startswith(ours):
            return name.replace(ours, f"model.transformer.{theirs}")
    name = name.replace("model.layers", "model.transformer.blocks")
    for ours, theirs in _INSIDE.items():
        name = name.replace(ours, theirs)
    return name


def _write_weights(folder: Path, weights: dict[str, Tensor], shards: int) -> None:
    if shards == 1:
        save_file({name: weight.clone() for name, weight in weights.items()}, folder / "model.safetensors")
        return
    weight_map: dict[str, str] = {}
    for number in range(shards):
        file = f"model-{number + 1:05}-of-{shards:05}.safetensors"
        part = {name: weights[name].clone() for name in sorted(weights)[number::shards]}
        save_file(part, folder / file)
        weight_map |= dict.fromkeys(part, file)
    write_json(folder / "model.safetensors.index.json", {"metadata": {"total_size": 0}, "weight_map": weight_map})


def _write_tokenizer(family: str, folder: Path) -> None:
    added = {"<|endoftext|>": END, "<|beginoftext|>": BEGIN, "<|mask|>": MASK}
    if family == "coda":
        added = {"<|endoftext|>": END, "<|im_end|>": CODA_END, "<|mask|>": MASK}
    if family == "dreamon":
        added["<|expand|>"] = EXPAND
    if family == "diffucoder":
        added["<|dlm_pad|>"] = PAD
    tokenizer = tiny_tokenizer()
    settings: dict[str, object] = {"bos_token": "<|beginoftext|>", "eos_token": "<|endoftext|>"}
    if family == "coda":
        settings = {"eos_token": "<|im_end|>", "pad_token": "<|endoftext|>", "tokenizer_class": "Qwen2Tokenizer"}
    if family == "diffucoder":
        settings["pad_token"] = "<|dlm_pad|>"
    if family in ("dream", "dreamon", "diffucoder"):
        tokenizer.model.save(str(folder))  # vocab.json and merges.txt
        write_json(folder / "added_tokens.json", added)
        settings["tokenizer_class"] = "DreamTokenizer"
    else:
        tokenizer.add_special_tokens([AddedToken(text, special=True, normalized=False) for text in added])
        tokenizer.save(str(folder / "tokenizer.json"))
    if family != "llada":
        settings["mask_token"] = "<|mask|>"
    write_json(folder / "tokenizer_config.json", settings)
    if family == "dreamon":
        write_json(folder / "generation_config.json", {"mask_token_id": MASK, "expand_token_id": EXPAND})
