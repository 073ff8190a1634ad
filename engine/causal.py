"""Filling a hole with causal passes: left to right, one token a pass, and by drafts that the next pass verifies."""

from torch import Tensor

from engine.filling import Hole
from engine.models.base import Context
from engine.sampling.proposal import Drawing, Proposal
from engine.stream_filling import StreamFamily, StreamFilling, StreamPass

LIKELY = 0.3
"""How likely all of a draft must be right, by the model's own account."""
DRAFT_ROWS = 8
"""Masks behind a draft: few drafts that are likelier right than LIKELY would be longer."""


class LeftToRight(StreamFilling):
    """One token a pass: the twin that every figure of the other ways is compared with."""

    def next_pass(self) -> StreamPass:
        unread = self.unread()
        return StreamPass(self.context, unread, [], [len(unread) - 1])

    def absorb(self, found: Tensor, steps_left: int) -> None:
        self.steps += 1
        proposal = self.drawing.propose(found, [len(self.tokens)])
        self.commit(proposal.tokens[0], proposal.confidence[0])


class DraftAndVerify(StreamFilling):
    """Left-to-right's answer in fewer passes: every pass checks the last draft and denoises the next one.

    The drafted tokens are read causally, and the row of each predicts the token after it: as long as the two agree the
    draft is what left to right would have written, and the first prediction that differs is right as well. Behind the
    draft stands a canvas of masks, in which the same pass guesses what follows once all of the draft has been accepted
    (after speculative decoding, arXiv 2211.17192, and TiDAR, arXiv 2511.08923). A pass without a draft predicts its
    first token exactly as left to right would, from the anchor's own row, so every pass commits a token at the least.

    A draft is cut where all of it is no longer LIKELY: a rejected draft costs the next one, which was guessed on top of
    it.
    """

    def __init__(self, family: StreamFamily, context: Context, hole: Hole, drawing: Drawing) -> None:
        super().__init__(family, context, hole, drawing)
        self._draft: list[int] = []
        self._ended = False

    def next_pass(self) -> StreamPass:
        unread = self.unread()
        at = len(unread) - 1
        append = [*unread, *self._draft]
        room = self.hole.max_tokens - len(self.tokens) - len(self._draft) - 1
        masks = [] if self._ended else [self._stream.mask] * min(DRAFT_ROWS, room)
        return StreamPass(self.context, append, masks, list(range(at, len(append) + len(masks))))

    def absorb(self, found: Tensor, steps_left: int) -> None:
        self.steps += 1
        at, draft = len(self.tokens), self._draft
        proposal = self.drawing.propose(found, list(range(at, at + len(found))))
        anchored = len(self.context.tokens) - len(draft)
        accepted = self.verify(draft, proposal)
        self.context.truncate(anchored + accepted)
        self._draft, self._ended = [], False
        if self.finish is None and accepted == len(draft):
            self._guess(proposal.part(len(draft) + 1, len(found)))

    def _guess(self, proposal: Proposal) -> None:
        """Take the next draft from the canvas: as much of it as is LIKELY."""
        likely = 1.0
        for token, sure in zip(proposal.tokens, proposal.confidence, strict=True):
            likely *= sure
            if likely < LIKELY:
                break
            if self.ends(token):
                self._ended = True
                break
            self._draft.append(token)

    def canvas(self) -> list[str | None]:
        return [*super().canvas(), *([None] * (len(self._draft) if self.finish is None else 0))]
