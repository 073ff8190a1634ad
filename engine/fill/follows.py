"""Which of several fills fits best between both sides: the code after the hole has to follow from it.

A fill is written left to right, and sees the code after the hole only as its context. The other way round the network
knows more: it says how likely that code is to follow a text. A loop's head that does not fit its body makes the body
unlikely, though it was a likely head. By Bayes' rule the weight of a text is its probability, times that of what
follows (a noisy channel: arXiv 1611.02554). Measured in docs/embedded-model.md.
"""

import math
from collections.abc import Sequence
from itertools import accumulate

import attrs
import numpy as np

from engine.fill.interface import Context, Filling, Layout, Model
from engine.fill.sampler import PassResult, Query
from engine.fill.stream import StreamPass
from engine.protocol.messages import Candidate, Finish

FOLLOWS = 8
"""Tokens after the hole that are looked at. More of them choose no better."""
FOLLOWS_WEIGHT = 0.5
"""The exponent of their probability. They are in the context too, so the network knows them rather too well."""
MOST_ENDS = 8
"""Ends of lines that are looked at, of a text of several lines that did not end by itself."""
LEAST_SHARE = 0.02
"""A text is not tried if its beginning is less likely than this share of the greedy text: it would hardly be chosen."""
_NEVER = 1e-30


def is_whole(candidate: Candidate) -> bool:
    """Return whether a candidate can be compared with others: it ended by itself, or is as long as it may be."""
    return candidate.finish in ("complete", "canvas full")


def probability(candidate: Candidate) -> float:
    """Return how likely a candidate is, with its end."""
    return math.prod(candidate.confidence) * candidate.end_confidence


def likelihood(candidate: Candidate) -> float:
    """Return the logarithm of a candidate's probability; -inf where it is not whole."""
    return math.log(max(probability(candidate), _NEVER)) if is_whole(candidate) else -math.inf


@attrs.frozen
class Seam:
    """Where a written text and the code after the hole meet, as one reads both together.

    tokens: what is written, up to where both go on alike. follows: the tokens after them. again: how many of the
    written tokens are read again as a part of `follows`, because a token may hold the end of a line and its newline.
    """

    tokens: list[int]
    follows: list[int]
    again: int


def seam(model: Model, written: Sequence[int], text: str, follows: Sequence[int]) -> Seam:
    """Return the seam of written tokens, of which `text` is what is kept, and the first tokens after the hole."""
    if not written:
        return Seam([], list(follows), 0)
    *before, last = written
    kept = text[len("".join(model.texts_of(before))) :]
    joined = model.tokenizer.encode(kept + "".join(model.texts_of(follows)), add_special_tokens=False).ids
    if joined[:1] == [last] and len(joined) > 1:
        return Seam(list(written), joined[1 : 1 + FOLLOWS], 0)
    return Seam(before, joined[: 1 + FOLLOWS], 1)


class Following:
    """Passes over a fill that has ended: how likely the first tokens after the hole are to follow it.

    Each pass looks at one end of the text, and the likeliest is kept. Has the part of interface.Filling that a job
    needs to run it in a batch.
    """

    def __init__(self, model: Model, context: Context, layout: Layout, filling: Filling, ends: Sequence[int]) -> None:
        """context: the fill's own. ends: where the text may end, in characters of the committed tokens' texts."""
        self._model, self._context, self._layout, self.filling = model, context, layout, filling
        answer = filling.answer()
        self._text, self._confidence = layout.typed + answer.text, answer.confidence
        self.ends, self._written = list(ends), list(filling.committed().tokens)
        self._seam = self._next_seam()
        self._best = 0
        self.finish: Finish | None = None
        self.likelihood = -math.inf
        """The logarithm of that probability at the best end, once `finish` is "complete"."""

    def _next_seam(self) -> Seam:
        """Return the seam of the first end that was not looked at."""
        end, starts = self.ends[0], accumulate(map(len, self._model.texts_of(self._written)), initial=0)
        written = self._written[: sum(start < end for start in starts)] if end else []
        return seam(self._model, written, self._text[:end], self._layout.follows or ())

    def next_pass(self) -> StreamPass:
        """Return the pass: the row of each token predicts the next one."""
        context, layout, follows = self._context, self._layout, self._seam.follows
        tokens = [*layout.context, layout.anchor, *self._seam.tokens]
        context.truncate(min(len(context.tokens), len(tokens) - 1))
        unread = tokens[len(context.tokens) :]
        append = [*unread, *follows[:-1]]
        query = Query(named=np.array(follows, np.int64)[:, None])
        return StreamPass(context, append, [], range(len(unread) - 1, len(append)), query)

    def absorb(self, result: PassResult, steps_left: int) -> None:
        """Take the result of the pass, and leave the context as it was."""
        named, seam = result.predictions.named[:, 0], self._seam
        likelihood = float(np.log(np.maximum(named, _NEVER)).sum())
        if seam.again and (again := len(self._written) - len(seam.tokens)) <= len(self._confidence):
            # Text that was written already counts, unless it was typed.
            likelihood -= math.log(max(self._confidence[-again], _NEVER))
        if likelihood > self.likelihood:
            self.likelihood, self._best = min(0.0, likelihood), self.ends[0]
        self._context.truncate(len(self._layout.context) + 1 + len(seam.tokens))
        del self.ends[0]
        if self.ends:
            self._seam = self._next_seam()
            return
        if self._best < len(self._text):
            self.filling.cut(self._best)
            self.filling.finish = "complete"
        self.close("complete")

    def close(self, finish: Finish) -> None:
        """End without having looked at all ends."""
        self.finish = self.finish or finish
