"""Filling a hole with causal passes: left to right, one token a pass, and by drafts that one causal pass verifies."""

from torch import Tensor

from engine.filling import Filling, Hole
from engine.models.base import Context, Family, Pass
from engine.sampling.proposal import Drawing, Proposal


class LeftToRight(Filling):
    """One token a pass: the twin that every figure of the other ways is compared with."""

    def next_pass(self) -> Pass:
        unread = self.unread()
        return Pass(self.context, unread, [], [len(unread) - 1])

    def absorb(self, logits: Tensor, steps_left: int) -> None:
        self.steps += 1
        proposal = self.drawing.propose(logits, [len(self.tokens)])
        self.commit(proposal.tokens[0], proposal.confidence[0])


class DraftAndVerify(Filling):
    """Left-to-right's answer in fewer passes: one denoising pass drafts a canvas, one causal pass checks it.

    The drafting pass predicts its first token exactly as left to right would, from the anchor's own row. The checking
    pass predicts the token after each drafted one: as long as the two agree the draft is what left to right would have
    written, and the first prediction that differs is right as well. So two passes commit two tokens at the least (after
    speculative decoding, arXiv 2211.17192, with the model's own canvas as the draft).
    """

    def __init__(self, family: Family, context: Context, hole: Hole, drawing: Drawing, width: int) -> None:
        super().__init__(family, context, hole, drawing)
        self._width, self._widest = max(1, width // 2), width
        self._draft: list[int] = []

    def next_pass(self) -> Pass:
        unread = self.unread()
        at = len(unread) - 1
        if self._draft:
            append = [*unread, *self._draft[:-1]]
            return Pass(self.context, append, [], list(range(at, len(append))))
        masks = [self.family.mask] * (min(self._width, self.hole.max_tokens - len(self.tokens)) - 1)
        return Pass(self.context, unread, masks, list(range(at, at + len(masks) + 1)))

    def absorb(self, logits: Tensor, steps_left: int) -> None:
        self.steps += 1
        at = len(self.tokens)
        proposal = self.drawing.propose(logits, list(range(at, at + len(logits))))
        if self._draft:
            self._verify(proposal)
            return
        self.commit(proposal.tokens[0], proposal.confidence[0])
        if self.finish is None:
            stop = self.until_end(proposal.tokens)
            self._draft = proposal.tokens[1:stop]
            if not self.ends(proposal.tokens[stop - 1]):
                self._width = self._widest

    def _verify(self, proposal: Proposal) -> None:
        anchored = len(self.context.tokens) - len(self._draft) + 1
        accepted = 0
        for drafted, token, sure in zip(self._draft, proposal.tokens, proposal.confidence, strict=True):
            self.commit(token, sure)
            if token != drafted or self.finish is not None:
                break
            accepted += 1
        self.context.truncate(anchored + accepted)
        self._draft = []

    def canvas(self) -> list[str | None]:
        return [*super().canvas(), *([None] * (len(self._draft) if self.finish is None else 0))]
