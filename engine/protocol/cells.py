"""A fill as a viewer sees it, position by position: what the Progress of a traced fill carries."""

from typing import Literal

import attrs

from engine.protocol.plain_text import plain

CellState = Literal["written", "verified", "refused", "draft", "mask"]


@attrs.frozen
class Cell:
    """What a pass made of one position of the canvas. A refused cell shares its position with what is there instead.

    `at` is the position, from 0. `state` is "written" for a token that the pass chose itself, "verified" for one that a
    draft had too, "refused" for one that a draft had and the pass threw away, "draft" for one that the next pass
    verifies, and "mask" for a position without any. Then `text` is what the pass would have put there, "" if it made no
    guess. `probability` is that of the token or the guess; None where it is not known. `shares` are the parts of a
    committed token's probability that the model, this file and the workspace gave; empty without a memory.
    """

    at: int
    state: CellState
    text: str = attrs.field(default="", converter=plain)
    probability: float | None = None
    shares: list[float] = attrs.field(factory=list)
