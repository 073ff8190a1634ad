"""Filling a hole as DreamOn does: a mask may become two, or vanish, so the middle finds its length itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from engine.fill.commit_rules import CommitRule
from engine.fill.filling import Hole
from engine.fill.interface import Context
from engine.fill.sampler import NEVER, Sampler
from engine.models.masked.canvas import Canvas

if TYPE_CHECKING:
    from engine.models.masked.model import MaskedModel

START = 8
"""Masks at first: half of all fills of one line have at most 7 tokens."""


class Expanding(Canvas):
    """Committing <expand> makes two masks of one; committing the end-of-text token deletes the place, and with it all
    masks behind it, as in DreamOn's released evaluation (its pad_eos_to_right): the middle needs no more tokens there.

    A middle is never longer than `max_tokens`, and as many expansions is all there are, so that a fill ends though it
    expands and deletes in turn. In the last step of a budget nothing expands.
    """

    def __init__(
        self, family: MaskedModel, context: Context, hole: Hole, sampler: Sampler, rule: CommitRule, steps: int
    ) -> None:
        super().__init__(family, context, hole, sampler, rule, steps)
        length = min(START, self._longest)
        self._places, self._sure = [None] * length, [0.0] * length
        self._expansions = self._longest

    def absorb(self, found: Tensor, steps_left: int) -> None:
        if self._room() == 0 or self._left(steps_left, self.next_pass()) == 1:
            with torch.inference_mode():
                found[:, self._family.trait.marks.expand] = NEVER
        super().absorb(found, steps_left)

    def _room(self) -> int:
        return min(self._expansions, self._longest - len(self._places))

    def ends(self, token: int) -> bool:
        """Tell whether the fill stops at `token`: only at a newline, in a hole in one line."""
        return self.hole.extent == "line" and self.family.breaks_line(token)

    def _place(self, committed: dict[int, tuple[int, float]]) -> None:
        marks, room = self._family.trait.marks, self._room()
        places: list[int | None] = []
        sure: list[float] = []
        deleted = False
        for at, (place, known) in enumerate(zip(self._places, self._sure, strict=True)):
            token, confidence = committed.get(at, (place, known))
            if token == marks.end or (token is None and deleted):
                deleted = True
                continue
            if token == marks.expand and room > 0:
                room -= 1
                self._expansions -= 1
                places.append(None)
                sure.append(0.0)
            places.append(None if token == marks.expand else token)
            sure.append(confidence)
        self._places, self._sure = places, sure
