"""The objective: next-token loss over the stream, and masked-diffusion loss over many short canvases, in one forward.

Both predict the NEXT position: the row of position p, known token or mask, predicts the token at p + 1 (shifted logits,
which Dream and DiffuCoder keep from their left-to-right parents). A canvas follows an anchor, a token of the stream
(<middle> for the hole's own canvas). It sees the stream up to the anchor and all of itself; the stream never sees it.
The anchor's own row predicts the canvas's first position, exactly as left to right would, so that position is always
masked. One set of weights learns to read, to write left to right, and to denoise.
"""

from collections.abc import Iterator

import attrs
import torch
from torch import Tensor
from torch.nn import functional as F
from torch.nn.attention.flex_attention import BlockMask

from engine.models.embedded.network import Network
from engine.training import attention, bf16_attention, int8_head
from engine.training.batch import Batch
from engine.training.begun import begun_losses
from engine.training.config import Objective
from engine.training.int8 import Int8Head
from engine.training.int8_head import Lesson
from engine.training.int8_logits import Guess, Head
from engine.training.link_loss import link_loss

_LEAST = 1e-30


@attrs.frozen
class Losses:
    """Mean cross entropies in nats, and the link's loss.

    Of the stream, of all canvases, of the fully masked canvases, and of the other canvases.
    """

    stream: Tensor
    canvas: Tensor
    canvas_full: float
    canvas_partial: float
    link: Tensor = attrs.field(kw_only=True)


def visibility(batch: Batch) -> Tensor | BlockMask:
    """Return what canvas rows may see: bool [B, 1, R, T + R], or on a GPU the fused attention's mask of all rows."""
    if batch.tokens.is_cuda:
        return attention.block_mask(batch.anchors, batch.owners, batch.stream_rows)
    before = torch.arange(batch.stream_rows, device=batch.tokens.device) <= batch.anchors[..., None]
    own = batch.owners[:, :, None] == batch.owners[:, None, :]
    return torch.cat((before, own), dim=-1)[:, None]


def forward(network: Network, batch: Batch, visible: Tensor | BlockMask) -> Tensor:
    """Return trunk rows [B, T + R, width] of the streams and of their canvases."""
    if isinstance(visible, BlockMask):
        return network.trunk(batch.inputs, attention.blockwise(visible))
    in_bf16 = isinstance(network.head, Int8Head) and bf16_attention.is_fast()
    return network.trunk(batch.inputs, attention.dense(visible, batch.stream_rows, in_bf16))


def losses(network: Network, batch: Batch, distilled: float = 0.0) -> Losses:
    """Run one forward and return the losses; logits are computed only for rows that have a target.

    The loss of a stream row is that of the mixture with what the memory knows (batch.remembered; TRIME, arXiv
    2205.12674), up to a constant.

    `distilled` is a share of the loss of fully masked canvases. That share is measured against left to right's
    prediction for the position, by the same weights with all tokens before known, instead of against the actual token.
    A draft should guess that prediction, and a distribution teaches more than one draw from it (as in arXiv
    2310.08461).
    """
    rows = forward(network, batch, visibility(batch))
    has_target, length = batch.weights > 0, batch.stream_rows
    full_rows = F.pad(batch.masked == 1, (length, 0)) & has_target
    partial_rows = has_target & ~full_rows
    partial_rows[:, :length] = False
    stream_rows = has_target & ~full_rows & ~partial_rows
    stream_rows[:, :length] &= ~batch.is_begun_row
    head = Head.of(network.head) if isinstance(network.head, Int8Head) else None
    weights = batch.weights[partial_rows], batch.weights[full_rows]
    total = weights[0].sum() + weights[1].sum()
    stream_weights = batch.weights / batch.weights[:, :length].sum().clamp(min=_LEAST)
    stream = _stream_loss(network, rows, batch, stream_rows, stream_weights[stream_rows], head)
    stream = stream + (_begun(network, rows, batch) * stream_weights[:, :length][batch.is_begun_row]).sum()
    partial_sum, partial_losses = _weighted(network, rows, batch, partial_rows, weights[0] / total, 0.0, head)
    full_sum, full_losses = _weighted(network, rows, batch, full_rows, weights[1] / total, distilled, head)
    means = [
        float((each * weight).sum() / weight.sum().clamp(min=1e-6))
        for each, weight in zip((full_losses, partial_losses), (weights[1], weights[0]), strict=True)
    ]
    return Losses(stream, partial_sum + full_sum, *means, link=link_loss(network, rows, batch))


def mixed(losses: Tensor, remembered: Tensor) -> Tensor:
    """Return cross entropies [N] with the probability that the memory adds (Batch.remembered), up to a constant."""
    return -torch.logaddexp(-losses, remembered.clamp(min=_LEAST).log())


