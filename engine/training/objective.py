"""The objective: next-token loss over the stream, and masked-diffusion loss over many short canvases, in one forward.

Both predict the NEXT position: the row that holds position p, be it a known token or a mask, is asked for the token at
p + 1 (shifted logits, as Dream and DiffuCoder keep from their left-to-right parents). A canvas stands behind an anchor,
a token of the stream (<middle> for the hole's own); it sees the stream up to the anchor and all of itself, and is never
seen by the stream. The anchor's own row predicts the canvas's first position, exactly as left to right would; so that
position is always masked. One set of weights learns to read, to write left to right, and to denoise.
"""

from collections.abc import Iterator

import attrs
import torch
from torch import Tensor
from torch.nn import functional as F
from torch.nn.attention.flex_attention import BlockMask

from engine.models.embedded.network import Network, Rows
from engine.training import attention, int8_head
from engine.training.config import Objective
from engine.training.int8 import Int8Head
from engine.training.int8_head import Guess, Head, Lesson
from engine.training.link_loss import link_loss


@attrs.define
class Batch:
    """B sequences of T stream rows with R canvas rows behind them; a target of weight 0 does not count.

    tokens, positions, hints, strengths, targets: int64 [B, T + R]; grams: int64 [B, T + R, 2]; see network.Rows
    weights: float32 [B, T + R]
    owners: int64 [B, R], the number of the canvas that a row belongs to
    anchors: int64 [B, R], the stream position that a row's canvas stands behind
    masked: float32 [B, R], the share of a row's canvas that is masked
    """

    tokens: Tensor
    positions: Tensor
    hints: Tensor
    strengths: Tensor
    grams: Tensor
    targets: Tensor
    weights: Tensor
    owners: Tensor
    anchors: Tensor
    masked: Tensor

    @property
    def stream_rows(self) -> int:
        return self.tokens.shape[1] - self.owners.shape[1]

    @property
    def inputs(self) -> Rows:
        return Rows(self.tokens, self.positions, self.hints, self.strengths, self.grams)


@attrs.frozen
class Losses:
    """Mean cross entropies in nats: of the stream, of all canvases, of those fully masked and of the others; and the
    link's own loss."""

    stream: Tensor
    canvas: Tensor
    canvas_full: float
    canvas_partial: float
    link: Tensor = attrs.field(kw_only=True)


def visibility(batch: Batch) -> Tensor | BlockMask:
    """Return what canvas rows may see: bool [B, 1, R, T + R], and on a GPU its fused attention's mask of all rows."""
    if batch.tokens.is_cuda:
        return attention.block_mask(batch.anchors, batch.owners, batch.stream_rows)
    before = torch.arange(batch.stream_rows, device=batch.tokens.device) <= batch.anchors[..., None]
    own = batch.owners[:, :, None] == batch.owners[:, None, :]
    return torch.cat((before, own), dim=-1)[:, None]


def forward(network: Network, batch: Batch, visible: Tensor | BlockMask) -> Tensor:
    """Return trunk rows [B, T + R, width] of the streams and of their canvases."""
    if isinstance(visible, BlockMask):
        return network.trunk(batch.inputs, attention.blockwise(visible))
    return network.trunk(batch.inputs, attention.dense(visible, batch.stream_rows))


def losses(network: Network, batch: Batch, distilled: float = 0.0) -> Losses:
    """Run one forward and return the losses; logits are computed only for rows that have a target.

    `distilled` is the share of a fully masked canvas's loss that is measured against what left to right, with the same
    weights and knowing all tokens before, predicts for the position, instead of the one token that stood there: a draft
    is to guess that prediction, and a distribution teaches more than one draw from it (as in arXiv 2310.08461).
    """
    rows = forward(network, batch, visibility(batch))
    counted, length = batch.weights > 0, batch.stream_rows
    full = F.pad(batch.masked == 1, (length, 0)) & counted
    drawn = counted & ~full
    drawn[:, :length] = False
    read = counted & ~full & ~drawn
    head = Head.of(network.head) if isinstance(network.head, Int8Head) else None
    weights = batch.weights[drawn], batch.weights[full]
    whole = weights[0].sum() + weights[1].sum()
    even = torch.full_like(batch.weights[read], 1 / max(int(read.sum()), 1))
    stream, _ = _weighted(network, rows, batch, read, even, 0.0, head)
    partial_sum, partial = _weighted(network, rows, batch, drawn, weights[0] / whole, 0.0, head)
    full_sum, drafted = _weighted(network, rows, batch, full, weights[1] / whole, distilled, head)
    told = [
        float((each * weight).sum() / weight.sum().clamp(min=1e-6))
        for each, weight in zip((drafted, partial), (weights[1], weights[0]), strict=True)
    ]
    return Losses(stream, partial_sum + full_sum, *told, link=link_loss(network, rows, batch))


