"""The embedded model's network: one small transformer that reads causally and denoises canvases bidirectionally.

Pre-norm blocks with rotary positions, normalized queries and keys, squared-ReLU feed-forward, no biases. Rows of two
kinds go through the same weights: stream rows, which see the rows before them, and canvas rows, which see the stream up
to their anchor and all of their own canvas. Which row sees which is the caller's business: `attend` is passed in.
"""

from collections.abc import Callable

import attrs
import torch
from torch import Tensor, nn
from torch.nn import functional as F

POSITIONS_BEYOND = 256
Attend = Callable[[int, Tensor, Tensor, Tensor], Tensor]


@attrs.frozen
class Shape:
    """The sizes of the network, as they stand in config.json."""

    vocabulary: int
    width: int
    layers: int
    heads: int
    context_tokens: int
    canvas_tokens: int
    rope_base: float = 10_000.0
    feed_forward: int = 4

    @property
    def head_width(self) -> int:
        return self.width // self.heads


def rms_norm(rows: Tensor) -> Tensor:
    """Scale each row to unit mean square; there is no learned gain, the next matrix has one."""
    return F.rms_norm(rows, (rows.shape[-1],), eps=1e-6)


def rope_tables(shape: Shape, length: int) -> tuple[Tensor, Tensor]:
    """Return cosines and sines [length, head_width / 2] of the rotary embedding (arXiv 2104.09864)."""
    half = shape.head_width // 2
    frequency = shape.rope_base ** (-torch.arange(half, dtype=torch.float64) / half)
    angle = torch.arange(length, dtype=torch.float64)[:, None] * frequency
    return angle.cos().float(), angle.sin().float()


def rotate(rows: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    """Apply rotary positions to rows [..., head_width]; the tables broadcast to [..., head_width / 2]."""
    first, second = rows.chunk(2, dim=-1)
    turned = torch.addcmul(first * cosine, second, sine, value=-1), torch.addcmul(second * cosine, first, sine)
    return torch.cat(turned, dim=-1)


class Block(nn.Module):
    """One layer: attention, then feed-forward, each added to the rows."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        width = shape.width
        self.heads, self.head_width = shape.heads, shape.head_width
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.up = nn.Linear(width, shape.feed_forward * width, bias=False)
        self.down = nn.Linear(shape.feed_forward * width, width, bias=False)

    def forward(self, layer: int, rows: Tensor, cosine: Tensor, sine: Tensor, attend: Attend) -> Tensor:
        """Return rows [..., width] after this layer; `attend` gets queries, keys, values [..., heads, head_width]."""
        qkv = self.qkv(rms_norm(rows)).unflatten(-1, (3, self.heads, self.head_width))
        # Queries and keys together: with few rows a pass is bound by the number of calls.
        query, key = rotate(rms_norm(qkv[..., :2, :, :]), cosine, sine).unbind(dim=-3)
        rows = rows + self.out(attend(layer, query, key, qkv[..., 2, :, :]).flatten(-2))
        added: Tensor = self.down(F.relu(self.up(rms_norm(rows))).square())
        return rows + added


class Network(nn.Module):
    """Token rows in, one prediction of the NEXT position's token out, for stream and canvas rows alike."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        self.embed = nn.Embedding(shape.vocabulary, shape.width)
        self.blocks = nn.ModuleList(Block(shape) for _ in range(shape.layers))
        self.head = nn.Linear(shape.width, shape.vocabulary, bias=False)
        self.cosine: Tensor
        self.sine: Tensor
        self.register_buffer("cosine", None, persistent=False)
        self.register_buffer("sine", None, persistent=False)
        self.reset_tables()

    def reset_tables(self) -> None:
        """Compute the rotary tables anew, in fp32, where the weights are; fills may run past the context's length."""
        device = self.embed.weight.device
        tables = rope_tables(self.shape, self.shape.context_tokens + POSITIONS_BEYOND)
        self.cosine, self.sine = (table.to(device) for table in tables)

    def trunk(self, tokens: Tensor, positions: Tensor, attend: Attend) -> Tensor:
        """Return normalized rows [..., width] for tokens and positions of equal shape [...]."""
        rows = rms_norm(self.embed(tokens))
        cosine, sine = (table[positions].to(rows.dtype)[..., None, None, :] for table in (self.cosine, self.sine))
        for layer, block in enumerate(self.blocks):
            rows = block(layer, rows, cosine, sine, attend)
        return rms_norm(rows)

    def logits(self, rows: Tensor) -> Tensor:
        """Return fp32 logits [..., vocabulary]."""
        logits: Tensor = self.head(rows).float()
        return logits
