"""A language model with random weights in llama.cpp's file format: a token for each byte, and Qwen's special tokens."""

from pathlib import Path

import gguf
import numpy

_WIDTH, _LAYERS, _HEADS, _INNER = 64, 2, 4, 128
_SPECIAL_TOKENS = (
    "<|endoftext|>",
    "<|fim_prefix|>",
    "<|fim_suffix|>",
    "<|fim_middle|>",
    "<|fim_pad|>",
    "<|repo_name|>",
    "<|file_sep|>",
)


def write_tiny_gguf(path: Path) -> None:
    """Write a model of about 120,000 weights, always the same."""
    random = numpy.random.default_rng(0)

    def matrix(rows: int, columns: int) -> numpy.ndarray:
        return (0.3 * random.standard_normal((rows, columns))).astype(numpy.float32)

    ones = numpy.ones(_WIDTH, numpy.float32)
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(4096)
    writer.add_embedding_length(_WIDTH)
    writer.add_block_count(_LAYERS)
    writer.add_feed_forward_length(_INNER)
    writer.add_head_count(_HEADS)
    writer.add_head_count_kv(_HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(_WIDTH // _HEADS)
    vocabulary = 256 + len(_SPECIAL_TOKENS)
    add_tokenizer(writer, vocabulary)
    writer.add_tensor("token_embd.weight", matrix(vocabulary, _WIDTH))
    writer.add_tensor("output.weight", matrix(vocabulary, _WIDTH))
    writer.add_tensor("output_norm.weight", ones)
    for layer in range(_LAYERS):
        for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
            writer.add_tensor(f"blk.{layer}.{name}.weight", matrix(_WIDTH, _WIDTH))
        writer.add_tensor(f"blk.{layer}.ffn_gate.weight", matrix(_INNER, _WIDTH))
        writer.add_tensor(f"blk.{layer}.ffn_up.weight", matrix(_INNER, _WIDTH))
        writer.add_tensor(f"blk.{layer}.ffn_down.weight", matrix(_WIDTH, _INNER))
        writer.add_tensor(f"blk.{layer}.attn_norm.weight", ones)
        writer.add_tensor(f"blk.{layer}.ffn_norm.weight", ones)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def add_tokenizer(writer: gguf.GGUFWriter, vocabulary: int) -> None:
    """Add a token for each byte, the special tokens, and as many others, which no text has, as `vocabulary` needs."""
    others = [f"other{number}" for number in range(vocabulary - 256 - len(_SPECIAL_TOKENS))]
    kinds = [gguf.TokenType.NORMAL] * 256 + [gguf.TokenType.CONTROL] * len(_SPECIAL_TOKENS)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("qwen2")
    writer.add_token_list([*_byte_characters(), *_SPECIAL_TOKENS, *others])
    writer.add_token_types(kinds + [gguf.TokenType.NORMAL] * len(others))
    writer.add_token_merges(["a b"])  # the file needs a merge; this one is not of our tokens, so it merges nothing
    writer.add_bos_token_id(256)
    writer.add_eos_token_id(256)
    writer.add_add_bos_token(False)


def _byte_characters() -> list[str]:
    """Return the printable character of each byte in a vocabulary like GPT-2's."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = iter(range(0x100, 0x200))
    return [chr(byte if byte in printable else next(others)) for byte in range(256)]
