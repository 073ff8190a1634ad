"""The loss of the link between neighbours of a canvas (models/embedded/link.py); it trains only the link.

A canvas row can be linked if the stream holds its position too. The stream's row there has the token that the canvas
row hides, with its n-grams and hints, and predicts the same token. So that row is the link's input. Its prediction,
which is left to right's answer, is half of the link's target; the actual token is the other half. Trunk and head get no
gradient from this loss.
"""

import attrs
import torch
from torch import Tensor
from torch.nn import functional as F

from engine.models.embedded.network import Network, Rows
from engine.training.batch import Batch

SAMPLE = 192
"""Rows of a batch that are linked in a normal step: a few hundredths of the step's work."""
TAUGHT = 0.5
"""The share of the loss that is measured against left to right's prediction."""


@attrs.frozen
class Pairs:
    """N canvas rows of a batch, each with the stream row at the same position: indices, int64 [N].

    weight: float32 [N], 0 where the stream has ended or another token follows.
    """

    sequence: Tensor
    row: Tensor
    stream: Tensor
    weight: Tensor

    def of(self, rows: Tensor) -> Tensor:
        """Return the canvas rows of [B, T + R, ...]."""
        return rows[self.sequence, self.row]

    def neighbours(self, rows: Tensor) -> Tensor:
        """Return the stream rows of [B, T + R, ...]."""
        return rows[self.sequence, self.stream]


def draw(batch: Batch, count: int) -> Pairs:
    """Draw `count` rows from all canvases. The number is fixed, so the host need not wait for a GPU."""
    sequences, canvas_rows = batch.owners.shape
    chosen = torch.randint(sequences * canvas_rows, (count,), device=batch.owners.device)
    return _pairs(batch, chosen)


def every(batch: Batch) -> Pairs:
    """Return all canvas rows that can be linked. On a GPU this waits for the device."""
    pairs = _pairs(batch, torch.arange(batch.owners.numel(), device=batch.owners.device))
    kept = pairs.weight > 0
    return Pairs(pairs.sequence[kept], pairs.row[kept], pairs.stream[kept], pairs.weight[kept])


def _pairs(batch: Batch, chosen: Tensor) -> Pairs:
    canvas_rows = batch.owners.shape[1]
    sequence, row = chosen // canvas_rows, batch.stream_rows + chosen % canvas_rows
    stream = batch.positions[sequence, row].clamp(max=batch.stream_rows - 1)
    shared = batch.targets[sequence, stream] == batch.targets[sequence, row]
    return Pairs(sequence, row, stream, (shared & (batch.weights[sequence, row] == 1)).float())


def linked_logits(network: Network, rows: Tensor, batch: Batch, pairs: Pairs) -> Tensor:
    """Return logits [N, vocabulary] of linked trunk rows [B, T + R, width]; only the link gets gradients.

    Raises ValueError for a network without a link.
    """
    if network.link is None:
        raise ValueError("this network has no link; give its shape a link_width")
    inputs = batch.inputs
    neighbours = Rows(*(pairs.neighbours(part) for part in (attrs.astuple(inputs, recurse=False))))
    with torch.no_grad():
        entries = network.entry(neighbours)
    linked = network.link(pairs.of(rows.detach()), entries)
    copy = network.copy(neighbours.strengths).detach()
    added = (linked * copy[:, :-1]).sum(-1) + copy[:, -1]
    logits: Tensor = F.linear(linked, network.head.weight.detach()).float()
    return logits.scatter_add(1, neighbours.hints[:, None], added[:, None].float())


def each(network: Network, rows: Tensor, batch: Batch, pairs: Pairs, taught: float = TAUGHT) -> Tensor:
    """Return the loss [N] of the pairs in nats; the share `taught` is against the stream rows' predictions."""
    logarithms = linked_logits(network, rows, batch, pairs).log_softmax(-1)
    plain = -logarithms.gather(1, pairs.of(batch.targets)[:, None])[:, 0]
    if not taught:
        return plain
    with torch.no_grad():
        hints, strengths = pairs.neighbours(batch.hints), pairs.neighbours(batch.strengths)
        teacher = network.logits(pairs.neighbours(rows), hints, strengths).softmax(-1)
    return taught * -(logarithms * teacher).sum(-1) + (1 - taught) * plain


def link_loss(network: Network, rows: Tensor, batch: Batch) -> Tensor:
    """Return the mean loss of SAMPLE rows; 0 for a network without a link."""
    if network.link is None:
        return rows.new_zeros(())
    pairs = draw(batch, SAMPLE)
    return (each(network, rows, batch, pairs) * pairs.weight).sum() / pairs.weight.sum().clamp(min=1)
