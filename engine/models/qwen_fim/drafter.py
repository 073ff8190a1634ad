"""The interface of a drafter."""

from collections.abc import Sequence
from typing import Protocol

import attrs
from tokenizers import Tokenizer

from engine.protocol.messages import Fill

ROOM = 64
"""Tokens that a drafter keeps free after its context, for the written text and the draft."""


@attrs.define(eq=False)
class Unfinished:
    """A hole with the `text` written in it so far. `length` is how many tokens of a draft are wanted.

    It is one object throughout a fill, so a drafter can keep what it has read under it.
    """

    fill: Fill
    text: str = ""
    length: int = 0

    @property
    def moved(self) -> Fill:
        """The hole with the written text as part of its prefix."""
        return attrs.evolve(self.fill, prefix=self.fill.prefix + self.text, max_tokens=ROOM)


class Drafter(Protocol):
    """Guesses how holes go on, all of them in one pass."""

    name: str
    tokenizer: Tokenizer

    def draft(self, holes: Sequence[Unfinished]) -> list[list[int]]:
        """Return for each hole at most `length` of the drafter's own tokens, up to the end that it predicts."""
        ...

    def texts_of(self, tokens: Sequence[int]) -> list[str]:
        """Return one text a token; together they are the text."""
        ...
