"""A Llama-shaped network in torch: the embedded model's, which reads causally and denoises canvases, and others'.

Blocks of attention with grouped keys and values (arXiv 2305.13245) and SwiGLU (arXiv 2002.05202), RMSNorm before each,
rotary positions: the blocks of SmolLM2, with the biases of Qwen2 and the norms of Qwen3 where the shape says so. Two
kinds of rows go through the same weights. Stream rows see the rows before them. Canvas rows see the stream up to their
anchor, and their whole canvas. The caller decides which row sees which: it passes `attend`. Every row predicts the NEXT
position's token. With an adapter (adapter.py) canvas rows have additions of their own to the products.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from engine.models.embedded.adapter import Adapter, LowRank, Rounded, sides_of
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


class Addition(nn.Module):
    """An adapter's addition to a product, see adapter.LowRank. A new one adds nothing."""

    def __init__(self, outputs: int, inputs: int, rank: int) -> None:
        super().__init__()
        self.a = nn.Parameter(torch.randn(rank, inputs) / inputs**0.5)
        self.b = nn.Parameter(torch.zeros(outputs, rank))

    def forward(self, rows: Tensor) -> Tensor:
        """Return what is added [..., outputs] for rows [..., inputs]."""
        return F.linear(F.linear(rows, self.a.to(rows.dtype)), self.b.to(rows.dtype))


class Additions(nn.Module):
    """An adapter's additions to the products of a layer, by their names in adapter.PRODUCTS."""

    def __init__(self, shape: Shape, rank: int) -> None:
        super().__init__()
        self.by_name = {name: Addition(*sides, rank) for name, sides in sides_of(shape).items()}
        for name, addition in self.by_name.items():
            self.add_module(name, addition)


class CanvasAdapter(nn.Module):
    """An adapter in torch: see adapter.Adapter."""

    def __init__(self, shape: Shape, rank: int) -> None:
        super().__init__()
        self.rank, self.mask = rank, nn.Parameter(torch.zeros(shape.width))
        self.by_layer = [Additions(shape, rank) for _ in range(shape.layers)]
        self.layers = nn.ModuleList(self.by_layer)

    @torch.no_grad()
    def take(self, adapter: Adapter) -> None:
        """Take the numbers of an adapter of the same sizes."""
        self.mask.copy_(torch.from_numpy(adapter.mask))
        for own, given in zip(self.by_layer, adapter.layers, strict=True):
            for name, low in given.items():
                own.by_name[name].a.copy_(torch.from_numpy(low.a.dense()))
                own.by_name[name].b.copy_(torch.from_numpy(low.b.dense()))

    @torch.no_grad()
    def rounded(self, canvas_tokens: int) -> Adapter:
        """Return the adapter as a file has it."""

        def low(addition: Addition) -> LowRank:
            return LowRank(*(Rounded.of(each.float().cpu().numpy()) for each in (addition.a, addition.b)))

        layers = [{name: low(addition) for name, addition in layer.by_name.items()} for layer in self.by_layer]
        return Adapter(self.rank, canvas_tokens, self.mask.float().cpu().numpy(), layers)


class Adapted:
    """The additions of a layer, on canvas rows alone. on_canvas: see Network.trunk."""

    def __init__(self, additions: Additions, on_canvas: Tensor) -> None:
        self._additions, self._on_canvas = additions, on_canvas

    def of(self, product: str, rows: Tensor) -> Tensor:
        """Return what is added to a product of rows."""
        added: Tensor = self._additions.by_name[product](rows)
        return added if self._on_canvas.numel() == 1 else added * self._on_canvas


class Block(nn.Module):
    """One layer: attention, then feed-forward, each added to the rows."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self._heads = [shape.heads, shape.key_heads, shape.key_heads]
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

    def forward(
        self, layer: int, rows: Tensor, cosine: Tensor, sine: Tensor, attend: Attend, adapted: Adapted | None = None
    ) -> Tensor:
        """Return rows [..., width] after this layer."""

        def product(name: str, rows: Tensor) -> Tensor:
            result: Tensor = getattr(self, name)(rows)
            return result if adapted is None else result + adapted.of(name, rows)

        qkv = product("qkv", self.norm(rows))
        heads = qkv.view(*qkv.shape[:-1], sum(self._heads), self._head_width)
        query, key, value = torch.split(heads, self._heads, dim=-2)
        if self.head_norms:
            query, key = self.query_norm(query), self.key_norm(key)
        query, key = (rotate(each, cosine.to(each.dtype), sine.to(each.dtype)) for each in (query, key))
        rows = rows + product("out", attend(layer, query, key, value).flatten(-2))
        gate, up = product("gate_up", self.feed_norm(rows)).chunk(2, dim=-1)
        return rows + product("down", F.silu(gate) * up)


class Network(nn.Module):
    """Tokens and positions in, one prediction of the NEXT position's token out, for stream and canvas rows alike."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        self.embed = nn.Embedding(shape.vocabulary, shape.width)
        self.blocks = nn.ModuleList(Block(shape) for _ in range(shape.layers))
        self.norm = Norm(shape.width, shape.norm_epsilon)
        self.head = None if shape.tied else nn.Linear(shape.width, shape.vocabulary, bias=False)
        self.adapter: CanvasAdapter | None = None
        self.cosine: Tensor
        self.sine: Tensor
        self.register_buffer("cosine", None, persistent=False)
        self.register_buffer("sine", None, persistent=False)
        self.reset_tables()

    def reset_tables(self) -> None:
        """Compute the rotary tables in fp32, on the weights' device."""
        tables = rope_angles(self.shape, self.shape.positions)
        self.cosine, self.sine = (torch.from_numpy(table).to(self.embed.weight.device) for table in tables)

    def trunk(self, tokens: Tensor, positions: Tensor, attend: Attend, on_canvas: Tensor | None = None) -> Tensor:
        """Return normalized rows [..., width] of tokens int64 [...] at positions int64 [...].

        on_canvas: [..., 1], 1 for a row that the adapter acts on, else 0; a single 1 where it acts on all rows, None
        where it acts on none. The token after the vocabulary's last one is the adapter's mask.
        """
        adapter = None if on_canvas is None else self.adapter
        if adapter is None:
            rows = self.embed(tokens)
        else:
            last = self.shape.vocabulary - 1
            known, mask = self.embed(tokens.clamp(max=last)), adapter.mask.to(self.embed.weight.dtype)
            rows = torch.where((tokens > last)[..., None], mask, known)
        cosine, sine = (table[positions][..., None, :] for table in (self.cosine, self.sine))
        for layer, block in enumerate(self.blocks):
            adapted = None
            if adapter is not None and on_canvas is not None:
                adapted = Adapted(adapter.by_layer[layer], on_canvas)
            rows = block(layer, rows, cosine, sine, attend, adapted)
        normalized: Tensor = self.norm(rows)
        return normalized

    def logits(self, rows: Tensor) -> Tensor:
        """Return fp32 logits [N, vocabulary] of rows [N, width]."""
        return F.linear(rows, self.embed.weight if self.head is None else self.head.weight).float()
