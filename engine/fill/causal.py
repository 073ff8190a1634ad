"""Filling a hole with causal passes: left to right, one token a pass, and by drafts that the next pass verifies."""

from collections.abc import Iterable, Iterator

from torch import Tensor

from engine.fill.filling import Hole
from engine.fill.interface import Context
from engine.fill.sampler import Sampler
from engine.fill.stream import Linked, StreamFilling, StreamModel, StreamPass

LIKELY = 0.3
"""How likely all of a draft must be right, by the model's own account."""
LINKED_LIKELY = 0.1
"""The same for drafts that were chosen through a link (models/link.py), whose cost is little beside a pass's."""
DRAFT_ROWS = 8
"""Masks behind a draft: few drafts that are likelier right than LIKELY would be longer."""


class LeftToRight(StreamFilling):
    """One token a pass: the twin that every figure of the other ways is compared with."""

    def next_pass(self) -> StreamPass:
        return self.pass_for_next()

    def absorb(self, found: Tensor, steps_left: int) -> None:
        self.steps += 1
        self.write_next(found)


class DraftAndVerify(StreamFilling):
    """Left-to-right's answer in fewer passes: every pass checks the last draft and denoises the next one.

    The drafted tokens are read causally, and the row of each predicts the token after it: as long as the two agree the
    draft is what left to right would have written, and the first prediction that differs is right as well. Behind the
    draft stands a canvas of masks, in which the same pass guesses what follows once all of the draft has been accepted
    (after speculative decoding, arXiv 2211.17192, and TiDAR, arXiv 2511.08923). A pass without a draft predicts its
    first token exactly as left to right would, from the anchor's own row, so every pass commits a token at the least.

    A draft is cut where all of it is no longer LIKELY: a rejected draft costs the next one, which was guessed on top of
    it. Where the family has a link, its tokens are chosen one after the other, and fit each other better. Before all
    that is typed is written there are no drafts.
    """

    def __init__(self, family: StreamModel, context: Context, hole: Hole, sampler: Sampler) -> None:
        super().__init__(family, context, hole, sampler)
        self._draft: list[int] = []
        self._ended = False
        self._asked = StreamPass(context, [], [], [])

    def next_pass(self) -> StreamPass:
        unread = self.unread()
        at = len(unread) - 1
        append = [*unread, *self._draft]
        room = self.hole.max_tokens - len(self.tokens) - len(self._draft) - 1
        masks = [] if self._ended else [self._stream.mask] * min(DRAFT_ROWS, room)
        wanted = range(at, len(append) + len(masks))
        self._asked = StreamPass(self.context, append, masks, wanted, compatible_tokens=self.compatible_tokens())
        return self._asked

    def absorb(self, found: Tensor, steps_left: int) -> None:
        self.steps += 1
        self.agree(found)
        at, draft, linked = len(self.tokens), self._draft, self._asked.linked
        read = found[: len(draft) + 1]
        proposal = self.sampler.propose(read, list(range(at, at + len(read))))
        anchored = len(self.context.tokens) - len(draft)
        accepted = self.verify(draft, proposal)
        self.context.truncate(anchored + accepted)
        self._draft, self._ended = [], False
        if self.finish is not None or self.unwritten or accepted < len(draft):
            return
        if linked is None:
            self._take(self._alone(found[len(read) :]), LIKELY)
        else:
            self._take(self._linked(linked, range(len(read), len(found))), LINKED_LIKELY)

    def _alone(self, canvas: Tensor) -> Iterator[tuple[int, float]]:
        """Return the canvas's tokens, each guessed without its neighbours, and how sure each is."""
        at = len(self.tokens)
        proposal = self.sampler.propose(canvas, list(range(at, at + len(canvas))))
        return zip(proposal.tokens, proposal.confidence, strict=True)

    def _linked(self, linked: Linked, rows: range) -> Iterator[tuple[int, float]]:
        """Return the canvas's tokens, each guessed once the one before it is taken, and how sure each is."""
        at, stream = len(self.tokens), self.stream()
        for place, row in enumerate(rows):
            proposal = self.sampler.propose(linked.after(row, stream), [at + place])
            yield proposal.tokens[0], proposal.confidence[0]
            stream.append(proposal.tokens[0])

    def _take(self, guesses: Iterable[tuple[int, float]], least: float) -> None:
        """Take the next draft: guesses up to an end, as long as all of them are right with a chance of `least`."""
        likely = 1.0
        for token, sure in guesses:
            likely *= sure
            if likely < least:
                break
            if self.ends(token):
                self._ended = True
                break
            self._draft.append(token)

    def canvas(self) -> list[str | None]:
        return [*super().canvas(), *([None] * (len(self._draft) if self.finish is None else 0))]
