"""The layers of transformers: the parts around an attention, the attention itself, a context of keys and values, and
a network of such layers.

On a GPU flash attention takes no mask, and the memory-efficient kernel takes no grouped queries (ATen's sdp_utils).
With both, torch repeats all keys for each query head and holds all scores in fp32. So here queries that share a key
head become rows of that head, and rows are read some at a time.
"""

from collections.abc import Callable, Sequence
from typing import Any

import attrs
import torch
from torch import Tensor
from torch.nn import functional as F

from engine.fill.interface import Pass
from engine.models.cuda_graphs.graphs import synchronize
from engine.models.quantization.quantizer import count_parameters


def before_attention(layer: Any, rows: Tensor, cosine: Tensor, sine: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the queries, keys and values [rows, heads, head width] of rows [rows, width]."""
    attention = layer.self_attn
    normed = layer.input_layernorm(rows)
    shape = (len(rows), -1, attention.head_dim)
    query, key = attention.q_proj(normed).view(shape), attention.k_proj(normed).view(shape)
    if hasattr(attention, "q_norm"):  # Qwen3
        query, key = attention.q_norm(query), attention.k_norm(key)
    return rotate(query, cosine, sine), rotate(key, cosine, sine), attention.v_proj(normed).view(shape)


def after_attention(layer: Any, rows: Tensor, mixed: Tensor) -> Tensor:
    """Return the layer's output [rows, width] from its input rows and mixed values [rows, heads, head width]."""
    rows = rows + layer.self_attn.o_proj(mixed.flatten(1))
    added: Tensor = layer.mlp(layer.post_attention_layernorm(rows))
    return rows + added


def rotate(keys: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    """Apply rotary embeddings to keys or queries [..., head width]; `cosine` and `sine` broadcast to them."""
    first, second = keys.chunk(2, dim=-1)
    return keys * cosine + torch.cat((-second, first), dim=-1) * sine


MOST_SCORES = 1 << 26
"""Scores of all heads at once: 256 MiB, should torch hold them in fp32 after all. A mask has as many entries a key
head, of up to 5 bytes: it is made of bools, and kernels copy it to bf16."""


@attrs.frozen
class CausalRows:
    """Rows at positions `start` and on, over keys from position `first` on. A row sees itself and what is before it.

    With a `window` it sees no key that is so many positions before it, or more.
    """

    start: int
    first: int = 0
    window: int | None = None
    _masks: dict[tuple[int, int, int], Tensor] = attrs.field(init=False, factory=dict)

    def seen(self, rows: range, groups: int, device: torch.device) -> tuple[slice, Tensor | None]:
        """Return which keys any of the rows sees, and which of them each row of each group sees, bool
        [groups * rows, keys]; None for all."""
        lowest = 0 if self.window is None else max(0, self.start + rows.start - self.window + 1 - self.first)
        keys = slice(lowest, self.start + rows.stop - self.first)
        if len(rows) == 1:
            return keys, None
        name = (rows.start, rows.stop, groups)
        if name not in self._masks:
            self._masks.clear()  # all layers ask for the same rows in turn; only a short reading has one part
            positions = torch.arange(self.first + keys.start, self.first + keys.stop, device=device)
            own = torch.arange(self.start + rows.start, self.start + rows.stop, device=device)[:, None]
            mask = positions <= own
            if self.window is not None:
                mask &= positions > own - self.window
            self._masks[name] = mask.repeat(groups, 1)
        return keys, self._masks[name]


def attend(
    query: Tensor, keys: Tensor, values: Tensor, scale: float | None, causal: CausalRows | None = None
) -> Tensor:
    """Return the mixed values [rows, heads, width] of queries [heads, rows, width].

    keys, values: [key heads, seen, width], with at most as many heads as the queries
    causal: which keys a row sees; None for all
    """
    heads, rows, width = query.shape
    if not rows:
        return query.transpose(0, 1)
    groups = heads // keys.shape[0]
    grouped = query.reshape(keys.shape[0], groups, rows, width)
    mixed = []
    step = _rows_at_once(heads, keys.shape[1], causal)
    for start in range(0, rows, step):
        part = range(start, min(start + step, rows))
        visible, mask = (slice(None), None) if causal is None else causal.seen(part, groups, query.device)
        queries = grouped[:, :, part.start : part.stop].flatten(1, 2)
        attended = F.scaled_dot_product_attention(
            queries[None], keys[None, :, visible], values[None, :, visible], mask, scale=scale
        )
        mixed.append(attended.view(heads, len(part), width))
    return torch.cat(mixed, dim=1).transpose(0, 1)


def _rows_at_once(heads: int, keys: int, causal: CausalRows | None) -> int:
    """Return how many rows have at most MOST_SCORES scores; at least one."""
    if causal is not None and causal.window is not None and keys > 2 * causal.window:
        return max(1, min(causal.window, MOST_SCORES // (heads * 2 * causal.window)))
    return max(1, MOST_SCORES // (heads * max(1, keys)))


class KeyValues:
    """Implements interface.Context. `buffer` [layers, 2, heads, capacity, head_width] has the keys and values.

    The rows of a running canvas are written after those of `tokens`, and the next pass overwrites them.
    """

    def __init__(self, buffer: Tensor) -> None:
        self.tokens: list[int] = []
        self.buffer = buffer

    @property
    def bytes(self) -> int:
        return self.buffer.nbytes

    @property
    def capacity(self) -> int:
        """How many positions the buffer has."""
        return self.buffer.shape[3]

    def truncate(self, length: int) -> None:
        del self.tokens[length:]

    def fork(self, length: int) -> "KeyValues":
        copy = KeyValues(torch.zeros_like(self.buffer))
        copy.tokens = self.tokens[:length]
        copy.buffer[:, :, :, :length] = self.buffer[:, :, :, :length]
        return copy


Mix = Callable[[int, Tensor, Tensor, Tensor, float], Tensor]
"""Attention: from a layer's index, queries, keys and values [rows, heads, width] and a scale to mixed values."""


class StockLayers:
    """Rows of all holes share the matrix products. Each hole has its own attention, so nothing is padded."""

    def __init__(self, stock: Any) -> None:
        self._trunk, self._head = stock.model, stock.lm_head
        self._layers: Sequence[Any] = stock.model.layers
        attention = self._layers[0].self_attn
        self._head_width = attention.head_dim
        self._key_heads = attention.k_proj.out_features // attention.head_dim
        self.window: int = stock.config.max_position_embeddings
        weight: Tensor = stock.model.embed_tokens.weight
        self.vocabulary, self.device, self.dtype = weight.shape[0], weight.device, weight.dtype
        self.parameters = count_parameters(stock)
        self._before, self._after = before_attention, after_attention

    def buffer(self, capacity: int) -> Tensor:
        """Return room [layers, 2, key heads, capacity, head width] for keys and values."""
        size = (len(self._layers), 2, self._key_heads, capacity, self._head_width)
        return torch.empty(size, dtype=self.dtype, device=self.device)

    def layers(self, tokens: Tensor, positions: Tensor, mix: Mix) -> Tensor:
        """Return the last hidden states [rows, width] of tokens [rows] at positions [rows]."""
        rows: Tensor = self._trunk.embed_tokens(tokens)
        cosine, sine = self._rotary(rows, positions)
        for index, layer in enumerate(self._layers):
            query, key, value = self._before(layer, rows, cosine, sine)
            rows = self._after(layer, rows, mix(index, query, key, value, layer.self_attn.scaling))
        return rows

    def logits(self, rows: Tensor) -> Tensor:
        """Return logits [rows, vocabulary] in fp32 of hidden states [rows, width]."""
        logits: Tensor = self._head(self._trunk.norm(rows)).float()
        return logits

    def _wanted_logits(self, rows: Tensor, passes: Sequence[Pass], offsets: Sequence[int]) -> list[Tensor]:
        """Return each pass's logits [wanted, vocabulary]. offsets: how far a pass's wanted rows are from its first."""
        wanted: list[int] = []
        start = 0
        for each, offset in zip(passes, offsets, strict=True):
            wanted += [start + offset + row for row in each.wanted]
            start += each.rows
        logits = self.logits(rows[self._integers(wanted)])
        synchronize(self.device)
        return list(torch.split(logits, [len(each.wanted) for each in passes]))

    def _rotary(self, like: Tensor, positions: Tensor) -> tuple[Tensor, Tensor]:
        """Return cosines and sines [rows, 1, head width] of positions [rows], in the dtype of `like`."""
        cosine, sine = self._trunk.rotary_emb(like, positions[None])
        return cosine[0][:, None], sine[0][:, None]

    def _integers(self, numbers: list[int]) -> Tensor:
        return torch.tensor(numbers, dtype=torch.long, device=self.device)
