"""A canvas between two passes, and the pass that runs some denoising steps on it."""

from collections.abc import Callable, Sequence

import attrs
from torch import Tensor

from engine.models.diffusion_gemma.context import RollingContext

AcceptRule = Callable[[Tensor, Tensor], Tensor]
"""From entropy (nats) and confidence, both [..., middle], to the accepted positions, bool [..., middle]."""


@attrs.frozen
class StepResult:
    """The result of one step, each [middle].

    likeliest, confidence: the most likely token and its probability at temperature 1
    entropy: in nats, at the temperature of the step
    accepted: whether the rule accepted the drawn token
    """

    likeliest: Tensor
    confidence: Tensor
    entropy: Tensor
    accepted: Tensor


@attrs.frozen
class CanvasState:
    """The state of a canvas, on the device.

    tokens: the noisy middle [middle]; after: the fixed tokens after it [after]
    signal: the embeddings that the last step expects [middle, width], for self-conditioning; None before the first step
    result: of the last step; None before the first
    stopped: whether the canvas is done, bool []
    """

    tokens: Tensor
    after: Tensor
    signal: Tensor | None
    result: StepResult | None
    stopped: Tensor


@attrs.define(eq=False)
class Canvas:
    """A middle of `length` tokens that starts at the fill's token `first`, and the fixed tokens `after` it.

    `accept` chooses the positions that a step keeps. `greedy` takes the most likely tokens; otherwise they are drawn,
    with `top_p`. `step` counts the steps taken.
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
    """Implements interface.Pass. Reads `append` into the context. Then every canvas takes one step per temperature; the
    host sees only the state after the last one.

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
