"""Filling by denoising: a canvas of masks that see both sides and each other, committed in any order."""

from engine.fill.commit_rules import CommitRule, min_commits
from engine.fill.filling import BaseFilling
from engine.fill.interface import FillTask
from engine.fill.predictions import PassResult, Predictions
from engine.fill.stream import Stream, StreamModel, StreamPass
from engine.protocol.cells import Cell
from engine.protocol.messages import Finish

FIRST_MASKS, MOST_MASKS = 4, 8
"""A wide canvas costs its rows in every step, and its far positions are hardly ever committed: at equal exactness 4
masks took 9 ms where 16 took 21 (docs/embedded-model.md)."""
_UNBOUNDED = 1 << 30


class Denoising(BaseFilling):
    """The masked-diffusion loop over a canvas that slides along.

    The canvas comes after the anchor. The anchor's own row predicts its first position, exactly as left to right would.
    So every step commits that position, and whatever else the rule believes in. Committed tokens without a gap before
    them move into the context, and the canvas grows at its other end until an end is committed in it. So a long hole
    needs no second canvas, and an unknown length no guess. The canvas has FIRST_MASKS positions at first,
    and MOST_MASKS while no end is in sight. After as many steps as the strategy has, the whole canvas is committed.

    Masks do not know the typed text at the cursor, so it is written left to right before the first step.
    """

    def __init__(self, model: StreamModel, task: FillTask, rule: CommitRule) -> None:
        super().__init__(model, task)
        self._stream, self._mask = Stream(model, task), model.mask
        self._rule, self._cycle, self._ended = rule, task.strategy.steps or _UNBOUNDED, False
        self._widest = min(MOST_MASKS, model.info.canvas_tokens)
        self._width = min(FIRST_MASKS, self._widest)
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
        # The first position is committed in any case, and counts towards the least number of commits. Else every step
        # would commit one more token, one that it does not believe in.
        others = self._rule(proposal.part(1, stop), min_commits(stop, steps_left) - 1)
        self._guesses = dict(zip(positions, zip(proposal.tokens, proposal.confidence, strict=True), strict=True))
        for rank in (0, *(other + 1 for other in others)):
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
