"""The attention of training, under one mask: streams read causally, canvases see their past and themselves.

On a processor two calls of scaled_dot_product_attention are fastest. On a GPU one fused kernel (FlexAttention, Dong et
al., arXiv 2412.05496) leaves out the blocks that nobody sees, which is more than half of them.
"""

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.nn.attention.flex_attention import BlockMask, flex_attention

from engine.models.embedded.network import Attend

BLOCK = 128
"""Rows a block of the fused kernel; on a GPU stream and canvas rows are multiples of it."""

_fused = torch.compile(flex_attention, dynamic=False)


def dense(visible: Tensor, length: int) -> Attend:
    """Return the attention for streams of `length` rows and canvases that see what `visible` [B, 1, R, T + R] says."""

    def attend(_: int, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        query, key, value = (part.transpose(1, 2) for part in (query, key, value))
        read = F.scaled_dot_product_attention(
            query[:, :, :length], key[:, :, :length], value[:, :, :length], is_causal=True
        )
        drawn = F.scaled_dot_product_attention(query[:, :, length:], key, value, attn_mask=visible)
        return torch.cat((read, drawn), 2).transpose(1, 2)

    return attend


def blockwise(mask: BlockMask) -> Attend:
    """Return the fused attention under a mask that `block_mask` made."""

    def attend(_: int, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        # Norms and rotation leave autocast's bf16; the kernel wants one type.
        query, key, value = (part.transpose(1, 2).to(value.dtype) for part in (query, key, value))
        kernel = _fused if value.is_cuda else flex_attention
        mixed = kernel(query, key, value, block_mask=mask)
        assert isinstance(mixed, Tensor)
        return mixed.transpose(1, 2)

    return attend


def block_mask(anchors: Tensor, owners: Tensor, length: int, block: int = BLOCK) -> BlockMask:
    """Return the mask for streams of `length` rows with canvas rows' anchors and owners [B, R] (see objective.Batch).

    Which blocks are seen is read off the ends of each block's anchors and owners: owners never decrease along a row, so
    a block of canvases holds all owners between its first and its last. That costs a few operations on [B, blocks,
    blocks], where asking for every pair of rows would cost [B, T + R, T + R].

    Raises ValueError when `length` or the number of canvas rows is no multiple of `block`.
    """
    size, drawn = owners.shape
    if length % block or drawn % block:
        raise ValueError(
            f"{length} stream rows and {drawn} canvas rows are no multiples of {block}; "
            "set context_tokens and canvas_rows_early and canvas_rows_late in the config so that they are"
        )
    device = owners.device
    rows = torch.arange(length, device=device).expand(size, -1)
    reach = torch.cat((rows, anchors), 1)
    own = torch.cat((torch.full_like(rows, -1), owners), 1)

    def visible(row: Tensor, _: Tensor, query: Tensor, key: Tensor) -> Tensor:
        return torch.where(key < length, key <= reach[row, query], own[row, query] == own[row, key])

    reaches, expect_type = reach.view(size, -1, block), own.view(size, -1, block)
    start = torch.arange(reaches.shape[1], device=device) * block
    read = start < length
    least, most = reaches.amin(2)[:, :, None], reaches.amax(2)[:, :, None]
    first, last = expect_type[:, :, 0], expect_type[:, :, -1]
    shared = (first[:, :, None] <= last[:, None]) & (first[:, None] <= last[:, :, None])
    whole = read & (least >= start + block - 1)
    part = torch.where(read, most >= start, shared) & ~whole
    return BlockMask.from_kv_blocks(*_listed(part), *_listed(whole), BLOCK_SIZE=block, mask_mod=visible)


def _listed(blocks: Tensor) -> tuple[Tensor, Tensor]:
    """Return how many key blocks each query block sees, int32 [B, 1, Q], and which, those first, int32 [B, 1, Q, K]."""
    order = torch.argsort(blocks.int(), dim=-1, descending=True, stable=True)
    return blocks.sum(-1).int()[:, None], order.int()[:, None]