def _stream_loss(
    network: Network, rows: Tensor, batch: Batch, chosen: Tensor, weights: Tensor, head: Head | None
) -> Tensor:
    """Return the sum of the chosen stream rows' losses times weights [N]."""
    remembered = batch.remembered[chosen[:, : batch.stream_rows]]
    if head is None:
        return (mixed(_cross_entropy(network, rows, batch, chosen), remembered) * weights).sum()
    sequence, row_index = torch.nonzero(chosen, as_tuple=True)
    guess = _guess(network, rows, batch, sequence, row_index)
    return int8_head.losses(head, guess, batch.targets[sequence, row_index], weights, remembered=remembered)[0]


def _begun(network: Network, rows: Tensor, batch: Batch) -> Tensor:
    """Return the losses [n] of the rows at <middle> where a word is begun."""
    remembered = batch.remembered[batch.is_begun_row]
    return mixed(begun_losses(network, rows, batch)[batch.is_begun], remembered)


def _weighted(
    network: Network, rows: Tensor, batch: Batch, chosen: Tensor, weights: Tensor, distilled: float, head: Head | None
) -> tuple[Tensor, Tensor]:
    """Return the sum of the chosen rows' losses times weights [N], and their cross entropies [N], without gradient.

    `head` is the network's head in int8; None measures in fp32.
    """
    if head is None:
        plain, taught = _drafts(network, rows, batch, chosen, distilled)
        return (taught * weights).sum(), plain.detach()
    sequence, row_index = torch.nonzero(chosen, as_tuple=True)
    lesson = None
    if distilled:
        teacher, known = _teachers(batch, sequence, row_index)
        with torch.no_grad():
            lesson = Lesson(_guess(network, rows, batch, sequence, teacher), known * distilled)
    guess = _guess(network, rows, batch, sequence, row_index)
    return int8_head.losses(head, guess, batch.targets[sequence, row_index], weights, lesson)


def _guess(network: Network, rows: Tensor, batch: Batch, sequence: Tensor, row_index: Tensor) -> Guess:
    """Return the input of the int8 head for rows [N] of the batch."""
    picked = rows[sequence, row_index]
    added = network.additions(picked, batch.strengths[sequence, row_index])
    return Guess(picked, batch.hints[sequence, row_index, None], added[:, None])


def _teachers(batch: Batch, sequence: Tensor, row_index: Tensor) -> tuple[Tensor, Tensor]:
    """Return the stream row [N] at the position of each canvas row, and whether both have the same target [N]."""
    teacher = batch.positions[sequence, row_index].clamp(max=batch.stream_rows - 1)
    return teacher, batch.targets[sequence, teacher] == batch.targets[sequence, row_index]


def _chunks(*parts: Tensor) -> Iterator[tuple[Tensor, ...]]:
    """Return the rows a thousand at a time: all logits at once would not fit any cache."""
    return zip(*(torch.split(part, 1024) for part in parts), strict=True)


def _cross_entropy(network: Network, rows: Tensor, batch: Batch, chosen: Tensor) -> Tensor:
    """Return the loss [N] of the chosen rows, bool [B, T + R]."""
    parts = _chunks(rows[chosen], batch.hints[chosen], batch.strengths[chosen], batch.targets[chosen])
    return torch.cat(
        [
            F.cross_entropy(network.logits(part, hints, strengths), targets, reduction="none")
            for part, hints, strengths, targets in parts
        ]
    )


def _drafts(network: Network, rows: Tensor, batch: Batch, chosen: Tensor, distilled: float) -> tuple[Tensor, Tensor]:
    """Return two losses [N] of the chosen canvas rows: against the target, and partly against a teacher.

    The share `distilled` of the second is against the prediction of the stream's row at the same position. Rows without
    such a teacher, because the stream has ended, have the target only.
    """
    if not distilled:
        each = _cross_entropy(network, rows, batch, chosen)
        return each, each
    sequence, row_index = torch.nonzero(chosen, as_tuple=True)
    teacher, known = _teachers(batch, sequence, row_index)
    plain: list[Tensor] = []
    taught: list[Tensor] = []
    for row, column, source, shared in _chunks(sequence, row_index, teacher, known * distilled):
        logits = network.logits(rows[row, column], batch.hints[row, column], batch.strengths[row, column])
        logarithms, target = logits.log_softmax(-1), batch.targets[row, column]
        with torch.no_grad():
            teacher_probabilities = network.logits(
                rows[row, source], batch.hints[row, source], batch.strengths[row, source]
            )
            teacher_probabilities = teacher_probabilities.softmax(-1).mul_(shared[:, None])
            teacher_probabilities[torch.arange(len(row), device=row.device), target] += 1 - shared
        plain.append(-logarithms.detach().gather(1, target[:, None])[:, 0])
        taught.append(-(logarithms * teacher_probabilities).sum(-1))
    return torch.cat(plain), torch.cat(taught)


def phase(objective: Objective, done: float) -> tuple[int, float]:
    """Return canvas rows of a sequence and distilled share at `done` (0 to 1) of the run: left to right comes first."""
    early = done < objective.late_from
    return (objective.canvas_rows_early, 0.0) if early else (objective.canvas_rows_late, objective.distilled)
