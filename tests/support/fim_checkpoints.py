"""Tiny random checkpoints of Qwen2.5-Coder, with the files and names of the release."""

from pathlib import Path
from typing import Any

import attrs
import torch
import transformers
from safetensors.torch import save_file
from tokenizers import AddedToken

from support.masked_checkpoints import tiny_tokenizer, write_json

FLAGGED = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
UNFLAGGED = ("<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>", "<|fim_pad|>", "<|repo_name|>", "<|file_sep|>")
"""Special tokens that the released tokenizer does not flag as special."""
TEXT_TOKENS, VOCABULARY, WINDOW = 384, 400, 2048
SPECIAL_TOKENS = {text: TEXT_TOKENS + index for index, text in enumerate((*FLAGGED, *UNFLAGGED))}
_CONFIG: dict[str, Any] = {
    "architectures": ["Qwen2ForCausalLM"],
    "attention_dropout": 0.0,
    "bos_token_id": SPECIAL_TOKENS["<|endoftext|>"],
    "eos_token_id": SPECIAL_TOKENS["<|endoftext|>"],
    "hidden_act": "silu",
    "hidden_size": 32,
    "initializer_range": 0.02,
    "intermediate_size": 64,
    "max_position_embeddings": WINDOW,
    "max_window_layers": 2,
    "model_type": "qwen2",
    "num_attention_heads": 4,
    "num_hidden_layers": 2,
    "num_key_value_heads": 2,
    "rms_norm_eps": 1e-06,
    "rope_theta": 1000000.0,
    "sliding_window": WINDOW,
    "tie_word_embeddings": True,
    "torch_dtype": "bfloat16",
    "transformers_version": "4.44.0",
    "use_cache": True,
    "use_sliding_window": False,
    "vocab_size": VOCABULARY,
}
_NO_FIELDS = ("architectures", "model_type", "torch_dtype", "transformers_version")


@attrs.frozen
class FimCheckpoint:
    """A checkpoint's folder, and the transformers network with the same weights."""

    folder: Path
    network: Any

    def greedy(self, prompt: list[int], most: int, ends: tuple[int, ...], never: tuple[int, ...]) -> list[int]:
        """Return what transformers' own generate() writes after a prompt, without the end token."""
        if not most:
            return []
        tokens = torch.tensor([prompt])
        written: list[int] = self.network.generate(
            tokens,
            attention_mask=torch.ones_like(tokens),
            do_sample=False,
            max_new_tokens=most,
            eos_token_id=list(ends),
            pad_token_id=ends[0],
            suppress_tokens=list(never),
        )[0, len(prompt) :].tolist()
        return written[:-1] if written[-1] in ends else written


def save_fim_checkpoint(folder: Path, notes: dict[str, object] | None = None, **changed: object) -> FimCheckpoint:
    """Write a checkpoint into a new folder. `notes` become midspan.json; `changed` overrides keys of config.json."""
    folder.mkdir(parents=True)
    config = {**_CONFIG, **changed}
    torch.manual_seed(11)
    fields = {key: value for key, value in config.items() if key not in _NO_FIELDS}
    network = transformers.Qwen2ForCausalLM(transformers.Qwen2Config(**fields))
    with torch.no_grad():
        for weight in network.parameters():
            weight.normal_(std=0.3) if weight.ndim > 1 else weight.uniform_(0.5, 1.5)
    weights = {name: weight.clone() for name, weight in network.state_dict().items() if name != "lm_head.weight"}
    write_json(folder / "config.json", config)
    write_json(folder / "generation_config.json", {"do_sample": False, "eos_token_id": SPECIAL_TOKENS["<|endoftext|>"]})
    write_json(folder / "tokenizer_config.json", {"eos_token": "<|endoftext|>", "tokenizer_class": "Qwen2Tokenizer"})
    save_file(weights, folder / "model.safetensors")
    tokenizer = tiny_tokenizer()
    tokenizer.add_special_tokens([AddedToken(text, special=True, normalized=False) for text in FLAGGED])
    tokenizer.add_tokens([AddedToken(text, special=False, normalized=False) for text in UNFLAGGED])
    tokenizer.save(str(folder / "tokenizer.json"))
    if notes is not None:
        write_json(folder / "midspan.json", notes)
    return FimCheckpoint(folder, network.eval())  # type: ignore[no-untyped-call]
