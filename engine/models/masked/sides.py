"""What stands around one hole, with its keys and values: the dual cache of Fast-dLLM (arXiv 2505.22618).

A bidirectional network reads the sides anew with every token that is committed in the middle. Between two readings
their keys and values are kept as they were, and a step costs the rows of the middle alone.
"""

from collections.abc import Sequence
from itertools import count

import torch
from torch import Tensor

_readings = count(1)


class SurroundingCache:
    """The tokens before and after a middle that holds at most `room` tokens.

    All rows that are computed in every step are live: the middle and, where `shifted`, the anchor before it, whose row
    predicts the middle's first token. The others are fixed. `buffer` [layers, 2, heads, fixed + 1 + room, head width]
    holds the keys and values of the fixed rows, then those of the live ones; None until the sides have been read.
    """

    def __init__(self, before: Sequence[int], after: Sequence[int], shifted: bool, room: int) -> None:
        live = 1 if shifted and before else 0
        self.anchor = list(before[len(before) - live :])
        self.fixed = [*before[: len(before) - live], *after]
        self.before, self.room = len(before), room
        self.buffer: Tensor | None = None
        self.length = 0
        """How long the middle is behind which the suffix stands, in the buffer's keys."""
        self.reading = 0
        """Which reading the buffer's fixed rows are of; no two readings of any sides have the same number."""

    def renew(self) -> None:
        """Note that the fixed rows in the buffer are about to change."""
        self.reading = next(_readings)

    def positions(self, length: int) -> tuple[list[int], list[int]]:
        """Return the positions of the fixed rows and of the live rows, around a middle of `length` tokens."""
        first = self.before - len(self.anchor)
        behind = self.before + length
        return [*range(first), *range(behind, behind + len(self.fixed) - first)], [*range(first, behind)]

    @property
    def suffix(self) -> slice:
        """The rows of the buffer that move when the middle's length changes."""
        return slice(self.before - len(self.anchor), len(self.fixed))

    def row_of(self, position: int, shifted: bool) -> int:
        """Return the live row that predicts the middle's token `position`.

        Without anything before the middle, its first row predicts two tokens where logits are shifted, as in Dream's
        released sampling.
        """
        return position + len(self.anchor) - 1 if shifted and (self.anchor or position) else position


def turned(keys: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    """Return keys or queries [..., head width] turned by rotary embeddings that broadcast to them."""
    first, second = keys.chunk(2, dim=-1)
    return keys * cosine + torch.cat((-second, first), dim=-1) * sine
