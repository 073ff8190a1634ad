"""What drafting asks of a drafter."""

from collections.abc import Sequence
from typing import Protocol

import attrs
from tokenizers import Tokenizer

from engine.protocol.messages import Fill

ROOM = 64
"""Tokens that a drafter keeps free behind its context, for what is written already and for the draft."""


@attrs.define(eq=False)
class Unfinished:
    """A hole, the `text` that is written in it so far, and how many tokens of a draft are asked for.

    One object stays the same through a fill, so that a drafter can keep what it has read of it.
    """

    fill: Fill
    text: str = ""
    length: int = 0

    @property
    def moved(self) -> Fill:
        """The hole as it is now: what is written has become part of the prefix."""
        return attrs.evolve(self.fill, prefix=self.fill.prefix + self.text, max_tokens=ROOM)


class Drafter(Protocol):
    """Guesses how holes go on, in one pass for all of them together."""

    name: str
    tokenizer: Tokenizer

    def draft(self, holes: Sequence[Unfinished]) -> list[list[int]]:
        """Return for each hole at most `length` of the drafter's own tokens, up to where it would end the fill."""
        ...

    def texts_of(self, tokens: Sequence[int]) -> list[str]:
        """Return one string a token, together the text."""
        ...
