"""The objective's losses with fixed sizes: objective.losses for a GPU, and the losses by noise level.

objective.losses selects the rows that have a target, and the host must wait for the device to know their number. Here
every row gets a loss, and rows without a target weigh nothing. This wastes a fifth of the head's work but never waits,
and torch.compile fuses each part of the head's product with its use. A test checks that both give the same losses.
"""

from collections.abc import Iterator

import attrs
import torch
from torch import Tensor

from engine.models.embedded.network import Network
from engine.training import objective
from engine.training.batch import Batch
from engine.training.begun import begun_losses

PART = 16_384
"""Rows whose logits are computed at once: 256 MB of bf16 with 8,192 tokens, so that a product fills a GPU."""
LEVELS = ("stream", "fully masked", "masked > 1/2", "masked <= 1/2")


@attrs.frozen
class RowLosses:
    """Mean losses to descend; and, by LEVELS, the sums [4] of weighted cross entropies in nats and the weights [4]."""

    stream: Tensor
    canvas: Tensor
    sums: Tensor
    weights: Tensor

    def means(self) -> Tensor:
        """Return means [4]: stream, canvas as it is descended, fully masked canvases, the others."""
        sums, weights = (torch.stack((part[0], part[1], part[2:].sum())) for part in (self.sums, self.weights))
        means = sums / weights.clamp(min=1e-6)
        return torch.stack((means[0], self.canvas.detach(), means[1], means[2]))


def logits(network: Network, rows: Tensor, hints: Tensor, strengths: Tensor) -> Tensor:
    """Return network.logits [N, vocabulary], computed with a comparison instead of a scatter, so that it fuses."""
    added = network.additions(rows, strengths)
    places = torch.arange(network.shape.vocabulary, device=rows.device)
    scores: Tensor = network.head(rows).float()
    return scores + torch.where(places == hints[:, None], added[:, None].float(), 0.0)


def _cross_entropy(network: Network, rows: Tensor, hints: Tensor, strengths: Tensor, targets: Tensor) -> Tensor:
    scores = logits(network, rows, hints, strengths)
    return scores.logsumexp(-1) - scores.gather(1, targets[:, None])[:, 0]


def _canvas(
    network: Network, rows: Tensor, teachers: Tensor, hints: Tensor, strengths: Tensor, targets: Tensor, share: Tensor
) -> Tensor:
    """Return losses [2, N]: against the targets, and with the share `share` [N] against the teachers' predictions.

    hints and strengths [N, 2]: the rows' own and the teachers'.
    """
    with torch.no_grad():
        teacher_probabilities = logits(network, teachers, hints[:, 1], strengths[:, 1]).softmax(-1)
    scores = logits(network, rows, hints[:, 0], strengths[:, 0])
    total = scores.logsumexp(-1)
    plain = total - scores.gather(1, targets[:, None])[:, 0]
    return torch.stack(
        (plain.detach(), share * (total - (scores * teacher_probabilities).sum(-1)) + (1 - share) * plain)
    )


_compiled_cross_entropy = torch.compile(_cross_entropy, dynamic=False)
_compiled_canvas = torch.compile(_canvas, dynamic=False)


def losses(network: Network, rows: Tensor, batch: Batch, distilled: float) -> RowLosses:
    """Return the losses of trunk rows [B, T + R, width]; see objective.losses for `distilled`."""
    length = batch.stream_rows
    stream_loss = _stream_losses(network, rows, batch)
    stream_loss = torch.where(batch.is_begun_row, begun_losses(network, rows, batch)[:, None], stream_loss)
    plain, taught = _canvas_losses(network, rows, batch, distilled)
    plain = plain.detach()
    stream_weights, weights = batch.weights[:, :length], batch.weights[:, length:]
    stream = (objective.mixed(stream_loss, batch.remembered) * stream_weights).sum() / stream_weights.sum()
    canvas = (taught * weights).sum() / weights.sum()
    full, mostly = batch.masked == 1, batch.masked > 0.5
    parts = [weights * which for which in (full, mostly & ~full, ~mostly)]
    counted = (stream_weights > 0).float()
    sums = [(stream_loss.detach() * counted).sum(), *((plain * part).sum() for part in parts)]
    return RowLosses(
        stream,
        canvas,
        torch.stack(sums),
        torch.stack([counted.sum(), *(part.sum() for part in parts)]),
    )


def _stream_losses(network: Network, rows: Tensor, batch: Batch) -> Tensor:
    """Return the cross entropies of the stream rows [B, T]."""
    each = (rows, batch.hints, batch.strengths, batch.targets)
    flat = [part[:, : batch.stream_rows].flatten(0, 1) for part in each]
    measure = _compiled_cross_entropy if rows.is_cuda else _cross_entropy
    return torch.cat([measure(network, *part) for part in _parts(*flat)]).view(len(rows), -1)


def _canvas_losses(network: Network, rows: Tensor, batch: Batch, distilled: float) -> Tensor:
    """Return the canvas rows' cross entropies and their losses with the share `distilled` from a teacher, [2, B, R].

    A canvas row's teacher is the stream row at its position, if that has the same target.
    """
    length = batch.stream_rows
    position = batch.positions[:, length:].clamp(max=length - 1)
    targets = batch.targets[:, length:]
    share = (batch.targets.gather(1, position) == targets) * (batch.masked == 1) * distilled
    teachers = rows.detach().gather(1, position[..., None].expand(-1, -1, rows.shape[-1]))
    hints, strengths = (
        torch.stack((part[:, length:], part.gather(1, position)), -1) for part in (batch.hints, batch.strengths)
    )
    flat = [part.flatten(0, 1) for part in (rows[:, length:], teachers, hints, strengths, targets, share)]
    measure = _compiled_canvas if rows.is_cuda else _canvas
    both = torch.cat([measure(network, *part) for part in _parts(*flat)], 1)
    return both.view(2, len(rows), -1)


def _parts(*flat: Tensor) -> Iterator[tuple[Tensor, ...]]:
    return zip(*(torch.split(each, PART) for each in flat), strict=True)


def levels(network: Network, batches: list[Batch]) -> list[float]:
    """Return the mean loss in nats over batches, by LEVELS; nan for a level that no batch has.

    Gradients stay on but are never computed: under no_grad torch.compile would compile the whole trunk a second time.
    """
    sums, weights = torch.zeros(len(LEVELS)), torch.zeros(len(LEVELS))
    for batch in batches:
        device = batch.tokens.device.type
        with torch.autocast(device, torch.bfloat16, enabled=device == "cuda"):
            rows = objective.forward(network, batch, objective.visibility(batch)).detach()
            measured = losses(network, rows, batch, 0.0)
        sums += measured.sums.cpu()
        weights += measured.weights.cpu()
    return (sums / weights).tolist()
