"""The rows of masked passes, concatenated over all middles."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from engine.fill.sampler import Query
from engine.models.masked.surrounding_cache import SurroundingCache


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
