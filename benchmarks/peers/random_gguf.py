"""Language models with random weights in llama.cpp's file format: only their time is measured, not their text."""

from pathlib import Path

import attrs
import gguf
import numpy as np
from numpy.typing import NDArray
from tiny_gguf import add_tokenizer

_BLOCK = 32
_BLOCK_BYTES = {"Q8_0": 34, "Q4_0": 18}
"""32 weights share a scale in fp16; each is an int8, or an int4."""
_LARGE = {"Q8_0": 74, "Q4_0": 4.6}
"""The standard deviation of a random number of each."""
_SPREAD = 0.02
"""The standard deviation of the weights."""


@attrs.frozen
class Llama:
    """The sizes of a network, with its name. `biased`: queries, keys and values have a bias, as Qwen2's have.

    The matrix of the embeddings gives the logits too.
    """

    name: str
    architecture: str
    width: int
    layers: int
    heads: int
    key_heads: int
    inner: int
    vocabulary: int
    biased: bool = True


QWEN_SMALL = Llama("Qwen2.5-Coder 0.5B", "qwen2", 896, 24, 14, 2, 4864, 151_936)
QWEN = Llama("Qwen2.5-Coder 1.5B", "qwen2", 1536, 28, 12, 2, 8960, 151_936)
HUNDRED = Llama("a llama of 110M", "llama", 768, 12, 12, 12, 2048, 32_000, biased=False)


def write_random_gguf(path: Path, shape: Llama, kind: str = "Q8_0") -> None:
    """Write the model, in Q8_0 or Q4_0. All layers get the same numbers, each its own copy on the disk."""
    random = np.random.default_rng(0)

    def matrix(rows: int, columns: int) -> NDArray[np.uint8]:
        blocks = random.integers(0, 256, (rows, columns // _BLOCK, _BLOCK_BYTES[kind]), np.uint8)
        blocks[..., :2] = np.frombuffer(np.float16(_SPREAD / _LARGE[kind]).tobytes(), np.uint8)
        return blocks.reshape(rows, -1)

    writer = gguf.GGUFWriter(path, shape.architecture)
    _add_sizes(writer, shape, kind)
    add_tokenizer(writer, shape.vocabulary)
    width, keys = shape.width, shape.width // shape.heads * shape.key_heads
    ones = np.ones(width, np.float32)
    matrices = {
        "attn_q": matrix(width, width),
        "attn_k": matrix(keys, width),
        "attn_v": matrix(keys, width),
        "attn_output": matrix(width, width),
        "ffn_gate": matrix(shape.inner, width),
        "ffn_up": matrix(shape.inner, width),
        "ffn_down": matrix(width, shape.inner),
    }
    writer.add_tensor("token_embd.weight", matrix(shape.vocabulary, width), raw_dtype=gguf.GGMLQuantizationType[kind])
    writer.add_tensor("output_norm.weight", ones)
    for layer in range(shape.layers):
        for name, values in matrices.items():
            writer.add_tensor(f"blk.{layer}.{name}.weight", values, raw_dtype=gguf.GGMLQuantizationType[kind])
        for name, size in (("attn_q", width), ("attn_k", keys), ("attn_v", keys)) if shape.biased else ():
            writer.add_tensor(f"blk.{layer}.{name}.bias", np.zeros(size, np.float32))
        for name in ("attn_norm", "ffn_norm"):
            writer.add_tensor(f"blk.{layer}.{name}.weight", ones)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _add_sizes(writer: gguf.GGUFWriter, shape: Llama, kind: str) -> None:
    writer.add_context_length(32_768)
    writer.add_embedding_length(shape.width)
    writer.add_block_count(shape.layers)
    writer.add_feed_forward_length(shape.inner)
    writer.add_head_count(shape.heads)
    writer.add_head_count_kv(shape.key_heads)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_rope_freq_base(1e6)
    writer.add_file_type(gguf.LlamaFileType[f"MOSTLY_{kind}"])
    if shape.architecture == "llama":
        writer.add_rope_dimension_count(shape.width // shape.heads)
