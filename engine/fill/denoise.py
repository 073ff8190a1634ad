"""Filling by denoising: a canvas of masks that see both sides and each other, committed in any order.

With uniform noise a fill also takes back what is written: it may be wrong, so each step looks at it again. Scoring
masks a known text in the same way, to say how likely it is.
"""

import math
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from engine.fill.filling import BaseFilling
from engine.fill.interface import FillTask
from engine.fill.sampler import PassResult, Predictions, Proposal, Query
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


APART = 4
"""Every so many tokens one is masked, so that a mask knows at least three tokens on each side."""
LIKELIEST = 3


class Scoring(BaseFilling):
    """Says how likely a text is, each of its tokens from both sides, and writes nothing.

    Its canvas has the tokens of the text, and in each of APART passes others of them are masked.
    The answer has the tokens with their probabilities, and its cells are the LIKELIEST of each position.
    """

    def __init__(self, model: StreamModel, task: FillTask, scored: Sequence[int]) -> None:
        """scored: the tokens of the text."""
        super().__init__(model, task)
        self._stream, self._mask, self._scored = Stream(model, task), model.mask, list(scored)
        self._probabilities = [0.0] * len(self._scored)
        self._likeliest: dict[int, list[tuple[int, float]]] = {}

    def _masked(self) -> list[int]:
        return list(range(self.steps, len(self._scored), APART))

    def next_pass(self) -> StreamPass:
        unread, masked = self._stream.unread([]), self._masked()
        shown = [self._mask if at in masked else token for at, token in enumerate(self._scored)]
        wanted = [len(unread) - 1 + at for at in masked]
        named = np.array([[self._scored[at]] for at in masked], np.int64)
        return StreamPass(self.task.context, unread, shown[:-1], wanted, Query(LIKELIEST, named=named))

    def absorb(self, result: PassResult, steps_left: int) -> None:
        found = result.predictions
        pairs = zip(found.tokens.tolist(), found.probabilities.tolist(), strict=True)
        for at, (tokens, probabilities), named in zip(self._masked(), pairs, found.named[:, 0].tolist(), strict=True):
            self._likeliest[at] = list(zip(tokens, probabilities, strict=True))[:LIKELIEST]
            self._probabilities[at] = named
        self.steps += 1
        if self.steps == min(APART, len(self._scored)):
            self.tokens, self.confidence, self.finish = self._scored, self._probabilities, "complete"
            # Typed text is certain, and no doubt in the next token.
            typed = self._typed_tokens()
            self.confidence[:typed] = [1.0] * typed

    def _typed_tokens(self) -> int:
        """Return how many of the tokens only repeat typed text."""
        return len(self.tokens) - len(self._untyped()[0])

    def cells(self) -> list[Cell]:
        """Return the likeliest tokens of each position that was masked once, the likeliest first."""
        first = self._typed_tokens()
        return [
            Cell(at - first, "mask", text, round(probability, 4))
            for at, guesses in sorted(self._likeliest.items())
            if at >= first
            for token, probability in guesses
            for text in self.vocabulary.texts_of([token])
        ]
