"""Filling by denoising: a canvas of masks that see both sides and each other, committed in any order."""

import math
from collections.abc import Callable

from engine.fill.filling import BaseFilling
from engine.fill.interface import FillTask
from engine.fill.sampler import PassResult, Predictions, Proposal
from engine.fill.stream import Stream, StreamModel, StreamPass
from engine.protocol.messages import Cell, Finish

CommitRule = Callable[[Proposal, int], list[int]]


def min_commits(masked: int, steps_left: int) -> int:
    """Return how many positions must be committed now, so that all are committed after the last step."""
    return math.ceil(masked / max(1, steps_left))


def by_threshold(proposal: Proposal, least: int, threshold: float = 0.9) -> list[int]:
    """Commit every proposal with a confidence of `threshold` or more, and the `least` most confident.

    Fast-dLLM, arXiv 2505.22618.
    """
    order = sorted(range(len(proposal.tokens)), key=lambda index: -proposal.confidence[index])
    return [index for rank, index in enumerate(order) if rank < least or proposal.confidence[index] >= threshold]


def by_entropy(proposal: Proposal, least: int, bound: float = 0.3) -> list[int]:
    """Commit the proposals of lowest entropy: `least` of them, and more while their entropies sum to `bound` nats.

    The sum bounds what committing them together loses against one by one (EB-Sampler, arXiv 2505.24857).
    """
    order = sorted(range(len(proposal.tokens)), key=lambda index: proposal.entropy[index])
    spent, chosen = 0.0, []
    for rank, index in enumerate(order):
        spent += proposal.entropy[index]
        if rank >= least and spent > bound:
            break
        chosen.append(index)
    return chosen


_UNBOUNDED = 1 << 30


class Denoising(BaseFilling):
    """The masked-diffusion loop over a canvas that slides along.

    The canvas comes after the anchor. The anchor's own row predicts its first position, and in code exactly as left to
    right would. There every step commits that position, and whatever else the rule believes in (CanvasUse). Committed
    tokens without a gap before them move into the context, and the canvas grows at its other end until an end is
    committed in it. So a long hole needs no second canvas, and an unknown length no guess. After as many steps as the
    strategy has, the whole canvas is committed.

    Masks do not know the typed text at the cursor, so it is written left to right before the first step.
    """

    def __init__(self, model: StreamModel, task: FillTask, rule: CommitRule) -> None:
        super().__init__(model, task)
        self._stream, self._mask = Stream(model, task), model.mask
        self._rule, self._cycle, self._ended = rule, task.strategy.steps or _UNBOUNDED, False
        self._use = model.canvas_use
        self._widest = min(self._use.most, model.info.canvas_tokens)
        self._width = min(self._use.first, self._widest)
        self._denoised = 0
        self._canvas: list[int | None] = []
        self._confidence: list[float] = []
        self._guesses: dict[int, tuple[int, float]] = {}
        """The tokens that the last step was not sure enough of, with their probabilities, by their position."""
        self._slide()

    def _slide(self) -> None:
        """Commit the gapless start of the canvas, cut the canvas after an end, and fill it up with masks."""
        while self._canvas and self._canvas[0] is not None and self.finish is None:
            self.commit(self._canvas.pop(0) or 0, self._confidence.pop(0))
        for position, token in enumerate(self._canvas):
            if token is not None and self.ends(token):
                del self._canvas[position + 1 :], self._confidence[position + 1 :]
                self._ended = True
                break
        if not self._ended and not self.unwritten:
            missing = min(self._width, self.task.bounds.max_tokens - len(self.tokens)) - len(self._canvas)
            self._canvas += [None] * missing
            self._confidence += [0.0] * missing

    def _masked(self) -> list[int]:
        return [position for position, token in enumerate(self._canvas) if token is None]

    def next_pass(self) -> StreamPass:
        if self.unwritten:
            return self._stream.next_token_pass(self.tokens, self.unwritten)
        unread = self._stream.unread(self.tokens)
        shown = [self._mask if token is None else token for token in self._canvas[:-1]]
        wanted = [len(unread) - 1 + position for position in self._masked()]
        return StreamPass(
            self.task.context, unread, shown, wanted, self._stream.query(self.tokens, self.unwritten, len(wanted))
        )

    def absorb(self, result: PassResult, steps_left: int) -> None:
        self.steps += 1
        known = len(self.tokens)
        self._commit(self._stream.mixed(result.predictions), steps_left)
        self.sources += self._stream.sources(self.tokens[known:], self.confidence[known:])

    def _commit(self, predictions: Predictions, steps_left: int) -> None:
        if self.unwritten:
            self.commit_next(predictions)
            self._slide()
            return
        steps_left = min(steps_left, self._cycle - self._denoised % self._cycle)
        self._denoised += 1
        masked = self._masked()
        positions = [len(self.tokens) + position for position in masked]
        proposal = self.task.sampler.propose(predictions, positions)
        stop = self.count_to_end(proposal.tokens)
        if not self._ended and not self.ends(proposal.tokens[stop - 1]):
            self._width = self._widest
        least = min_commits(stop, steps_left)
        if self._use.follows_stream:
            # The first position is committed in any case, and counts towards the least number of commits. Else every
            # step would commit one more token, one that it does not believe in.
            chosen = [0, *(other + 1 for other in self._rule(proposal.part(1, stop), least - 1))]
        else:
            chosen = self._rule(proposal.part(0, stop), least)
        self._guesses = dict(zip(positions, zip(proposal.tokens, proposal.confidence, strict=True), strict=True))
        for rank in chosen:
            self._canvas[masked[rank]] = proposal.tokens[rank]
            self._confidence[masked[rank]] = proposal.confidence[rank]
        self._slide()

    def close(self, finish: Finish) -> None:
        """End with the gapless start of the canvas, which is committed already."""
        self._canvas.clear()
        super().close(finish)

    def canvas(self) -> list[str | None]:
        shown = super().canvas()
        if self.finish is None:
            shown += [None if token is None else self.vocabulary.texts_of([token])[0] for token in self._canvas]
        return shown

    def cells(self) -> list[Cell]:
        """Return what is committed, and the canvas: its own tokens, and what the last step guessed for the others."""
        cells = [cell for cell in super().cells() if cell.probability is not None]
        if self.finish is not None:
            return cells
        typed = len(self.tokens) - len(cells)
        for at, token in enumerate(self._canvas, len(self.tokens)):
            guess, probability = self._guesses.get(at, (None, None))
            if token is not None:
                guess, probability = token, self._confidence[at - len(self.tokens)]
            text = "" if guess is None else self.vocabulary.texts_of([guess])[0]
            known = None if probability is None else round(probability, 4)
            cells.append(Cell(at - typed, "mask" if token is None else "written", text, known))
        return cells
