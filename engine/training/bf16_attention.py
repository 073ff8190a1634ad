"""The attention of training in bf16, for processors that multiply bf16 several times faster than fp32.

Queries and keys are normalized (network.Block), so a score is at most the root of the head's width and its exponential
needs no maximum taken off. Products take one sequence's heads and a block of rows at a time, so that their scores stay
in the cache. What lies above the diagonal blocks is left out. The weights are kept for the way back.
"""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

BLOCK = 256
"""Stream rows whose scores are computed at once."""


def is_fast() -> bool:
    """Return whether this processor multiplies bf16."""
    return bool(torch.cpu._is_avx512_bf16_supported())


def attend(query: Tensor, key: Tensor, value: Tensor, visible: Tensor, length: int) -> Tensor:
    """Return mixed values of queries, keys and values, all [B, T + R, heads, head_width].

    visible: bf16 [B, R, T + R], 1 where a canvas row sees a key and 0 elsewhere. length: T; stream rows read causally.
    """
    scaled = query * query.shape[-1] ** -0.5
    parts = (part.transpose(1, 2).to(torch.bfloat16).contiguous() for part in (scaled, key, value))
    mixed: Tensor = _attend(*parts, visible, length)[0]
    return mixed.transpose(1, 2).to(query.dtype)


def _blocks(heads: int, length: int, rows: int) -> Iterator[tuple[slice, int, slice]]:
    """Yield blocks of query rows, how many keys they see at most, and where their weights are kept in a sequence's."""
    stops = [*range(BLOCK, length, BLOCK), length, *([rows] if rows > length else [])]
    start = kept = 0
    for stop in stops:
        size = heads * (stop - start) * stop
        yield slice(start, stop), stop, slice(kept, kept + size)
        start, kept = stop, kept + size


def _kept_size(heads: int, length: int, rows: int) -> int:
    return sum(place.stop - place.start for _, _, place in _blocks(heads, length, rows))


@torch.library.custom_op("midspan_training::attend", mutates_args=())
def _attend(query: Tensor, key: Tensor, value: Tensor, visible: Tensor, length: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return mixed values [B, heads, rows, width], each sequence's weights, and their sums [B, heads, rows]."""
    size, heads, rows, _ = query.shape
    kept = query.new_empty(size, _kept_size(heads, length, rows))
    mixed, sums = torch.empty_like(query), query.new_empty(size, heads, rows, dtype=torch.float32)
    for one in range(size):
        for block, keys, place in _blocks(heads, length, rows):
            weights = kept[one, place].view(heads, -1, keys)
            torch.bmm(query[one, :, block], key[one, :, :keys].transpose(1, 2), out=weights)
            weights.exp_()
            if block.start < length:
                weights[..., block].tril_()
            else:
                weights.mul_(visible[one])
            total = weights.sum(-1, dtype=torch.float32)
            sums[one, :, block] = total
            mixed[one, :, block] = torch.bmm(weights, value[one, :, :keys]) / total[..., None]
    return mixed, kept, sums


@_attend.register_fake
def _(query: Tensor, key: Tensor, value: Tensor, visible: Tensor, length: int) -> tuple[Tensor, Tensor, Tensor]:
    size, heads, rows, _ = query.shape
    kept = query.new_empty(size, _kept_size(heads, length, rows))
    return torch.empty_like(query), kept, query.new_empty(size, heads, rows, dtype=torch.float32)


@torch.library.custom_op("midspan_training::attend_back", mutates_args=())
def _attend_back(
    slope: Tensor, query: Tensor, key: Tensor, value: Tensor, mixed: Tensor, kept: Tensor, sums: Tensor, length: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients of queries, keys and values from that of the mixed values."""
    size, heads, rows, _ = query.shape
    by_query = torch.empty_like(query)
    by_key, by_value = (torch.zeros(query.shape, dtype=torch.float32) for _ in range(2))
    scaled = slope.float() / sums[..., None]
    means = (scaled * mixed.float()).sum(-1, keepdim=True).to(query.dtype)
    scaled = scaled.to(query.dtype)
    for one in range(size):
        for block, keys, place in _blocks(heads, length, rows):
            weights, own = kept[one, place].view(heads, -1, keys), scaled[one, :, block]
            by_value[one, :, :keys] += torch.bmm(weights.transpose(1, 2), own)
            steepness = torch.bmm(own, value[one, :, :keys].transpose(1, 2))
            steepness.sub_(means[one, :, block]).mul_(weights)
            by_query[one, :, block] = torch.bmm(steepness, key[one, :, :keys])
            by_key[one, :, :keys] += torch.bmm(steepness.transpose(1, 2), query[one, :, block])
    return by_query, by_key.to(query.dtype), by_value.to(query.dtype)


@_attend_back.register_fake
def _(
    slope: Tensor, query: Tensor, key: Tensor, value: Tensor, mixed: Tensor, kept: Tensor, sums: Tensor, length: int
) -> tuple[Tensor, Tensor, Tensor]:
    return torch.empty_like(query), torch.empty_like(query), torch.empty_like(query)


def _remember(ctx: Any, inputs: Any, output: Any) -> None:
    query, key, value, _, ctx.length = inputs
    mixed, kept, sums = output
    ctx.save_for_backward(query, key, value, mixed, kept, sums)
    ctx.mark_non_differentiable(kept, sums)


def _back(ctx: Any, slope: Tensor, *_: Any) -> tuple[Tensor | None, ...]:
    return *_attend_back(slope.contiguous(), *ctx.saved_tensors, ctx.length), None, None


torch.library.register_autograd("midspan_training::attend", _back, setup_context=_remember)
