"""Scoring: a known text is masked as denoising masks a canvas, to say how likely each of its tokens is."""

from collections.abc import Sequence

import numpy as np

from engine.fill.filling import BaseFilling
from engine.fill.interface import FillTask
from engine.fill.sampler import PassResult, Query
from engine.fill.stream import Stream, StreamModel, StreamPass
from engine.protocol.messages import Cell

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
