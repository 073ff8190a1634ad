"""A Llama-shaped network in torch: the embedded model's, which reads causally and denoises canvases, and others'.

Blocks of attention with grouped keys and values (arXiv 2305.13245) and SwiGLU (arXiv 2002.05202), RMSNorm before each,
rotary positions: the blocks of SmolLM2, with the biases of Qwen2 and the norms of Qwen3 where the shape says so. Two
kinds of rows go through the same weights. Stream rows see the rows before them. Canvas rows see the stream up to their
anchor, and their whole canvas. The caller decides which row sees which: it passes `attend`. Every row predicts the NEXT
position's token.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from engine.models.embedded.shape import Shape, rope_angles

Attend = Callable[[int, Tensor, Tensor, Tensor], Tensor]
"""Gets a layer's number, queries [..., heads, head_width], keys and values [..., key_heads, head_width]; returns the
mixed values, shaped as the queries."""


def rotate(rows: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    """Apply rotary positions to rows [..., head_width]; the tables broadcast to [..., head_width / 2]."""
    first, second = rows.chunk(2, dim=-1)
    return torch.cat((first * cosine - second * sine, second * cosine + first * sine), dim=-1)


class Norm(nn.Module):
    """RMSNorm (arXiv 1910.07467): each row at unit mean square, times a learned gain; computed in fp32."""

    def __init__(self, width: int, epsilon: float) -> None:
        super().__init__()
        self.weight, self._epsilon = nn.Parameter(torch.ones(width)), epsilon

    def forward(self, rows: Tensor) -> Tensor:
        """Return the rows [..., width], normalized."""
        wide = rows.float()
        factor = torch.rsqrt(wide.square().mean(-1, keepdim=True) + self._epsilon)
        return (wide * factor * self.weight).to(rows.dtype)


class Block(nn.Module):
    """One layer: attention, then feed-forward, each added to the rows."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self._heads = (shape.heads, shape.key_heads, shape.key_heads)
        self._head_width = shape.head_width
        self.norm = Norm(shape.width, shape.norm_epsilon)
        self.qkv = nn.Linear(shape.width, sum(self._heads) * shape.head_width, bias=shape.biased)
        self.head_norms = shape.head_norms
        if shape.head_norms:
            self.query_norm = Norm(shape.head_width, shape.norm_epsilon)
            self.key_norm = Norm(shape.head_width, shape.norm_epsilon)
        self.out = nn.Linear(shape.heads * shape.head_width, shape.width, bias=False)
        self.feed_norm = Norm(shape.width, shape.norm_epsilon)
        self.gate_up = nn.Linear(shape.width, 2 * shape.hidden, bias=False)
        self.down = nn.Linear(shape.hidden, shape.width, bias=False)

    def forward(self, layer: int, rows: Tensor, cosine: Tensor, sine: Tensor, attend: Attend) -> Tensor:
        """Return rows [..., width] after this layer."""
        split = self.qkv(self.norm(rows)).unflatten(-1, (-1, self._head_width)).split(self._heads, dim=-2)
        query, key, value = split
        if self.head_norms:
            query, key = self.query_norm(query), self.key_norm(key)
        query, key = (rotate(each, cosine.to(each.dtype), sine.to(each.dtype)) for each in (query, key))
        rows = rows + self.out(attend(layer, query, key, value).flatten(-2))
        gate, up = self.gate_up(self.feed_norm(rows)).chunk(2, dim=-1)
        added: Tensor = self.down(F.silu(gate) * up)
        return rows + added


class Network(nn.Module):
    """Tokens and positions in, one prediction of the NEXT position's token out, for stream and canvas rows alike."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        self.embed = nn.Embedding(shape.vocabulary, shape.width)
        self.blocks = nn.ModuleList(Block(shape) for _ in range(shape.layers))
        self.norm = Norm(shape.width, shape.norm_epsilon)
        self.head = None if shape.tied else nn.Linear(shape.width, shape.vocabulary, bias=False)
        self.cosine: Tensor
        self.sine: Tensor
        self.register_buffer("cosine", None, persistent=False)
        self.register_buffer("sine", None, persistent=False)
        self.reset_tables()

    def reset_tables(self) -> None:
        """Compute the rotary tables in fp32, on the weights' device."""
        tables = rope_angles(self.shape, self.shape.positions)
        self.cosine, self.sine = (torch.from_numpy(table).to(self.embed.weight.device) for table in tables)

    def trunk(self, tokens: Tensor, positions: Tensor, attend: Attend) -> Tensor:
        """Return normalized rows [..., width] of tokens int64 [...] at positions int64 [...]."""
        rows = self.embed(tokens)
        cosine, sine = (table[positions][..., None, :] for table in (self.cosine, self.sine))
        for layer, block in enumerate(self.blocks):
            rows = block(layer, rows, cosine, sine, attend)
        normalized: Tensor = self.norm(rows)
        return normalized

    def logits(self, rows: Tensor) -> Tensor:
        """Return fp32 logits [N, vocabulary] of rows [N, width]."""
        return F.linear(rows, self.embed.weight if self.head is None else self.head.weight).float()
