"""Filling a hole by denoising: a canvas of masks that see both sides and each other, committed in any order."""

from torch import Tensor

from engine.fill.commit_rules import CommitRule, min_commits
from engine.fill.filling import Hole
from engine.fill.interface import Context
from engine.fill.sampler import Sampler
from engine.fill.stream import StreamFilling, StreamModel, StreamPass
from engine.protocol.messages import Finish


class Denoising(StreamFilling):
    """The masked-diffusion loop over a canvas that slides along: of half of `width` positions at first, of all of them
    once no end is in sight.

    The canvas stands behind the anchor. Its first position is predicted by the anchor's own row, exactly as left to
    right would, so it is committed in every step, with whatever else the rule believes in. Committed tokens without a
    gap before them move into the context, and the canvas grows at its other end until an end is committed in it: a long
    hole needs no second canvas and an unknown length no guess. After every `cycle` steps the whole canvas is committed.

    Masks know nothing of what is typed at the cursor, so before the first step that is written left to right.
    """

    def __init__(
        self,
        family: StreamModel,
        context: Context,
        hole: Hole,
        sampler: Sampler,
        rule: CommitRule,
        width: int,
        cycle: int,
    ) -> None:
        super().__init__(family, context, hole, sampler)
        self._rule, self._cycle, self._ended = rule, cycle, False
        self._width, self._widest = max(1, width // 2), width
        self._denoised = 0
        self._canvas: list[int | None] = []
        self._sure: list[float] = []
        self._slide()

    def _slide(self) -> None:
        """Move the gapless start of the canvas to the committed tokens, cut it behind an end, and fill it up."""
        while self._canvas and self._canvas[0] is not None and self.finish is None:
            self.commit(self._canvas.pop(0) or 0, self._sure.pop(0))
        for at, token in enumerate(self._canvas):
            if token is not None and self.ends(token):
                del self._canvas[at + 1 :], self._sure[at + 1 :]
                self._ended = True
                break
        if not self._ended and not self.unwritten:
            missing = min(self._width, self.hole.max_tokens - len(self.tokens)) - len(self._canvas)
            self._canvas += [None] * missing
            self._sure += [0.0] * missing

    def _masked(self) -> list[int]:
        return [at for at, token in enumerate(self._canvas) if token is None]

    def next_pass(self) -> StreamPass:
        if self.unwritten:
            return self.pass_for_next()
        unread = self.unread()
        shown = [self._stream.mask if token is None else token for token in self._canvas[:-1]]
        return StreamPass(self.context, unread, shown, [len(unread) - 1 + at for at in self._masked()])

    def absorb(self, found: Tensor, steps_left: int) -> None:
        self.steps += 1
        if self.unwritten:
            self.write_next(found)
            self._slide()
            return
        steps_left = min(steps_left, self._cycle - self._denoised % self._cycle)
        self._denoised += 1
        masked = self._masked()
        proposal = self.sampler.propose(found, [len(self.tokens) + at for at in masked])
        stop = self.until_end(proposal.tokens)
        if not self._ended and not self.ends(proposal.tokens[stop - 1]):
            self._width = self._widest
        # The first one is committed anyway, and counts: were that number filled up elsewhere, every step would commit a
        # token that it does not believe in.
        others = self._rule(proposal.part(1, stop), min_commits(stop, steps_left) - 1)
        for rank in (0, *(other + 1 for other in others)):
            self._canvas[masked[rank]] = proposal.tokens[rank]
            self._sure[masked[rank]] = proposal.confidence[rank]
        self._slide()

    def close(self, finish: Finish) -> None:
        """End with the gapless start of the canvas, which is committed already."""
        self._canvas.clear()
        super().close(finish)

    def canvas(self) -> list[str | None]:
        shown = super().canvas()
        if self.finish is None:
            shown += [None if token is None else self.family.texts_of([token])[0] for token in self._canvas]
        return shown
