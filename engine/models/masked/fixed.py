"""Filling a hole with a family whose masks neither multiply nor vanish: several lengths are tried, the best is kept."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from engine.fill.commit_rules import CommitRule
from engine.fill.filling import Hole
from engine.fill.interface import Context
from engine.fill.sampler import Proposal, Sampler
from engine.models.masked.canvas import Canvas
from engine.models.masked.rows import MaskedPass
from engine.protocol.messages import Extent

if TYPE_CHECKING:
    from engine.models.masked.model import MaskedModel

LENGTHS: dict[Extent, tuple[int, ...]] = {"line": (8, 4, 16, 32), "lines": (16, 8, 32, 64)}
"""Tokens of the middles that are tried. The sides are read around the first, the likeliest: half of all fills of one
line have at most 7 tokens, nine of ten at most 16."""


class FixedLength(Canvas):
    """The first step is taken at every length at once, and goes on with the length that fits best.

    What fits is told by the mean log probability of the proposals up to the first end: it is the same scale for all
    lengths, and one place that nothing fits, as in a middle too short, weighs in it, which a mean of confidences would
    let its neighbours outvote. A middle that ends before it begins comes last.
    """

    def __init__(
        self, family: MaskedModel, context: Context, hole: Hole, sampler: Sampler, rule: CommitRule, steps: int
    ) -> None:
        super().__init__(family, context, hole, sampler, rule, steps)
        self._lengths = list(dict.fromkeys(min(length, self._longest) for length in LENGTHS[hole.extent]))

    def next_pass(self) -> MaskedPass:
        if self.steps:
            return super().next_pass()
        trait, sides = self._family.trait, self._sides
        wanted: list[int] = []
        start = 0
        for length in self._lengths:
            wanted += [start + sides.row_of(at, trait.shifted) for at in range(length)]
            start += len(sides.anchor) + length
        return MaskedPass(sides, [[trait.marks.mask] * length for length in self._lengths], wanted, True)

    def absorb(self, found: Tensor, steps_left: int) -> None:
        if self.steps:
            super().absorb(found, steps_left)
            return
        proposals = [self.sampler.propose(part, list(range(len(part)))) for part in torch.split(found, self._lengths)]
        best = max(proposals, key=self._fit)
        left = self._left(steps_left, self.next_pass())
        self._places, self._sure = [None] * len(best.tokens), [0.0] * len(best.tokens)
        self._settle(best, self._masks(), left)

    def _fit(self, proposal: Proposal) -> tuple[bool, float]:
        stop = self.until_end(proposal.tokens)
        sure = proposal.confidence[:stop]
        empty = self.ends(proposal.tokens[0])
        return not empty, sum(math.log(max(each, 1e-12)) for each in sure) / stop
