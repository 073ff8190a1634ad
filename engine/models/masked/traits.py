"""What the fills of a masked model need to know of it."""

import attrs

from engine.fill.interface import Layout
from engine.models.masked.surrounding_cache import SurroundingCache
from engine.models.stock.family import MaskedTokens
from engine.schedule.pass_timer import PassTimer

REFRESH_STEPS = 8
"""Prefix and suffix are read in the first of this many steps, and cached for the others. Most fills of a line take
fewer steps. Fast-dLLM reads them again after each block of 32 tokens."""


@attrs.frozen
class MaskedTraits:
    """`shifted`: the row of a position predicts the token after it. `window`: tokens, the middle included."""

    special: MaskedTokens
    shifted: bool
    window: int
    refresh_steps: int = REFRESH_STEPS
    timer: PassTimer = attrs.field(factory=PassTimer)

    def surroundings(self, layout: Layout, room: int) -> SurroundingCache:
        """Return what surrounds a middle of at most `room` tokens."""
        return SurroundingCache(layout.before, layout.after, self.shifted, room)

    def steps_left(self, steps_left: int, taken_rows: int, next_rows: int) -> int:
        """Return for how many steps of `next_rows` rows there is time, where there is for `steps_left` of `taken_rows`.

        A step that reads prefix and suffix costs many times what the next ones cost. A budget counted in such steps
        would commit doubtful tokens in a hurry.
        """
        cheaper = self.timer.expect(taken_rows) / max(self.timer.expect(next_rows), 1e-6)
        return 1 + int((steps_left - 1) * max(1.0, cheaper))
