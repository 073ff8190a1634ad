"""A hole read as one causal stream: context, <middle>, the committed tokens, and a canvas after them."""

from collections.abc import Sequence
from typing import Protocol

import attrs

from engine.fill.interface import Context, FillTask, Model
from engine.fill.predictions import Query


@attrs.frozen
class StreamPass:
    """Implements interface.Pass.

    append: tokens that are read causally and stay in the context.
    canvas: tokens and masks after them. They see the whole context and each other, and leave nothing in the context.
    wanted: indices of the rows (append first, then canvas) whose predictions are wanted. Each row predicts the token
    after it.
    query: what the fill asks about them. Its compatible tokens are for the last row of `append`.
    """

    context: Context
    append: list[int]
    canvas: list[int]
    wanted: Sequence[int]
    query: Query = attrs.field(factory=Query)

    @property
    def rows(self) -> int:
        return len(self.append) + len(self.canvas)


class StreamModel(Model, Protocol):
    """A model whose passes are StreamPasses."""

    mask: int
    """The token that a canvas holds where nothing is committed."""
    middle: int
    """The last token of every context, the first anchor."""

    def compatible_tokens(self, typed: bytes) -> list[int]:
        """Return the tokens that begin with `typed`, and those that `typed` begins with."""
        ...


class Stream:
    """One hole's stream: the tokens of its context, <middle>, then the tokens that a fill has committed.

    The anchor is the last token of the stream: <middle> at first, later the last committed token. The context never
    holds it, so the anchor's row is part of every pass.
    """

    def __init__(self, model: StreamModel, task: FillTask) -> None:
        self._model, self._task = model, task

    def tokens(self, committed: Sequence[int]) -> list[int]:
        """Return all tokens up to the anchor, which is the last one."""
        return [*self._task.layout.context, self._model.middle, *committed]

    def unread(self, committed: Sequence[int]) -> list[int]:
        """Return the tokens up to the anchor that the context does not hold yet."""
        return self.tokens(committed)[len(self._task.context.tokens) :]

    def query(self, unwritten: bytes) -> Query:
        """Return what to ask about the anchor's row and the rows after it. See BaseFilling.unwritten."""
        compatible = self._model.compatible_tokens(unwritten) if unwritten else ()
        return Query(self._task.sampler.top, self._task.strategy.rule == "entropy", compatible)

    def next_token_pass(self, committed: Sequence[int], unwritten: bytes) -> StreamPass:
        """Return the pass that predicts the next token alone."""
        unread = self.unread(committed)
        return StreamPass(self._task.context, unread, [], [len(unread) - 1], self.query(unwritten))
