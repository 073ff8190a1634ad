"""Denoising with uniform noise: what is written may be wrong, so each step looks at it again, and takes it back."""

from functools import partial

from engine.fill.denoise import by_threshold, min_commits
from engine.fill.filling import BaseFilling
from engine.fill.interface import FillTask
from engine.fill.sampler import PassResult, Proposal
from engine.fill.stream import Stream, StreamModel, StreamPass
from engine.protocol.messages import Cell, Finish

STEPS = 20
DOUBT = 0.5
"""A written token goes when another one is this likely in its place."""
SETTLED = 4
"""In the last of so many steps nothing is taken back any more, so that all is written at the end."""


class Revising(BaseFilling):
    """The loop for a model that was trained with wrong tokens on its canvas (uniform noise beside masks, as in GIDD,
    arXiv 2503.04482).

    Each step predicts every position, written or masked. Where another token is now likelier than DOUBT, the written
    one is taken back and its position is masked (remasking, arXiv 2503.00307). The fill ends when all is written and
    nothing is doubted, or after its steps. It begins with `FillTask.draft` on the canvas, right or wrong. The whole
    canvas is committed at the end; none of it is in the context.
    """

    def __init__(self, model: StreamModel, task: FillTask) -> None:
        super().__init__(model, task)
        self._stream, self._mask = Stream(model, task), model.mask
        self._rule = partial(by_threshold, threshold=model.canvas_use.threshold)
        self._most_steps = task.strategy.steps or STEPS
        self._canvas: list[int | None] = [None] * min(model.info.canvas_tokens, task.bounds.max_tokens + 1)
        self._canvas[: len(task.draft)] = task.draft[: len(self._canvas)]
        self._proposal: Proposal | None = None
        self._taken_back: dict[int, tuple[int, float]] = {}
        """What the last step took back, with the probability that it still had, by its position."""

    def next_pass(self) -> StreamPass:
        unread = self._stream.unread(self.tokens)
        shown = [self._mask if token is None else token for token in self._canvas[:-1]]
        wanted = range(len(unread) - 1, len(unread) - 1 + len(self._canvas))
        return StreamPass(self.task.context, unread, shown, wanted, self._stream.query(self.tokens, b"", len(wanted)))

    def absorb(self, result: PassResult, steps_left: int) -> None:
        self.steps += 1
        self._proposal = proposal = self.task.sampler.propose(result.predictions, range(len(self._canvas)))
        steps_left = max(1, min(steps_left, self._most_steps + 1 - self.steps))
        masked = [at for at, token in enumerate(self._canvas) if token is None]
        self._taken_back = {} if steps_left <= SETTLED else self._doubted(proposal)
        for at in self._taken_back:
            self._canvas[at] = None
        chosen = _at(proposal, masked)
        for rank in self._rule(chosen, min_commits(len(masked), steps_left)):
            self._canvas[masked[rank]] = chosen.tokens[rank]
        if None not in self._canvas and (steps_left == 1 or not self._doubted(proposal)):
            self._commit_all(proposal)

    def _doubted(self, proposal: Proposal) -> dict[int, tuple[int, float]]:
        """Return the written tokens that are not what is proposed in their place, and how likely they are at most."""
        sure = enumerate(zip(self._canvas, proposal.tokens, proposal.confidence, strict=True))
        return {
            at: (written, round(1 - likelier, 4))
            for at, (written, token, likelier) in sure
            if written is not None and written != token and likelier >= DOUBT
        }

    def _commit_all(self, proposal: Proposal) -> None:
        for token, confidence in zip(self._canvas, proposal.confidence, strict=True):
            if self.finish is None and token is not None:
                self.commit(token, confidence)

    def close(self, finish: Finish) -> None:
        """End with the gapless start of the canvas."""
        if self.finish is None and self._proposal is not None:
            gap = next((at for at, token in enumerate(self._canvas) if token is None), len(self._canvas))
            self._canvas = self._canvas[:gap]
            self._commit_all(self._proposal.part(0, gap))
        super().close(finish)

    def canvas(self) -> list[str | None]:
        if self.finish is not None:
            return super().canvas()
        return [None if token is None else self.vocabulary.texts_of([token])[0] for token in self._canvas]

    def cells(self) -> list[Cell]:
        """Return each position as the last step left it, and what it took back."""
        if self._proposal is None:
            return [Cell(at, "mask") for at in range(len(self._canvas))]
        texts = self.vocabulary.texts_of(self._proposal.tokens)
        cells = []
        for at, (token, text, sure) in enumerate(zip(self._canvas, texts, self._proposal.confidence, strict=False)):
            if (gone := self._taken_back.get(at)) is not None:
                cells.append(Cell(at, "refused", self.vocabulary.texts_of([gone[0]])[0], gone[1]))
            kept = text if token is None else self.vocabulary.texts_of([token])[0]
            cells.append(Cell(at, "mask" if token is None else "written", kept, round(sure, 4)))
        return cells


def _at(proposal: Proposal, positions: list[int]) -> Proposal:
    """Return the proposals of some positions."""
    return Proposal(
        [proposal.tokens[at] for at in positions],
        [proposal.confidence[at] for at in positions],
        [proposal.entropy[at] for at in positions],
        [proposal.continues[at] for at in positions],
    )
