"""The strategies of a StreamModel by their names on the wire, and how likely a text is that is already there."""

from functools import partial

import numpy as np

from engine.fill.causal import DraftAndVerify, LeftToRight
from engine.fill.denoise import Denoising, Revising, by_entropy, by_threshold
from engine.fill.filling import BaseFilling
from engine.fill.interface import Filling, FillStrategy, FillTask
from engine.fill.sampler import PassResult, Query
from engine.fill.stream import Stream, StreamModel, StreamPass
from engine.protocol.messages import Cell

APART = 4
"""Every so many tokens one is masked, so that a mask knows at least three tokens on each side."""
LIKELIEST = 3


class Scoring(BaseFilling):
    """Says how likely a text is, each of its tokens from both sides, and writes nothing.

    Its canvas is `FillTask.scored`, and in each of APART passes other tokens of it are masked.

    The answer has the tokens with their probabilities, and its cells are the LIKELIEST of each position.
    """

    def __init__(self, model: StreamModel, task: FillTask) -> None:
        super().__init__(model, task)
        self._stream, self._mask, self._scored = Stream(model, task), model.mask, list(task.scored)
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
            self.tokens, self.confidence, self.finish = self._scored, self._of_scored(), "complete"

    def _of_scored(self) -> list[float]:
        """Return the tokens' probabilities; one that only repeats typed text is certain, and no doubt in the next."""
        typed, probabilities = len(self.task.layout.typed), list(self._probabilities)
        for at, text in enumerate(self.vocabulary.texts_of(self._scored)):
            if not typed or len(text) > typed:
                break
            typed -= len(text)
            probabilities[at] = 1.0
        return probabilities

    def cells(self) -> list[Cell]:
        """Return the likeliest tokens of each position that was masked once, the likeliest first."""
        first = len(self._scored) - len(self._untyped()) if self.finish is not None else 0
        return [
            Cell(at - first, "mask", text, round(probability, 4))
            for at, guesses in sorted(self._likeliest.items())
            if at >= first
            for token, probability in guesses
            for text in self.vocabulary.texts_of([token])
        ]


DEFAULT = FillStrategy("verify")
"""Best at equal milliseconds on held-out holes with the shipped weights. `midspan train eval` measures it, and the
model card has the table."""


def start_stream_fill(model: StreamModel, task: FillTask) -> Filling:
    """Return a fill at its start."""
    if task.scored:
        return Scoring(model, task)
    match task.strategy.rule:
        case "threshold" if model.info.noise == "uniform":
            return Revising(model, task)
        case "left-to-right":
            return LeftToRight(model, task)
        case "verify":
            return DraftAndVerify(model, task)
        case "entropy":
            return Denoising(model, task, by_entropy)
        case _:
            return Denoising(model, task, partial(by_threshold, threshold=model.canvas_use.threshold))
