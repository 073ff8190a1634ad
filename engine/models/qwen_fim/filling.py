"""Filling a hole left to right, a verified draft at a time."""

import attrs

from engine.fill.filling import BaseFilling
from engine.fill.interface import HISTORY, FillMemory, FillTask, Model, RowMixture, expect_type
from engine.fill.sampler import PassResult, Query
from engine.fill.stream import StreamPass
from engine.models.qwen_fim.drafter import Unfinished
from engine.models.qwen_fim.drafting import Drafting
from engine.models.qwen_fim.special_tokens import FimTokens


@attrs.frozen
class VerifyingPass(StreamPass):
    """Reads a draft and predicts what follows each of its tokens. `mixture` has what is known of these rows."""

    mixture: RowMixture | None = attrs.field(kw_only=True)


@attrs.frozen
class DraftedPass(StreamPass):
    """Reads what the context lacks up to the anchor, and after it a draft that the model makes when it runs the pass.

    written: the last tokens before the one that the anchor predicts.
    """

    unfinished: Unfinished = attrs.field(kw_only=True)
    memory: FillMemory | None = attrs.field(kw_only=True)
    written: list[int] = attrs.field(kw_only=True)

    def with_draft(self, draft: list[int]) -> VerifyingPass:
        """Return the pass that also reads `draft` and predicts what follows each of its tokens."""
        append, query, mixture = [*self.append, *draft], self.query, None
        if self.memory is not None:
            known = [*self.written, *draft]
            ends = range(len(self.written), len(known) + 1)
            mixture = self.memory.rows([known[max(0, end - HISTORY) : end] for end in ends], ())
            query = attrs.evolve(query, named=mixture.named)
        wanted = range(len(self.append) - 1, len(append))
        return VerifyingPass(self.context, append, [], wanted, query, mixture=mixture)


@attrs.frozen(kw_only=True)
class DraftedResult(PassResult):
    """The predictions at the anchor and at each token of `draft`."""

    draft: list[int]


class DraftedFilling(BaseFilling):
    """The same answer as left to right, in as many passes as the drafts need.

    Every pass reads the last committed token and a draft after it, causally. Each row predicts the token after it:
    while draft and predictions agree, the draft is what would have been written without it, and the first prediction
    that differs is right as well (speculative decoding, arXiv 2211.17192; with a diffusion model as drafter: DFlash).
    Without a draft a pass commits one token. Drawn tokens are verified as greedy ones are, because the noise of a
    position is the same in every pass."""

    def __init__(
        self, model: Model, task: FillTask, special: FimTokens, unfinished: Unfinished, drafting: Drafting | None
    ) -> None:
        super().__init__(model, task)
        self._special, self._unfinished, self._drafting = special, unfinished, drafting

    def ends(self, token: int) -> bool:
        return token in self._special.ends or super().ends(token)

    def next_pass(self) -> DraftedPass:
        task = self.task
        stream = [*task.layout.context, self._special.middle, *self.tokens]
        unread = stream[len(task.context.tokens) :]
        room = task.bounds.max_tokens - len(self.tokens) - 1
        self._unfinished.text = text = "".join(self.vocabulary.texts_of(self.tokens))
        self._unfinished.length = min(room, self._drafting.next_length(text)) if self._drafting is not None else 0
        return DraftedPass(
            task.context,
            unread,
            [],
            [len(unread) - 1],
            Query(task.sampler.top),
            unfinished=self._unfinished,
            memory=task.memory,
            written=[*task.layout.above, *self.tokens][-HISTORY:],
        )

    def absorb(self, result: PassResult, steps_left: int) -> None:
        self.steps += 1
        position, draft = len(self.tokens), expect_type(result, DraftedResult).draft
        predictions, context = result.predictions, self.task.context
        proposal = self.task.sampler.propose(predictions, range(position, position + len(predictions)))
        anchored = len(context.tokens) - len(draft)
        accepted = self.verify(draft, proposal)
        context.truncate(anchored + accepted)
        empty_and_right = not draft and self.finish is not None  # an empty draft says that nothing follows
        if self._drafting is not None and self._unfinished.length and not empty_and_right:
            self._drafting.learn(len(draft), accepted)
