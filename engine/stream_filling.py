"""Fills of families that read a hole as one causal stream: context, <middle>, what is committed, and a canvas.

stream_ways.py begins one; causal.py and denoise.py have the ways.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import attrs
from torch import Tensor

from engine.filling import Filling, Hole
from engine.models.base import Context, Family
from engine.sampling.proposal import Drawing


class Linked(Protocol):
    """The rows that a pass wanted, of which each can be read anew once the token that it hides is known."""

    def after(self, row: int, tokens: list[int]) -> Tensor:
        """Return the logits [1, vocabulary] of a row; `tokens` are all of the stream up to the one that it hides."""
        ...


@attrs.define
class StreamPass:
    """Implements models.base.Pass.

    `append` rows are read causally and stay in the context; `canvas` rows follow them, see the whole context and each
    other, and leave nothing behind. `wanted` numbers the rows (append first, then canvas) whose logits are asked for:
    each is the prediction of the token after that row. A family with a link leaves it in `linked`.
    """

    context: Context
    append: list[int]
    canvas: list[int]
    wanted: Sequence[int]
    linked: Linked | None = attrs.field(default=None, init=False, repr=False, eq=False)

    @property
    def rows(self) -> int:
        return len(self.append) + len(self.canvas)


class StreamFamily(Family, Protocol):
    """A family whose passes are StreamPasses."""

    mask: int
    """What a canvas shows where nothing is committed."""
    middle: int
    """The last token of every context, the first anchor."""


class StreamFilling(Filling):
    """The last token that the context does not hold yet is the anchor: <middle> at first, later the last committed
    token."""

    def __init__(self, family: StreamFamily, context: Context, hole: Hole, drawing: Drawing) -> None:
        super().__init__(family, context, hole, drawing)
        self._stream = family

    @property
    def anchor(self) -> int:
        return self.tokens[-1] if self.tokens else self._stream.middle

    def stream(self) -> list[int]:
        """Return all tokens up to and with the anchor."""
        return [*self.hole.layout.context, self._stream.middle, *self.tokens]

    def unread(self) -> list[int]:
        """Return the tokens up to and with the anchor that the context does not hold yet."""
        return self.stream()[len(self.context.tokens) :]
