"""The attention of training, under one mask: streams read causally, canvases see their past and themselves.

On a CPU, two calls of scaled_dot_product_attention do it; where bf16 is fast, bf16_attention.py does. On a GPU, one
fused kernel (FlexAttention, Dong et al., arXiv 2412.05496) skips the blocks that no row sees, more than half of them.
"""

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.nn.attention.flex_attention import BlockMask, flex_attention

from engine.models.embedded.network import Attend
from engine.training import bf16_attention

BLOCK = 128
"""Rows in a block of the fused kernel; on a GPU the numbers of stream and canvas rows are multiples of it."""

_fused = torch.compile(flex_attention, dynamic=False)


def dense(visible: Tensor, length: int, in_bf16: bool = False) -> Attend:
    """Return the attention for streams of `length` rows; canvases see what `visible` [B, 1, R, T + R] allows."""
    if in_bf16:
        seen = visible[:, 0].to(torch.bfloat16)
        return lambda _, query, key, value: bf16_attention.attend(query, key, value, seen, length)

    def attend(_: int, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        query, key, value = (part.transpose(1, 2) for part in (query, key, value))
        stream_rows = F.scaled_dot_product_attention(
            query[:, :, :length], key[:, :, :length], value[:, :, :length], is_causal=True
        )
        canvas_rows = F.scaled_dot_product_attention(query[:, :, length:], key, value, attn_mask=visible)
        return torch.cat((stream_rows, canvas_rows), 2).transpose(1, 2)

    return attend


def blockwise(mask: BlockMask) -> Attend:
    """Return the fused attention under a mask from `block_mask`."""

    def attend(_: int, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        # Norms and rotation return fp32 under autocast; the kernel needs one type.
        query, key, value = (part.transpose(1, 2).to(value.dtype) for part in (query, key, value))
        kernel = _fused if value.is_cuda else flex_attention
        mixed = kernel(query, key, value, block_mask=mask)
        assert isinstance(mixed, Tensor)
        return mixed.transpose(1, 2)

    return attend


def block_mask(anchors: Tensor, owners: Tensor, length: int, block: int = BLOCK) -> BlockMask:
    """Return the mask for streams of `length` rows and canvas rows with anchors and owners [B, R] (see batch.Batch).

    The ends of each block's anchors and owners say which blocks it sees: owners never decrease along a row, so a block
    of canvases holds all owners between its first and its last. This costs a few operations on [B, blocks, blocks];
    asking for every pair of rows would cost [B, T + R, T + R].

    Raises ValueError if `length` or the number of canvas rows is not a multiple of `block`.
    """
    size, canvas_rows = owners.shape
    if length % block or canvas_rows % block:
        raise ValueError(
            f"{length} stream rows and {canvas_rows} canvas rows are not multiples of {block}; "
            "set context_tokens and canvas_rows_early and canvas_rows_late in the config so that they are"
        )
    device = owners.device
    rows = torch.arange(length, device=device).expand(size, -1)
    reach = torch.cat((rows, anchors), 1)
    own = torch.cat((torch.full_like(rows, -1), owners), 1)

    def visible(row: Tensor, _: Tensor, query: Tensor, key: Tensor) -> Tensor:
        return torch.where(key < length, key <= reach[row, query], own[row, query] == own[row, key])

    reaches, owned = reach.view(size, -1, block), own.view(size, -1, block)
    start = torch.arange(reaches.shape[1], device=device) * block
    is_stream = start < length
    lowest, highest = reaches.amin(2)[:, :, None], reaches.amax(2)[:, :, None]
    first, last = owned[:, :, 0], owned[:, :, -1]
    shared = (first[:, :, None] <= last[:, None]) & (first[:, None] <= last[:, :, None])
    fully_visible = is_stream & (lowest >= start + block - 1)
    partly_visible = torch.where(is_stream, highest >= start, shared) & ~fully_visible
    return BlockMask.from_kv_blocks(
        *_listed(partly_visible), *_listed(fully_visible), BLOCK_SIZE=block, mask_mod=visible
    )


def _listed(blocks: Tensor) -> tuple[Tensor, Tensor]:
    """Return how many key blocks each query block sees, int32 [B, 1, Q], and their indices, int32 [B, 1, Q, K].

    The seen blocks come first in each list.
    """
    order = torch.argsort(blocks.int(), dim=-1, descending=True, stable=True)
    return blocks.sum(-1).int()[:, None], order.int()[:, None]
