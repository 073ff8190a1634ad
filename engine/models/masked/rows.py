"""The rows of masked passes, and the tokens around a hole with their keys and values.

That cache is the dual cache of Fast-dLLM (arXiv 2505.22618). In a bidirectional network each committed token of the
middle changes the keys and values of all tokens around it. They are kept unchanged for some steps, so that a step costs
only the rows of the middle.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

import attrs
from torch import Tensor

from engine.fill.sampler import Query

_readings = count(1)


class SurroundingCache:
    """The tokens before and after a middle of at most `room` tokens.

    Live rows are computed in every step: the middle and, if `shifted`, the anchor before it, whose row predicts the
    first token of the middle. The other rows are fixed. `buffer` [layers, 2, heads, fixed + 1 + room, head width] holds
    the keys and values of the fixed rows and then of the live rows. It is None until the first step.
    """

    def __init__(self, before: Sequence[int], after: Sequence[int], shifted: bool, room: int) -> None:
        live = 1 if shifted and before else 0
        self.anchor = list(before[len(before) - live :])
        self.fixed = [*before[: len(before) - live], *after]
        self.before, self.room = len(before), room
        self.buffer: Tensor | None = None
        self.length = 0
        """The length of the middle that the suffix keys in the buffer are rotated for."""
        self.reading = 0
        """The number of the reading that made the fixed rows in the buffer. Numbers are unique over all caches."""

    def renew(self) -> None:
        """Take a new reading number, because the fixed rows in the buffer are about to change."""
        self.reading = next(_readings)

    def positions(self, length: int) -> tuple[list[int], list[int]]:
        """Return the positions of the fixed rows and of the live rows, around a middle of `length` tokens."""
        first = self.before - len(self.anchor)
        after = self.before + length
        return [*range(first), *range(after, after + len(self.fixed) - first)], [*range(first, after)]

    @property
    def suffix(self) -> slice:
        """The rows of the buffer that move when the length of the middle changes."""
        return slice(self.before - len(self.anchor), len(self.fixed))

    def row_of(self, position: int, shifted: bool) -> int:
        """Return the live row that predicts the token at `position` of the middle.

        Without a token before the middle there is no anchor. If logits are shifted, the first row of the middle then
        predicts two tokens, as in Dream's released sampling.
        """
        return position + len(self.anchor) - 1 if shifted and (self.anchor or position) else position


@attrs.define
class MaskedPass:
    """Implements interface.Pass: one or several `middles` in the surroundings of one hole.

    With `reads_surrounding` the pass computes the fixed rows too, around the first middle. Other middles, of other
    lengths, see the same keys and values, moved to their own suffix positions. `wanted` are indexes into the live rows,
    concatenated over the middles.
    """

    surrounding: SurroundingCache
    middles: list[list[int]]
    wanted: Sequence[int]
    reads_surrounding: bool
    query: Query = attrs.field(factory=Query)

    @property
    def rows(self) -> int:
        live = sum(len(self.surrounding.anchor) + len(middle) for middle in self.middles)
        return live + (len(self.surrounding.fixed) if self.reads_surrounding else 0)


@attrs.define
class MiddleSegment:
    """The rows of one middle in the batch. `fixed` counts the fixed rows before them, 0 if they are not read.

    If `moves_suffix`, the buffer's suffix keys are for another length, so this middle needs a moved copy of them.
    """

    surrounding: SurroundingCache
    tokens: list[int]
    positions: list[int]
    length: int
    fixed: int
    moves_suffix: bool


def segments_of(item: MaskedPass) -> list[MiddleSegment]:
    """Return the segments of a pass, in the order of its middles."""
    segments: list[MiddleSegment] = []
    surrounding = item.surrounding
    for index, middle in enumerate(item.middles):
        fixed, live = surrounding.positions(len(middle))
        reads = item.reads_surrounding and index == 0
        segments.append(
            MiddleSegment(
                surrounding,
                tokens=[*(surrounding.fixed if reads else ()), *surrounding.anchor, *middle],
                positions=[*(fixed if reads else ()), *live],
                length=len(middle),
                fixed=len(surrounding.fixed) if reads else 0,
                moves_suffix=index > 0,
            )
        )
    return segments
