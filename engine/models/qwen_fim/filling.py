"""Filling a hole left to right, a verified draft at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
from torch import Tensor

from engine.fill.filling import Filling, Hole
from engine.fill.interface import Context
from engine.fill.sampler import Sampler
from engine.fill.stream import StreamPass
from engine.models.qwen_fim.drafter import Unfinished

if TYPE_CHECKING:
    from engine.models.qwen_fim.drafting import Drafting
    from engine.models.qwen_fim.model import QwenFimModel


@attrs.define
class DraftedPass(StreamPass):
    """Reads what the context lacks up to the anchor, and behind it a draft that the family adds as it runs the pass."""

    unfinished: Unfinished
    draft: list[int] = attrs.field(factory=list)

    def add(self, draft: list[int]) -> None:
        """Take a draft in place of the one before: a batch that fails is run again."""
        unread = self.append[: len(self.append) - len(self.draft)]
        self.draft, self.append = draft, [*unread, *draft]
        self.wanted = range(len(unread) - 1, len(self.append))


class DraftedFilling(Filling):
    """The same answer as left to right, in as many passes as the drafts need.

    Every pass reads the last committed token and a draft behind it, causally. Each row predicts the token after it: as
    long as draft and predictions agree, the draft is what would have been written without it, and the first prediction
    that differs is right as well (speculative decoding, arXiv 2211.17192; with a diffusion model as drafter: DFlash).
    Without a draft a pass commits one token. Drawn tokens are verified as greedy ones are, because the noise of a
    position is the same in every pass.
    """

    def __init__(
        self,
        family: QwenFimModel,
        context: Context,
        hole: Hole,
        sampler: Sampler,
        unfinished: Unfinished,
        drafting: Drafting | None,
    ) -> None:
        super().__init__(family, context, hole, sampler)
        self._marks, self._unfinished, self._drafting = family.marks, unfinished, drafting
        self._pass: DraftedPass

    def ends(self, token: int) -> bool:
        return token in self._marks.ends or super().ends(token)

    def next_pass(self) -> DraftedPass:
        stream = [*self.hole.layout.context, self._marks.middle, *self.tokens]
        unread = stream[len(self.context.tokens) :]
        room = self.hole.max_tokens - len(self.tokens) - 1
        self._unfinished.text = text = "".join(self.family.texts_of(self.tokens))
        self._unfinished.length = min(room, self._drafting.next_length(text)) if self._drafting is not None else 0
        self._pass = DraftedPass(self.context, unread, [], [len(unread) - 1], self._unfinished)
        return self._pass

    def absorb(self, found: Tensor, steps_left: int) -> None:
        self.steps += 1
        at, draft = len(self.tokens), self._pass.draft
        proposal = self.sampler.propose(found, list(range(at, at + len(found))))
        anchored = len(self.context.tokens) - len(draft)
        accepted = self.verify(draft, proposal)
        self.context.truncate(anchored + accepted)
        foreseen = not draft and self.finish is not None  # an empty draft says that nothing follows
        if self._drafting is not None and self._unfinished.length and not foreseen:
            self._drafting.learn(len(draft), accepted)
