"""The embedded model's network: one small transformer that reads causally and denoises canvases bidirectionally.

Pre-norm blocks with rotary positions, normalized queries and keys, squared-ReLU feed-forward, no biases. Two kinds of
rows go through the same weights. Stream rows see the rows before them. Canvas rows see the stream up to their anchor
and all of their own canvas. The caller decides which row sees which: it passes `attend`.

Besides its token a row gets what ngram_lookup.py finds for it: hashed n-grams, which have embeddings of their own (as
in BLT, arXiv 2412.09871), and a hint, a token that may come next. The hint enters twice: as an embedding, and as an
addition to its logit, whose size the row decides (after pointer networks, arXiv 1506.03134)."""

from collections.abc import Callable

import attrs
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from engine.models.embedded.link import Link
from engine.models.embedded.ngram_lookup import REACHES, RUNS, STRENGTHS
from engine.models.embedded.shape import Shape, rope_angles

Attend = Callable[[int, Tensor, Tensor, Tensor], Tensor]


@attrs.frozen
class Rows:
    """The input of the network, int64. All have the same shape [...], grams [..., 2]. See ngram_lookup.Hints."""

    tokens: Tensor
    positions: Tensor
    hints: Tensor
    strengths: Tensor
    grams: Tensor


def rows_of(numbers: Tensor) -> Rows:
    """Return the network's input from numbers [FIELDS, rows] (rows.py)."""
    tokens, positions, hints, strengths = numbers[:4]
    return Rows(tokens, positions, hints, strengths, numbers[4:].T)


def rms_norm(rows: Tensor) -> Tensor:
    """Scale each row to unit mean square, without a learned gain: the next matrix has one.

    F.rms_norm takes three times as long on a CPU, for the few rows of a pass.
    """
    norm: Tensor = torch.linalg.vector_norm(rows, dim=-1, keepdim=True)
    scaled: Tensor = rows / (norm * rows.shape[-1] ** -0.5).clamp(min=1e-6)
    return scaled


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
        # Queries and keys together: few rows are bound by the number of calls.
        query, key = rotate(rms_norm(qkv[..., :2, :, :]), cosine, sine).unbind(dim=-3)
        rows = rows + self.out(attend(layer, query, key, qkv[..., 2, :, :]).flatten(-2))
        added: Tensor = self.down(F.relu(self.up(rms_norm(rows))).square())
        return rows + added


class Network(nn.Module):
    """Token rows in, one prediction of the NEXT position's token out, for stream rows and canvas rows alike."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        self.embed = nn.Embedding(shape.vocabulary, shape.width)
        self.hint = nn.Embedding(shape.vocabulary, shape.width)
        self.strength = nn.Embedding(STRENGTHS, shape.width)
        self.gram = nn.Embedding(2 * shape.gram_buckets, shape.gram_width)
        self.gram_out = nn.Linear(2 * shape.gram_width, shape.width, bias=False)
        self.blocks = nn.ModuleList(Block(shape) for _ in range(shape.layers))
        self.head = nn.Linear(shape.width, shape.vocabulary, bias=False)
        self.copy = nn.Embedding(STRENGTHS, shape.width + 1)
        self.link = Link(shape.width, shape.link_width) if shape.link_width else None
        self.cosine: Tensor
        self.sine: Tensor
        self.register_buffer("cosine", None, persistent=False)
        self.register_buffer("sine", None, persistent=False)
        self.reset_tables()

    def reset_tables(self) -> None:
        """Compute the rotary tables in fp32, on the weights' device."""
        tables = rope_angles(self.shape, self.shape.positions)
        self.cosine, self.sine = (torch.from_numpy(table).to(self.embed.weight.device) for table in tables)

    def entry(self, inputs: Rows) -> Tensor:
        """Return the input of the first layer, normalized rows [..., width]."""
        buckets = self.shape.gram_buckets
        table = torch.arange(
            0, 2 * buckets, buckets, device=inputs.grams.device
        )  # torch.tensor of numbers would synchronize CUDA
        rows = self.embed(inputs.tokens) + self.hint(inputs.hints) * self.strength(inputs.strengths)
        return rms_norm(rows + self.gram_out(self.gram(inputs.grams + table).flatten(-2)))

    def trunk(self, inputs: Rows, attend: Attend) -> Tensor:
        """Return normalized rows [..., width]."""
        rows = self.entry(inputs)
        cosine, sine = (turn[inputs.positions].to(rows.dtype)[..., None, None, :] for turn in (self.cosine, self.sine))
        for layer, block in enumerate(self.blocks):
            rows = block(layer, rows, cosine, sine, attend)
        return rms_norm(rows)

    def logits(self, rows: Tensor, hints: Tensor, strengths: Tensor) -> Tensor:
        """Return fp32 logits [N, vocabulary] of rows [N, width] with their hints [N] and strengths [N]."""
        logits: Tensor = self.head(rows).float()
        return logits.scatter_add(1, hints[:, None], self.additions(rows, strengths)[:, None].float())

    def additions(self, rows: Tensor, strengths: Tensor) -> Tensor:
        """Return how much the logits of the hinted tokens grow [N]."""
        copy = self.copy(strengths)
        added: Tensor = (rows * copy[:, :-1]).sum(-1) + copy[:, -1]
        return added

    def initialize(self) -> None:
        """Set the weights before training: residual outputs and head are zero, so every layer begins as the identity.

        The first guess of what a hint is worth grows with the length of its run.
        """
        width = self.shape.width
        for table in (self.embed, self.hint, self.gram):
            nn.init.normal_(table.weight, std=1.0)
        nn.init.ones_(self.strength.weight)
        if self.link is not None:
            self.link.initialize()
        for matrix in (self.head.weight, self.gram_out.weight, self.copy.weight):
            nn.init.zeros_(matrix)
        worth = torch.tensor([0.0, 2.0, 4.0, 5.0, 6.0, 7.0, 7.5])
        for reach in range(1 + 1 + len(REACHES)):
            part = slice(reach * (len(RUNS) + 1), (reach + 1) * (len(RUNS) + 1))
            self.copy.weight.data[part, -1] = worth - 0.5 * min(reach, 1) * worth - 0.5 * reach
            self.strength.weight.data[part.start] = 0
        for name, matrix in self.blocks.named_parameters():
            if name.endswith(("out.weight", "down.weight")):
                nn.init.zeros_(matrix)
            else:
                nn.init.uniform_(matrix, -(3**0.5) * 0.5 * width**-0.5, 3**0.5 * 0.5 * width**-0.5)
