"""Which of several fills fits best between both sides: the code after the hole has to follow from it.

A fill is written left to right, and sees the code after the hole only as its context. The other way round the network
knows more: it says how likely that code is to follow a text. A loop's head that does not fit its body makes the body
unlikely, though it was a likely head. By Bayes' rule the weight of a text is its probability, times that of what
follows (a noisy channel: arXiv 1611.02554). Measured in docs/embedded-model.md.
"""

import math

import numpy as np

from engine.fill.interface import Context
from engine.fill.sampler import PassResult, Query
from engine.fill.stream import StreamPass
from engine.protocol.messages import Candidate, Finish

FOLLOWS = 8
"""Tokens after the hole that are looked at. More of them choose no better."""
FOLLOWS_WEIGHT = 0.5
"""The exponent of their probability. They stand in the context too, so the network knows them rather too well."""
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


class Following:
    """One pass over a fill that has ended: how likely the first tokens after the hole are to follow it.

    Has the part of interface.Filling that a job needs to run it in a batch.
    """

    def __init__(self, context: Context, tokens: list[int], text: str, follows: list[int]) -> None:
        """context: the fill's own. tokens: of the stream, up to the last that is written. text: what is written.
        follows: the first tokens after the hole."""
        self._context, self._tokens, self.text, self._follows = context, tokens, text, follows
        self.finish: Finish | None = None
        self.likelihood = 0.0
        """The logarithm of that probability, once `finish` is "complete"."""

    def next_pass(self) -> StreamPass:
        """Return the pass: the row of each token predicts the next one."""
        context, follows = self._context, self._follows
        context.truncate(min(len(context.tokens), len(self._tokens) - 1))
        unread = self._tokens[len(context.tokens) :]
        append = [*unread, *follows[:-1]]
        query = Query(named=np.array(follows, np.int64)[:, None])
        return StreamPass(context, append, [], range(len(unread) - 1, len(append)), query)

    def absorb(self, result: PassResult, steps_left: int) -> None:
        """Take the result of the pass, and leave the context as it was."""
        named = result.predictions.named[:, 0]
        self.likelihood = float(np.log(np.maximum(named, _NEVER)).sum())
        self._context.truncate(len(self._tokens))
        self.close("complete")

    def close(self, finish: Finish) -> None:
        """End without having looked."""
        self.finish = self.finish or finish
