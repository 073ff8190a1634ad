"""Attention of a batch of passes in torch: each hole's rows over that hole's own keys and values."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from engine.fill.stream import StreamPass
from engine.models.stock.key_values import KeyValues

QUERY_BLOCK, KEY_BLOCK = 16, 64
"""In bf16, how torch rounds a row depends on how many rows and keys are together. In blocks of these sizes, with what
is beyond masked out, it does not: measured on AVX-512 bf16, 0 of 600 rows differ, 115 without blocks. In fp32 what
differs is a millionth, and no choice of a token depends on it."""


class ContextAttention:
    """Writes the keys and values of the passes' rows after their contexts, and attends over them.

    contexts[i].tokens must not hold the rows of passes[i] yet.
    """

    def __init__(
        self, passes: Sequence[StreamPass], contexts: Sequence[KeyValues], dtype: torch.dtype, device: torch.device
    ) -> None:
        self._contexts, self._device, self._dtype = contexts, device, dtype
        self._counts = [item.rows for item in passes]
        self._starts = [len(context.tokens) for context in contexts]
        in_blocks = dtype == torch.bfloat16 and device.type == "cpu"
        self._query_block, self._key_block = (QUERY_BLOCK, KEY_BLOCK) if in_blocks else (1, 1)
        self._masks = [
            self._mask(start, len(item.append), len(item.canvas), context.capacity)
            for start, item, context in zip(self._starts, passes, contexts, strict=True)
        ]

    def _mask(self, start: int, append: int, canvas: int, capacity: int) -> Tensor | None:
        """Return what to add to each row's scores, [rows, keys] in whole blocks: 0 for a key that it sees, else -inf.

        None where all rows see all keys.
        """
        rows = append + canvas
        if self._query_block == 1 and (append == 0 or rows == 1):
            return None
        seen = np.ones(_whole(rows, self._query_block), np.int64)  # A padding row that saw nothing would be NaN.
        seen[:append] = np.arange(start + 1, start + 1 + append)
        seen[append:rows] = start + rows
        keys = np.arange(min(_whole(start + rows, self._key_block), capacity))
        mask = np.where(keys < seen[:, None], np.float32(0), np.float32(-np.inf))
        return torch.from_numpy(mask).to(self._device, self._dtype)

    def attend(self, layer: int, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        """Return the mixed values [rows, heads, head_width] of all rows, see network.Attend."""
        mixed, first = [], 0
        for context, start, count, mask in zip(self._contexts, self._starts, self._counts, self._masks, strict=True):
            own = slice(first, first + count)
            keys, values = context.buffer[layer].unbind(0)
            keys[:, start : start + count] = key[own].transpose(0, 1)
            values[:, start : start + count] = value[own].transpose(0, 1)
            seen = start + count if mask is None else mask.shape[1]
            asked = query[own].transpose(0, 1)
            if mask is not None and mask.shape[0] > count:
                asked = F.pad(asked, (0, 0, 0, mask.shape[0] - count))
            shared = asked.shape[0] // keys.shape[0]
            keys, values = (part[None, :, :seen].repeat_interleave(shared, 1) for part in (keys, values))
            rows = F.scaled_dot_product_attention(asked[None], keys, values, mask)
            mixed.append(rows[0, :, :count].transpose(0, 1))
            first += count
        return torch.cat(mixed) if len(mixed) > 1 else mixed[0]


def _whole(length: int, block: int) -> int:
    """Return `length` rounded up to whole blocks."""
    return -(-length // block) * block