def _weighted(
    network: Network, rows: Tensor, batch: Batch, chosen: Tensor, weights: Tensor, distilled: float, head: Head | None
) -> tuple[Tensor, Tensor]:
    """Return the sum of the chosen rows' losses times weights [N], and their cross entropies [N], without gradient.

    `head` is the network's in int8, if it is to be measured so.
    """
    if head is None:
        plain, taught = _drafts(network, rows, batch, chosen, distilled)
        return (taught * weights).sum(), plain.detach()
    sequence, place = torch.nonzero(chosen, as_tuple=True)
    lesson = None
    if distilled:
        teacher, known = _teachers(batch, sequence, place)
        with torch.no_grad():
            lesson = Lesson(_guess(network, rows, batch, sequence, teacher), known * distilled)
    guess = _guess(network, rows, batch, sequence, place)
    return int8_head.losses(head, guess, batch.targets[sequence, place], weights, lesson)


def _guess(network: Network, rows: Tensor, batch: Batch, sequence: Tensor, place: Tensor) -> Guess:
    picked = rows[sequence, place]
    added = network.additions(picked, batch.strengths[sequence, place])
    return Guess(picked, batch.hints[sequence, place, None], added[:, None])


def _teachers(batch: Batch, sequence: Tensor, place: Tensor) -> tuple[Tensor, Tensor]:
    """Return the stream's row [N] at the positions of canvas rows, and whether it is asked for the same token [N]."""
    teacher = batch.positions[sequence, place].clamp(max=batch.stream_rows - 1)
    return teacher, batch.targets[sequence, teacher] == batch.targets[sequence, place]


def _chunks(*parts: Tensor) -> Iterator[tuple[Tensor, ...]]:
    """Return a thousand rows at a time: all logits at once would not fit any cache."""
    return zip(*(torch.split(part, 1024) for part in parts), strict=True)


def _cross_entropy(network: Network, rows: Tensor, batch: Batch, chosen: Tensor) -> Tensor:
    """Return the loss [N] of the chosen rows, bool [B, T + R]."""
    parts = _chunks(rows[chosen], batch.hints[chosen], batch.strengths[chosen], batch.targets[chosen])
    return torch.cat(
        [
            F.cross_entropy(network.logits(part, hints, strengths), wanted, reduction="none")
            for part, hints, strengths, wanted in parts
        ]
    )


def _drafts(network: Network, rows: Tensor, batch: Batch, chosen: Tensor, distilled: float) -> tuple[Tensor, Tensor]:
    """Return two losses [N] of the chosen canvas rows: against the target, and with `distilled` of it against what the
    stream's row at the same position predicts; where the stream has ended there is only the target."""
    if not distilled:
        each = _cross_entropy(network, rows, batch, chosen)
        return each, each
    sequence, place = torch.nonzero(chosen, as_tuple=True)
    teacher, known = _teachers(batch, sequence, place)
    plain: list[Tensor] = []
    taught: list[Tensor] = []
    for row, column, source, shared in _chunks(sequence, place, teacher, known * distilled):
        logits = network.logits(rows[row, column], batch.hints[row, column], batch.strengths[row, column])
        logarithms, target = logits.log_softmax(-1), batch.targets[row, column]
        with torch.no_grad():
            wanted = network.logits(rows[row, source], batch.hints[row, source], batch.strengths[row, source])
            wanted = wanted.softmax(-1).mul_(shared[:, None])
            wanted[torch.arange(len(row), device=row.device), target] += 1 - shared
        plain.append(-logarithms.detach().gather(1, target[:, None])[:, 0])
        taught.append(-(logarithms * wanted).sum(-1))
    return torch.cat(plain), torch.cat(taught)


def phase(objective: Objective, done: float) -> tuple[int, float]:
    """Return canvas rows a sequence and distilled share at `done` (0 to 1) of the run: left to right comes first."""
    early = done < objective.late_from
    return (objective.canvas_rows_early, 0.0) if early else (objective.canvas_rows_late, objective.distilled)
