"""Fills of families that read a hole as one causal stream: context, <middle>, what is committed, and a canvas.

stream_ways.py begins one; causal.py and denoise.py have the ways.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import attrs
import torch
from torch import Tensor

from engine.fill.filling import Filling, Hole
from engine.fill.interface import Context, Model
from engine.fill.sampler import NEVER, Sampler


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
    each is the prediction of the token after that row. A family with a link leaves it in `linked`. Where something is
    typed already, `compatible_tokens` are the tokens that may follow the last `append` row.
    """

    context: Context
    append: list[int]
    canvas: list[int]
    wanted: Sequence[int]
    compatible_tokens: Sequence[int] = attrs.field(default=(), kw_only=True)
    linked: Linked | None = attrs.field(default=None, init=False, repr=False, eq=False)

    @property
    def rows(self) -> int:
        return len(self.append) + len(self.canvas)


class StreamModel(Model, Protocol):
    """A family whose passes are StreamPasses."""

    mask: int
    """What a canvas shows where nothing is committed."""
    middle: int
    """The last token of every context, the first anchor."""

    def bytes_of(self, token: int) -> bytes:
        """Return the bytes that a token stands for."""
        ...

    def compatible_tokens(self, typed: bytes) -> list[int]:
        """Return the tokens that begin with `typed`, and those with which it begins."""
        ...


class StreamFilling(Filling):
    """The last token that the context does not hold yet is the anchor: <middle> at first, later the last committed
    token.

    `unwritten` is what is typed at the cursor and not among the committed tokens yet: as long as there is some, the
    next token is one that agrees with it.
    """

    def __init__(self, family: StreamModel, context: Context, hole: Hole, sampler: Sampler) -> None:
        super().__init__(family, context, hole, sampler)
        self._stream = family
        self.unwritten = hole.layout.typed.encode()

    @property
    def anchor(self) -> int:
        return self.tokens[-1] if self.tokens else self._stream.middle

    def commit(self, token: int, confidence: float) -> None:
        if self.unwritten:  # Nothing ends here: a newline that is typed is not the end of the line to fill.
            self.unwritten = self.unwritten[len(self._stream.bytes_of(token)) :]
            self.append(token, confidence)
        else:
            super().commit(token, confidence)

    def compatible_tokens(self) -> list[int]:
        """Return the tokens that may come next where something is typed and not written yet, else none."""
        return self._stream.compatible_tokens(self.unwritten) if self.unwritten else []

    @torch.inference_mode()
    def agree(self, found: Tensor) -> None:
        """Leave in the anchor's logits, the first of `found`, only those of tokens that agree with what is typed."""
        if self.unwritten:
            kept = torch.tensor(self.compatible_tokens(), device=found.device)
            logits = found[0, kept]
            found[0].fill_(NEVER)
            found[0, kept] = logits

    def pass_for_next(self) -> StreamPass:
        """Return the pass that predicts the next token alone; write_next takes what is found."""
        unread = self.unread()
        return StreamPass(self.context, unread, [], [len(unread) - 1], compatible_tokens=self.compatible_tokens())

    def write_next(self, found: Tensor) -> None:
        """Commit the token that the anchor's logits, the first of `found`, propose."""
        self.agree(found)
        proposal = self.sampler.propose(found, [len(self.tokens)])
        self.commit(proposal.tokens[0], proposal.confidence[0])

    def stream(self) -> list[int]:
        """Return all tokens up to and with the anchor."""
        return [*self.hole.layout.context, self._stream.middle, *self.tokens]

    def unread(self) -> list[int]:
        """Return the tokens up to and with the anchor that the context does not hold yet."""
        return self.stream()[len(self.context.tokens) :]
