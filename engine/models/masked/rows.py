"""The rows of masked passes, one middle's behind the other's."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from engine.fill.predictions import Query
from engine.models.masked.sides import SurroundingCache


@attrs.define
class MaskedPass:
    """Implements models.base.Pass: middles shown between one hole's sides.

    With `reads_sides` the sides are read around the first of the `middles`; the others, of other lengths, look at the
    same keys and values, moved to where the suffix stands for them. `wanted` numbers the live rows, one middle's behind
    the other's.
    """

    sides: SurroundingCache
    middles: list[list[int]]
    wanted: Sequence[int]
    reads_sides: bool
    query: Query = attrs.field(factory=Query)

    @property
    def rows(self) -> int:
        live = sum(len(self.sides.anchor) + len(middle) for middle in self.middles)
        return live + (len(self.sides.fixed) if self.reads_sides else 0)


@attrs.define
class MiddleSegment:
    """One middle's rows in the batch, with the fixed ones before them where it reads those.

    `aside` tells whether the sides stand for another length than this middle's, so that a copy of them must be moved.
    """

    sides: SurroundingCache
    tokens: list[int]
    positions: list[int]
    length: int
    fixed: int
    aside: bool


def segments_of(item: MaskedPass) -> list[MiddleSegment]:
    """Return the segments of a pass, in the order of its middles."""
    segments: list[MiddleSegment] = []
    sides = item.sides
    for number, middle in enumerate(item.middles):
        fixed, live = sides.positions(len(middle))
        read = item.reads_sides and number == 0
        tokens = [*(sides.fixed if read else ()), *sides.anchor, *middle]
        positions = [*(fixed if read else ()), *live]
        segments.append(
            MiddleSegment(sides, tokens, positions, len(middle), len(sides.fixed) if read else 0, number > 0)
        )
    return segments
