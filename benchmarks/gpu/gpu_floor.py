"""The least time that a step can take: its bytes and its multiplications, at speeds measured on this device."""

import statistics
import time
from collections.abc import Callable

import attrs
import torch


def milliseconds(work: Callable[[], object], device: torch.device, times: int = 7) -> float:
    """Return the median time of `work`, after two runs to warm up."""
    measured = []
    for run in range(times + 2):
        started = time.perf_counter()
        work()
        if device.type == "cuda":
            torch.cuda.synchronize()
        if run > 1:
            measured.append((time.perf_counter() - started) * 1000)
    return statistics.median(measured)


@attrs.frozen
class Speeds:
    """Bytes and floating point operations a millisecond."""

    bytes: float
    operations: float

    @classmethod
    def of(cls, device: torch.device) -> "Speeds":
        """Measure a large copy and a large product: bf16 on a GPU, fp32 elsewhere."""
        cuda = device.type == "cuda"
        large, side, dtype = (1 << 28, 8192, torch.bfloat16) if cuda else (1 << 22, 512, torch.float32)
        source, target = torch.ones(large, device=device), torch.empty(large, device=device)
        matrix = torch.ones(side, side, device=device, dtype=dtype)
        moved = 2 * source.nbytes / milliseconds(lambda: target.copy_(source), device)
        return cls(moved, 2 * side**3 / milliseconds(lambda: matrix @ matrix, device))


@attrs.frozen
class Work:
    """The least work of one pass: `bytes` to read once, and floating point `operations`."""

    bytes: float
    operations: float

    def floor_ms(self, speeds: Speeds) -> float:
        """Return the larger of the two times."""
        return max(self.bytes / speeds.bytes, self.operations / speeds.operations)


@attrs.frozen
class Shape:
    """The shape of a transformer; the fields are those of config.json."""

    vocab_size: int
    hidden_size: int
    intermediate_size: int
    num_hidden_layers: int
    num_attention_heads: int
    num_key_value_heads: int


@attrs.frozen
class GemmaShape(Shape):
    """The text half of a DiffusionGemma."""

    num_global_key_value_heads: int
    head_dim: int
    global_head_dim: int
    sliding_window: int
    num_experts: int
    top_k_experts: int
    moe_intermediate_size: int

    def step(self, rows: int, context: int, layer_bytes: float) -> Work:
        """Return a denoising step of `rows` rows over `context` tokens.

        `layer_bytes` is the size of a weight in the layers' matrices; embeddings, head and context are in bf16.
        An expert counts if at least one row probably chooses it, as if all choices were independent.
        """
        width, full = self.hidden_size, self.num_hidden_layers // 6
        sliding = self.num_hidden_layers - full
        attention = sliding * width * self.head_dim * (2 * self.num_attention_heads + 2 * self.num_key_value_heads)
        attention += (
            full * width * self.global_head_dim * (2 * self.num_attention_heads + self.num_global_key_value_heads)
        )
        dense = attention + self.num_hidden_layers * 3 * width * self.intermediate_size
        expert = 3 * width * self.moe_intermediate_size * self.num_hidden_layers
        missed = (1 - self.top_k_experts / self.num_experts) ** rows
        read = dense + expert * self.num_experts * (1 - missed)
        # The embedding table counts twice: for the logits, and for the expected embeddings.
        rest = 2 * self.vocab_size * width + 3 * width * self.intermediate_size
        seen = min(context, self.sliding_window) * sliding * self.num_key_value_heads * self.head_dim
        seen += context * full * self.num_global_key_value_heads * self.global_head_dim
        used = dense + expert * self.top_k_experts + rest
        return Work(read * layer_bytes + 2 * rest + 4 * seen, 2 * rows * used)


@attrs.frozen
class DenseShape(Shape):
    """A dense bidirectional network with grouped queries."""

    def step(self, rows: int, context: int, layer_bytes: float) -> Work:
        """Return a step that computes `rows` rows and reads the keys and values of `context` others."""
        width = self.hidden_size
        key_width = width // self.num_attention_heads * self.num_key_value_heads
        layer = 2 * width * width + 2 * width * key_width + 3 * width * self.intermediate_size
        layers, head = layer * self.num_hidden_layers, self.vocab_size * width
        seen = 2 * context * key_width * self.num_hidden_layers
        return Work(layers * layer_bytes + 2 * head + 2 * seen, 2 * rows * (layers + head))
