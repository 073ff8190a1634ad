"""A hole being filled in place: a middle of masks between its sides, committed in any order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import Tensor

from engine.fill.commit_rules import CommitRule, min_commits
from engine.fill.filling import Filling, Hole
from engine.fill.interface import Context
from engine.fill.sampler import Proposal, Sampler
from engine.models.masked.rows import MaskedPass
from engine.protocol.messages import Finish

if TYPE_CHECKING:
    from engine.models.masked.model import MaskedModel

_UNBOUNDED = 1 << 30


class Canvas(Filling):
    """The masked-diffusion loop; how long the middle is, a subclass says. A place is None where it is masked.

    Whatever ends the fill cuts the middle where it is committed: the suffix moves up to it.
    """

    def __init__(
        self, family: MaskedModel, context: Context, hole: Hole, sampler: Sampler, rule: CommitRule, steps: int
    ) -> None:
        super().__init__(family, context, hole, sampler)
        self._family, self._rule, self._steps = family, rule, steps or _UNBOUNDED
        layout = hole.layout
        self._longest = max(1, min(hole.max_tokens, family.trait.window - len(layout.before) - len(layout.after)))
        self._sides = family.sides(layout, self._longest)
        self._places: list[int | None] = []
        self._sure: list[float] = []
        self._ended = False

    def _masks(self) -> list[int]:
        return [at for at, token in enumerate(self._places) if token is None]

    def next_pass(self) -> MaskedPass:
        mask, shifted = self._family.trait.marks.mask, self._family.trait.shifted
        shown = [mask if token is None else token for token in self._places]
        wanted = [self._sides.row_of(at, shifted) for at in self._masks()]
        return MaskedPass(self._sides, [shown], wanted, self._reads_sides())

    def _reads_sides(self) -> bool:
        return self.steps % self._family.refresh_steps == 0

    def absorb(self, found: Tensor, steps_left: int) -> None:
        masks = self._masks()
        self._settle(self.sampler.propose(found, masks), masks, self._left(steps_left, self.next_pass()))

    def _left(self, steps_left: int, taken: MaskedPass) -> int:
        """Return how many steps are left, the one just taken included, in the budget of time and of steps."""
        if taken.reads_surrounding:
            steps_left = self._family.steps_left(steps_left, taken.rows, taken.rows - len(self._sides.fixed))
        return max(1, min(steps_left, self._steps - self.steps))

    def _settle(self, proposal: Proposal, masks: list[int], steps_left: int) -> None:
        """Commit what the rule believes in, of what comes before the first end that is proposed."""
        self.steps += 1
        stop = self.until_end(proposal.tokens)
        chosen = self._rule(proposal.part(0, stop), min_commits(stop, steps_left))
        self._place({masks[rank]: (proposal.tokens[rank], proposal.confidence[rank]) for rank in chosen})
        self._cut()
        if None not in self._places:
            full = not self._ended and len(self._places) >= self.hole.max_tokens
            self.close("canvas full" if full else "complete")

    def _place(self, committed: dict[int, tuple[int, float]]) -> None:
        """Put tokens with their confidences at their places."""
        for at, (token, sure) in committed.items():
            self._places[at], self._sure[at] = token, sure

    def _cut(self) -> None:
        for at, token in enumerate(self._places):
            if token is not None and self.ends(token):
                del self._places[at:], self._sure[at:]
                self._ended = True
                return

    def ends(self, token: int) -> bool:
        return super().ends(token) or token in self._family.trait.marks.padding

    def close(self, finish: Finish) -> None:
        """End with what is committed up to the first gap."""
        if self.finish is None:
            gapless = next(iter(self._masks()), len(self._places))
            self.tokens = [token for token in self._places[:gapless] if token is not None]
            self.confidence = self._sure[:gapless]
        super().close(finish)

    def canvas(self) -> list[str | None]:
        if self.finish is not None:
            return super().canvas()
        return [None if token is None else self.family.texts_of([token])[0] for token in self._places]
