"""Attention of one hole's rows over its own keys, in a form that torch's fused kernels take, and in bounded memory.

On a GPU flash attention takes no mask, and the memory-efficient kernel takes no grouped queries (ATen's sdp_utils).
With both, torch repeats all keys for each query head and holds all scores in fp32. So here queries that share a key
head become rows of that head, and rows are read some at a time.
"""

import attrs
import torch
from torch import Tensor
from torch.nn import functional as F

MOST_SCORES = 1 << 26
"""Scores of all heads at once: 256 MiB, should torch hold them in fp32 after all. A mask has as many entries a key
head, of up to 5 bytes: it is made of bools, and kernels copy it to bf16."""


@attrs.frozen
class CausalRows:
    """Rows at positions `start` and on, over keys from position `first` on. A row sees itself and what is before it.

    With a `window` it sees no key that is so many positions before it, or more.
    """

    start: int
    first: int = 0
    window: int | None = None
    _masks: dict[tuple[int, int, int], Tensor] = attrs.field(init=False, factory=dict)

    def seen(self, rows: range, groups: int, device: torch.device) -> tuple[slice, Tensor | None]:
        """Return which keys any of the rows sees, and which of them each row of each group sees, bool
        [groups * rows, keys]; None for all."""
        lowest = 0 if self.window is None else max(0, self.start + rows.start - self.window + 1 - self.first)
        keys = slice(lowest, self.start + rows.stop - self.first)
        if len(rows) == 1:
            return keys, None
        name = (rows.start, rows.stop, groups)
        if name not in self._masks:
            self._masks.clear()  # all layers ask for the same rows in turn; only a short reading has one part
            positions = torch.arange(self.first + keys.start, self.first + keys.stop, device=device)
            own = torch.arange(self.start + rows.start, self.start + rows.stop, device=device)[:, None]
            mask = positions <= own
            if self.window is not None:
                mask &= positions > own - self.window
            self._masks[name] = mask.repeat(groups, 1)
        return keys, self._masks[name]


def attend(
    query: Tensor, keys: Tensor, values: Tensor, scale: float | None, causal: CausalRows | None = None
) -> Tensor:
    """Return the mixed values [rows, heads, width] of queries [heads, rows, width].

    keys, values: [key heads, seen, width], with at most as many heads as the queries
    causal: which keys a row sees; None for all
    """
    heads, rows, width = query.shape
    if not rows:
        return query.transpose(0, 1)
    groups = heads // keys.shape[0]
    grouped = query.reshape(keys.shape[0], groups, rows, width)
    mixed = []
    step = _rows_at_once(heads, keys.shape[1], causal)
    for start in range(0, rows, step):
        part = range(start, min(start + step, rows))
        visible, mask = (slice(None), None) if causal is None else causal.seen(part, groups, query.device)
        queries = grouped[:, :, part.start : part.stop].flatten(1, 2)
        attended = F.scaled_dot_product_attention(
            queries[None], keys[None, :, visible], values[None, :, visible], mask, scale=scale
        )
        mixed.append(attended.view(heads, len(part), width))
    return torch.cat(mixed, dim=1).transpose(0, 1)


def _rows_at_once(heads: int, keys: int, causal: CausalRows | None) -> int:
    """Return how many rows have at most MOST_SCORES scores; at least one."""
    if causal is not None and causal.window is not None and keys > 2 * causal.window:
        return max(1, min(causal.window, MOST_SCORES // (heads * 2 * causal.window)))
    return max(1, MOST_SCORES // (heads * max(1, keys)))
