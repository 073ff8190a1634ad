"""The objective: next-token loss over the stream, and masked-diffusion loss over many short canvases, in one forward.

Both predict the NEXT position: the row of position p, known token or mask, predicts the token at p + 1 (shifted logits,
which Dream and DiffuCoder keep from their left-to-right parents). A canvas follows an anchor, a token of the stream
(<middle> for the hole's own canvas). It sees the stream up to the anchor and all of itself; the stream never sees it.
The anchor's own row predicts the canvas's first position, exactly as left to right would, so that position is always
masked. One set of weights learns to read, to write left to right, and to denoise.
"""

from typing import Any

import attrs
import torch
from torch import Tensor
from torch.nn import functional as F

from engine.models.embedded.network import Attend, Network
from engine.training.batch import Batch


def cpu_has_bf16() -> bool:
    """Return whether torch computes in bf16 on this processor by its own instructions; else that takes far longer.

    Torch may be held to AVX2, as by ATEN_CPU_CAPABILITY, on a processor that has them.
    """
    return torch.cpu._is_avx512_bf16_supported() and torch.backends.cpu.get_cpu_capability() == "AVX512"


def begun_losses(network: Network, rows: Tensor, batch: Batch) -> Tensor:
    """Return the cross entropies [n] of the rows at <middle> of the sequences where a word is begun.

    rows: [B, T + R, width], of the trunk.
    """
    begun = torch.nonzero(batch.is_begun)[:, 0]
    middles = batch.middles[begun]
    logits = network.logits(rows[begun, middles]).masked_fill(~batch.agreeing[begun], -torch.inf)
    return F.cross_entropy(logits, batch.targets[begun, middles], reduction="none")


_LEAST = 1e-6


@attrs.frozen
class Losses:
    """Mean cross entropies in nats; `total` is what descends.

    The others are of the holes' middles, the code above, fully masked canvases, and the other canvases.
    """

    total: Tensor
    middle: float
    above: float
    full: float
    partial: float

    def means(self) -> list[float]:
        """Return the four means, in the order of MEANS."""
        return [self.middle, self.above, self.full, self.partial]


MEANS = ("middle", "above", "full", "partial")


def visible(batch: Batch) -> Tensor:
    """Return which rows see which, bool [B, 1, T + R, T + R]."""
    length, device = batch.stream_rows, batch.tokens.device
    rows, side = batch.tokens.shape[1], batch.owners.shape[1]
    seen = torch.zeros(len(batch.tokens), rows, rows, dtype=torch.bool, device=device)
    seen[:, :length, :length] = torch.ones(length, length, dtype=torch.bool, device=device).tril()
    if side:
        seen[:, length:, :length] = torch.arange(length, device=device) <= batch.anchors[..., None]
        seen[:, length:, length:] = batch.owners[:, :, None] == batch.owners[:, None, :]
    return seen[:, None]


class GroupedAttention(torch.autograd.Function):
    """Attention of query rows [N, G * rows, width] to the keys and values [N, rows, width] that G heads share.

    `hidden` [N, G * rows, rows] is added to the scores. On a CPU plain products take a third of the time of
    torch's flash attention with a mask (two streams of 496 rows, bf16: 12 instead of 34 ms a layer, there and back).
    """

    @staticmethod
    def forward(ctx: Any, query: Tensor, key: Tensor, value: Tensor, hidden: Tensor) -> Tensor:
        ctx.scale = query.shape[-1] ** -0.5
        shares = torch.baddbmm(hidden, query, key.mT, alpha=ctx.scale).softmax(-1)
        ctx.save_for_backward(query, key, value, shares)
        return shares @ value

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:
        query, key, value, shares = ctx.saved_tensors
        of_shares = gradients[0] @ value.mT
        of_scores = torch._softmax_backward_data(of_shares, shares, -1, shares.dtype).mul_(ctx.scale)
        return of_scores @ key, of_scores.mT @ query, shares.mT @ gradients[0], None


