"""A canvas between two passes, and the pass that takes it some steps further."""

from collections.abc import Callable, Sequence

import attrs
from torch import Tensor

from engine.models.diffusion_gemma.context import RollingContext

AcceptRule = Callable[[Tensor, Tensor], Tensor]
"""From the entropy (nats) and confidence of a canvas's positions, each [..., middle], to which are accepted, bool."""


@attrs.frozen
class Found:
    """What one step says of each position of the middle, each [middle]: the likeliest token, its probability at
    temperature 1, the entropy (nats) at the step's own, and whether what was drawn there was accepted."""

    likeliest: Tensor
    confidence: Tensor
    entropy: Tensor
    accepted: Tensor


@attrs.frozen
class CanvasState:
    """A canvas on the device: its noisy tokens [middle], the tokens that stay [after], the embeddings that the last
    step expected [middle, width] (None before the first), what it found, and whether the canvas is done, bool []."""

    tokens: Tensor
    after: Tensor
    signal: Tensor | None
    found: Found | None
    stopped: Tensor


@attrs.define(eq=False)
class Canvas:
    """`length` tokens of a middle that starts at the fill's token `first`, followed by `after`, tokens that stay.

    `accept` says what a step keeps. `greedy` takes the likeliest tokens; else they are drawn from the likeliest ones
    that share `top_p`.
    """

    length: int
    after: Sequence[int]
    accept: AcceptRule
    first: int = 0
    seed: int = 0
    greedy: bool = True
    top_p: float = 1.0
    step: int = 0
    state: CanvasState | None = None

    @property
    def rows(self) -> int:
        return self.length + len(self.after)


@attrs.define
class CanvasPass:
    """Implements fill.interface.Pass. Reads `append` into the context, then takes each of `canvases` one step further
    for each of `temperatures`, without looking up in between.

    The result is a canvas_result.CanvasResult.
    """

    context: RollingContext
    append: list[int]
    canvases: list[Canvas] = attrs.field(factory=list)
    temperatures: list[float] = attrs.field(factory=list)

    @property
    def rows(self) -> int:
        return len(self.append) + len(self.temperatures) * sum(canvas.rows for canvas in self.canvases)

    @property
    def wanted(self) -> Sequence[int]:
        return range(sum(canvas.length for canvas in self.canvases))
