"""What the engine asks of a model family: lay a hole out, say how its fills are made, run passes, give text back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, TypeVar

import attrs
from torch import Tensor

from engine.fill.strategy import FillStrategy
from engine.protocol.messages import Fill, ModelInfo

if TYPE_CHECKING:
    from engine.fill.filling import Filling, Hole
    from engine.fill.sampler import Sampler


Own = TypeVar("Own")


def expect_type(item: object, kind: type[Own]) -> Own:
    """Return what the engine hands back to a family as the kind that this family made it of.

    Raises TypeError for another family's.
    """
    if not isinstance(item, kind):
        raise TypeError(f"a family got a {type(item).__name__} of another family; its own is a {kind.__name__}")
    return item


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

    def fork(self, length: int) -> Context:
        """Return an independent copy of the first `length` tokens."""
        ...


@attrs.frozen
class Layout:
    """A hole's tokens. `context` is read causally, once, and cached for the next keystroke. `before` and `after` stand
    in place on both sides of the middle, part of no cache; families that read everything causally have none. `typed` is
    the end of the prefix that is left out of the context because the fill's first tokens write it anew (healing.py)."""

    context: list[int]
    before: list[int] = attrs.field(factory=list)
    after: list[int] = attrs.field(factory=list)
    typed: str = ""


class Pass(Protocol):
    """One hole's rows in one pass of the network; each family has its own. One that wants nothing reads context."""

    @property
    def rows(self) -> int:
        """How many rows go through the network."""
        ...

    @property
    def wanted(self) -> Sequence[int]:
        """The rows whose predictions are asked for."""
        ...


class Model(Protocol):
    """A loaded model. All methods but `texts_of` and `breaks_line` run on the engine's one worker thread."""

    info: ModelInfo
    threads: int
    default: FillStrategy
    """What fills best at equal milliseconds."""
    end: int
    """The token that closes a fill."""
    never: tuple[int, ...]
    """Tokens that no fill may hold."""

    def lay_out(self, fill: Fill) -> Layout:
        """Return the tokens of a hole."""
        ...

    def new_context(self) -> Context:
        """Return an empty context."""
        ...

    def read(self, context: Context, tokens: list[int]) -> Pass:
        """Return the pass that adds tokens to a context."""
        ...

    def filling(self, context: Context, hole: Hole, sampler: Sampler, way: FillStrategy) -> Filling:
        """Return a fill at its start; raises ModelError for a way that this family does not have."""
        ...

    def run(self, passes: Sequence[Pass]) -> list[Tensor]:
        """Run passes of several holes together, and return for each what its filling takes, once it is there.

        For our own families that is the logits [wanted, vocabulary] in fp32, on the model's device.
        """
        ...

    def texts_of(self, tokens: Sequence[int]) -> list[str]:
        """Return one string a token, together the text; a character that is split over tokens goes to the last one."""
        ...

    def breaks_line(self, token: int) -> bool:
        """Tell whether a token's text holds a newline."""
        ...
