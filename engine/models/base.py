"""What the engine asks of a model family: lay a hole out, run passes over contexts and canvases, give text back."""

from collections.abc import Sequence
from typing import Protocol

import attrs
from torch import Tensor

from engine.protocol import Fill, ModelInfo


class Context(Protocol):
    """An encoded context: the tokens read so far, with the keys and values that stand for them."""

    tokens: list[int]

    @property
    def bytes(self) -> int:
        """Memory held, in bytes."""
        ...

    def truncate(self, length: int) -> None:
        """Forget all tokens from `length` on."""
        ...

    def fork(self, length: int) -> "Context":
        """Return an independent copy of the first `length` tokens."""
        ...


@attrs.define
class Pass:
    """One hole's rows in one pass of the network.

    `append` rows are read causally and stay in the context; `canvas` rows follow them, see the whole context and each
    other, and leave nothing behind. `wanted` numbers the rows (append first, then canvas) whose logits are asked for:
    each is the prediction of the token after that row.
    """

    context: Context
    append: list[int]
    canvas: list[int]
    wanted: list[int]

    @property
    def rows(self) -> int:
        return len(self.append) + len(self.canvas)


class Family(Protocol):
    """A loaded model. All methods but `tokens_of` run on the engine's one worker thread."""

    info: ModelInfo
    threads: int
    mask: int
    end: int
    middle: int
    never: tuple[int, ...]
    """Tokens that no fill may hold, the mask among them."""

    def lay_out(self, fill: Fill) -> list[int]:
        """Return the context tokens of a hole, up to but without the canvas's first row."""
        ...

    def new_context(self) -> Context:
        """Return an empty context."""
        ...

    def run(self, passes: Sequence[Pass]) -> list[Tensor]:
        """Run one pass for several holes; return for each the logits [wanted, vocabulary] in fp32 on the CPU."""
        ...

    def texts_of(self, tokens: Sequence[int]) -> list[str]:
        """Return one string a token, together the text; a character that is split over tokens goes to the last one."""
        ...

    def breaks_line(self, token: int) -> bool:
        """Tell whether a token's text holds a newline."""
        ...
