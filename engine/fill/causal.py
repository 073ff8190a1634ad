"""Filling with causal passes: left to right, one token a pass, or by drafts that the next pass verifies."""

from collections.abc import Iterable, Iterator

from engine.fill.filling import BaseFilling
from engine.fill.interface import FillTask
from engine.fill.predictions import DraftRows, PassResult, Predictions, Query
from engine.fill.stream import Stream, StreamModel, StreamPass

MIN_DRAFT_PROBABILITY = 0.3
"""The least probability that a whole draft is right, by the model's own account."""
MIN_LINKED_PROBABILITY = 0.1
"""The same for drafts chosen through a link (models/embedded/link.py). They cost little compared with a pass."""
DRAFT_ROWS = 8
"""The most masks after a draft, and tokens that the memory drafts. Few drafts that are likely enough are longer."""


class LeftToRight(BaseFilling):
    """One token a pass: the twin that every figure of the other strategies is compared with."""

    def __init__(self, model: StreamModel, task: FillTask) -> None:
        super().__init__(model, task)
        self._stream = Stream(model, task)

    def next_pass(self) -> StreamPass:
        return self._stream.next_token_pass(self.tokens, self.unwritten)

    def absorb(self, result: PassResult, steps_left: int) -> None:
        self.steps += 1
        known = len(self.tokens)
        self.commit_next(self._stream.mixed(result.predictions))
        self.sources += self._stream.sources(self.tokens[known:], self.confidence[known:])


class DraftAndVerify(BaseFilling):
    """The answer of left to right in fewer passes: every pass verifies the last draft and denoises the next one.

    Drafted tokens are read causally, and the row of each predicts the token after it. While the two agree, the draft is
    what left to right would have written; the first prediction that differs is right as well. After the draft comes a
    canvas of masks, where the same pass guesses what follows if the whole draft is accepted (speculative decoding,
    arXiv 2211.17192; TiDAR, arXiv 2511.08923). A pass without a draft predicts its first token from the anchor's own
    row, exactly as left to right would. So every pass commits at least one token.

    A draft is cut where it is no longer likely to be right as a whole: a rejected draft also costs the next one, which
    was guessed on top of it. If the model has a link, tokens are chosen one after the other and fit each other better.
    There are no drafts until all typed text is written. A model whose passes of one row cost little has no canvas here,
    and drafts only what the memory knows.
    """

    def __init__(self, model: StreamModel, task: FillTask) -> None:
        super().__init__(model, task)
        self._draft_rows = model.draft_rows
        self._stream, self._mask, self._context = Stream(model, task), model.mask, task.context
        self._draft: list[int] = []
        self._draft_ends = False

    def next_pass(self) -> StreamPass:
        unread = self._stream.unread(self.tokens)
        append = [*unread, *self._draft]
        room = self.task.bounds.max_tokens - len(self.tokens) - len(self._draft) - 1
        masks = [] if self._draft_ends else [self._mask] * min(self._draft_rows, room)
        wanted = range(len(unread) - 1, len(append) + len(masks))
        query = self._stream.query(self.tokens, self.unwritten, len(wanted), self._draft)
        return StreamPass(self._context, append, masks, wanted, query)

    def absorb(self, result: PassResult, steps_left: int) -> None:
        self.steps += 1
        position, draft = len(self.tokens), self._draft
        predictions = self._stream.mixed(result.predictions)
        verified = len(draft) + 1
        proposal = self.task.sampler.propose(predictions.part(0, verified), range(position, position + verified))
        anchored = len(self._context.tokens) - len(draft)
        accepted = self.verify(draft, proposal)
        self.sources += self._stream.sources(self.tokens[position:], self.confidence[position:])
        self._context.truncate(anchored + accepted)
        self._draft, self._draft_ends = [], False
        if self.finish is not None or self.unwritten or accepted < len(draft):
            return
        self._take(self._remembered())
        if self._draft or self._draft_ends:
            return
        if result.draft_rows is None:
            self._take(self._unlinked(predictions.part(verified, len(predictions))), MIN_DRAFT_PROBABILITY)
        else:
            rows = range(verified, len(predictions))
            self._take(self._linked(result.draft_rows, rows), MIN_LINKED_PROBABILITY)

    def _remembered(self) -> Iterable[tuple[int, float]]:
        """Return how known code went on after the same tokens, with probabilities; nothing without a memory."""
        memory, room = self.task.memory, self.task.bounds.max_tokens - len(self.tokens) - 1
        return [] if memory is None else memory.continuation(self._stream.history(self.tokens), min(room, DRAFT_ROWS))

    def _unlinked(self, canvas: Predictions) -> Iterator[tuple[int, float]]:
        """Return the tokens of the canvas with their probabilities, each guessed without its neighbours."""
        position = len(self.tokens)
        proposal = self.task.sampler.propose(canvas, range(position, position + len(canvas)))
        return zip(proposal.tokens, proposal.confidence, strict=True)

    def _linked(self, draft_rows: DraftRows, rows: range) -> Iterator[tuple[int, float]]:
        """Yield the tokens of the canvas with their probabilities, each guessed after the one before it is chosen."""
        position, stream = len(self.tokens), self._stream.tokens(self.tokens)
        query = Query(self.task.sampler.top)
        for place, row in enumerate(rows):
            proposal = self.task.sampler.propose(draft_rows.after(row, stream, query), [position + place])
            yield proposal.tokens[0], proposal.confidence[0]
            stream.append(proposal.tokens[0])

    def _take(self, guesses: Iterable[tuple[int, float]], least: float = MIN_DRAFT_PROBABILITY) -> None:
        """Take the next draft: guesses up to an end, while the probability that all are right is at least `least`."""
        probability = 1.0
        for token, confidence in guesses:
            probability *= confidence
            if probability < least:
                break
            if self.ends(token):
                self._draft_ends = True
                break
            self._draft.append(token)

    def canvas(self) -> list[str | None]:
        return [*super().canvas(), *([None] * (len(self._draft) if self.finish is None else 0))]
