"""Tiny random networks of transformers, of the shapes that the kernel runs, as GGUF and as a folder of safetensors."""

from pathlib import Path
from typing import Any

import attrs
import gguf
import numpy as np
import torch
import transformers
from gguf.quants import quantize
from numpy.typing import NDArray
from safetensors.torch import save_file
from tokenizers import AddedToken

from engine.models.left_to_right.family import FAMILIES, names_of
from support.masked_checkpoints import tiny_tokenizer, write_json

SPECIALS = ("<|endoftext|>", "<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>", "<|repo_name|>", "<|file_sep|>")
TEXT_TOKENS, VOCABULARY, WINDOW = 384, 392, 2048
END = TEXT_TOKENS
SHAPES = ("llama", "qwen2", "qwen3")
_SIZES: dict[str, Any] = {
    "hidden_size": 128,
    "intermediate_size": 256,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": WINDOW,
    "rms_norm_eps": 1e-6,
    "vocab_size": VOCABULARY,
    "rope_theta": 500000.0,
}
_CLASSES: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "llama": (transformers.LlamaConfig, transformers.LlamaForCausalLM, {"tie_word_embeddings": False}),
    "qwen2": (
        transformers.Qwen2Config,
        transformers.Qwen2ForCausalLM,
        {"num_attention_heads": 2, "num_key_value_heads": 1, "tie_word_embeddings": True},
    ),
    "qwen3": (transformers.Qwen3Config, transformers.Qwen3ForCausalLM, {"head_dim": 128, "tie_word_embeddings": True}),
}


@attrs.frozen
class TinyNetwork:
    """A network of transformers, and the kind of it."""

    kind: str
    network: Any

    @property
    def weights(self) -> dict[str, NDArray[np.float32]]:
        """The tensors by the names of safetensors, without a head that is the embedding."""
        tied = self.network.config.tie_word_embeddings
        state = self.network.state_dict().items()
        return {name: tensor.numpy() for name, tensor in state if not (tied and name == "lm_head.weight")}

    def logits(self, tokens: list[int]) -> NDArray[np.float32]:
        """Return fp32 [tokens, vocabulary], as transformers computes them."""
        with torch.inference_mode():
            logits: NDArray[np.float32] = self.network(torch.tensor([tokens])).logits[0].numpy()
        return logits

    def greedy(self, prompt: list[int], most: int, ends: tuple[int, ...], never: list[int]) -> list[int]:
        """Return what transformers' own generate() writes after a prompt, without the end token."""
        tokens = torch.tensor([prompt])
        written: list[int] = self.network.generate(
            tokens,
            attention_mask=torch.ones_like(tokens),
            do_sample=False,
            max_new_tokens=most,
            eos_token_id=list(ends),
            pad_token_id=ends[0],
            suppress_tokens=never,
        )[0, len(prompt) :].tolist()
        return written[:-1] if written[-1] in ends else written

    def save_folder(
        self, folder: Path, dtype: torch.dtype = torch.float32, specials: tuple[str, ...] = SPECIALS
    ) -> Path:
        """Write config.json, tokenizer.json and model.safetensors."""
        folder.mkdir(parents=True)
        self.network.config.save_pretrained(folder)
        weights = {name: torch.from_numpy(weight).to(dtype) for name, weight in self.weights.items()}
        save_file(weights, folder / "model.safetensors")
        tokenizer = tiny_tokenizer()
        tokenizer.add_special_tokens([AddedToken(text, special=True, normalized=False) for text in specials])
        tokenizer.save(str(folder / "tokenizer.json"))
        write_json(folder / "tokenizer_config.json", {"eos_token": SPECIALS[0]})
        return folder

    def save_gguf(self, path: Path, kind: str = "F32", specials: tuple[str, ...] = SPECIALS) -> Path:
        """Write a GGUF with its matrices in a type that the package gguf can quantize to."""
        config = self.network.config
        writer = gguf.GGUFWriter(path, self.kind)
        writer.add_context_length(WINDOW)
        writer.add_embedding_length(config.hidden_size)
        writer.add_block_count(config.num_hidden_layers)
        writer.add_feed_forward_length(config.intermediate_size)
        writer.add_head_count(config.num_attention_heads)
        writer.add_head_count_kv(config.num_key_value_heads)
        writer.add_layer_norm_rms_eps(config.rms_norm_eps)
        writer.add_rope_freq_base(_SIZES["rope_theta"])
        if self.kind == "qwen3":
            writer.add_key_length(config.head_dim)
            writer.add_value_length(config.head_dim)
        self._add_tokenizer(writer, specials)
        for name, weight in self._by_gguf_names().items():
            if weight.ndim == 1 or kind == "F32":
                writer.add_tensor(name, weight)
            else:
                known = gguf.GGMLQuantizationType[kind]
                writer.add_tensor(name, quantize(weight, known), raw_dtype=known)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        return path

    def _add_tokenizer(self, writer: gguf.GGUFWriter, specials: tuple[str, ...]) -> None:
        tokenizer = tiny_tokenizer()
        texts = [text for text, _ in sorted(tokenizer.get_vocab().items(), key=lambda entry: entry[1])]
        assert len(texts) == TEXT_TOKENS
        padding = [f"[PAD{number}]" for number in range(VOCABULARY - TEXT_TOKENS - len(specials))]
        kinds = [gguf.TokenType.NORMAL] * TEXT_TOKENS + [gguf.TokenType.CONTROL] * len(specials)
        writer.add_tokenizer_model("gpt2")
        writer.add_tokenizer_pre("qwen2")
        writer.add_token_list([*texts, *specials, *padding])
        writer.add_token_types(kinds + [gguf.TokenType.UNUSED] * len(padding))
        writer.add_token_merges([" ".join(pair) for pair in _merges(tokenizer)])
        writer.add_eos_token_id(END)
        writer.add_bos_token_id(END)
        writer.add_add_bos_token(False)

    def _by_gguf_names(self) -> dict[str, NDArray[np.float32]]:
        family = next(each for each in FAMILIES if each.architecture == self.kind)
        config, weights, found = self.network.config, self.weights, {}
        for names in names_of(config.num_hidden_layers).values():
            for theirs, name in zip(names.safetensors, names.gguf, strict=True):
                if theirs not in weights:
                    continue
                weight = weights[theirs]
                if family.pairs_halves and name.endswith(("attn_q.weight", "attn_k.weight")):
                    heads = config.num_attention_heads if "attn_q" in name else config.num_key_value_heads
                    halves = weight.reshape(heads, 2, -1, weight.shape[1])
                    weight = np.ascontiguousarray(halves.swapaxes(1, 2)).reshape(weight.shape)
                found[name] = weight
                if (bias := theirs.removesuffix("weight") + "bias") in weights:
                    found[name.removesuffix("weight") + "bias"] = weights[bias]
        return found


def tiny_network(kind: str, **asked: object) -> TinyNetwork:
    """Return a random network of one of SHAPES. `asked` overrides keys of its config."""
    torch.manual_seed(3)
    configuration, network, changed = _CLASSES[kind]
    model = network(configuration(**{**_SIZES, **changed, **asked}))
    with torch.no_grad():
        for weight in model.parameters():
            weight.normal_(std=0.15) if weight.ndim > 1 else weight.uniform_(0.5, 1.5)
    return TinyNetwork(kind, model.eval())


def _merges(tokenizer: Any) -> list[tuple[str, str]]:
    import json

    merges = json.loads(tokenizer.to_str())["model"]["merges"]
    pairs = [merge.split(" ") if isinstance(merge, str) else merge for merge in merges]
    return [(left, right) for left, right in pairs]