def attention(batch: Batch, dtype: torch.dtype, key_heads: int, heads: int) -> Attend:
    """Return attention over a batch's rows, with scores in `dtype`."""
    hidden = torch.zeros(1, dtype=dtype, device=batch.tokens.device).expand(len(batch.tokens), 1, 1)
    hidden = torch.where(visible(batch)[:, 0], hidden, torch.full_like(hidden, -torch.inf))
    hidden = hidden.repeat_interleave(key_heads, 0).repeat(1, heads // key_heads, 1)

    def attend(layer: int, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        sequences, rows, _, width = query.shape
        grouped = (
            each.to(dtype).transpose(1, 2).reshape(sequences * key_heads, -1, width) for each in (query, key, value)
        )
        mixed: Tensor = GroupedAttention.apply(*grouped, hidden)  # type: ignore[no-untyped-call]
        return mixed.view(sequences, heads, rows, width).transpose(1, 2)

    return attend


def forward(network: Network, batch: Batch) -> Tensor:
    """Return trunk rows [B, T + R, width]."""
    shape, kind = network.shape, batch.tokens.device.type
    dtype = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else torch.float32
    return network.trunk(batch.tokens, batch.positions, attention(batch, dtype, shape.key_heads, shape.heads))


def losses(network: Network, batch: Batch, distilled: float, canvas_weight: float) -> Losses:
    """Run one forward and return the losses; logits are computed only for rows that have a target.

    `distilled` is a share of the loss of canvases. That share is measured against left to right's prediction for the
    position, by the same weights with all tokens before known, instead of against the actual token: a draft should
    guess that prediction, and a distribution teaches more than one draw from it (as in arXiv 2310.08461).
    """
    rows = forward(network, batch)
    has_target, number = batch.weights > 0, torch.arange(batch.tokens.shape[1], device=rows.device)
    is_read = number < batch.stream_rows
    of_stream = has_target & is_read & ~batch.is_begun_row
    weights = batch.weights[of_stream]
    each = F.cross_entropy(network.logits(rows[of_stream]), batch.targets[of_stream], reduction="none")
    begun = begun_losses(network, rows, batch)
    begun_weights = batch.weights[batch.is_begun_row]
    total = weights.sum() + begun_weights.sum()
    stream = ((each * weights).sum() + (begun * begun_weights).sum()) / total.clamp(min=_LEAST)
    is_middle = (number >= batch.middles[:, None])[of_stream]
    middle = torch.cat((each[is_middle], begun)).detach()
    above = each[~is_middle].detach()
    sequence, row = torch.nonzero(has_target & ~is_read, as_tuple=True)
    if not len(row):
        return Losses(stream, _mean(middle), _mean(above), 0.0, 0.0)
    plain, taught = _canvas_losses(network, rows, batch, sequence, row, distilled)
    canvas_weights = batch.weights[sequence, row]
    canvas = (taught * canvas_weights).sum() / canvas_weights.sum().clamp(min=_LEAST)
    full = batch.masked[sequence, row - batch.stream_rows] == 1
    means = _mean(middle), _mean(above), _mean(plain[full]), _mean(plain[~full])
    return Losses(stream + canvas_weight * canvas, *means)


def _mean(values: Tensor) -> float:
    return float(values.mean()) if len(values) else 0.0


def _canvas_losses(
    network: Network, rows: Tensor, batch: Batch, sequence: Tensor, row: Tensor, distilled: float
) -> tuple[Tensor, Tensor]:
    """Return two losses [N] of canvas rows: against the target, without gradient, and partly against a teacher.

    The teacher is the stream's row at the same position. Rows without one, because the stream has ended, have the
    target only.
    """
    targets = batch.targets[sequence, row]
    logarithms = network.logits(rows[sequence, row]).log_softmax(-1)
    plain = -logarithms.gather(1, targets[:, None])[:, 0]
    if not distilled:
        return plain.detach(), plain
    teacher = batch.positions[sequence, row].clamp(max=batch.stream_rows - 1)
    shared = (batch.targets[sequence, teacher] == targets) * distilled
    with torch.no_grad():
        guess = network.logits(rows[sequence, teacher]).softmax(-1)
    against = -(logarithms * guess).sum(-1)
    return plain.detach(), plain * (1 - shared) + against * shared
