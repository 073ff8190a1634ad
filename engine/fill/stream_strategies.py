"""The ways in which a StreamModel makes a fill, by their names on the wire."""

from engine.fill.causal import DraftAndVerify, LeftToRight
from engine.fill.commit_rules import by_entropy, by_threshold
from engine.fill.denoise import Denoising
from engine.fill.filling import Hole
from engine.fill.interface import Context
from engine.fill.sampler import Sampler
from engine.fill.strategy import FillStrategy
from engine.fill.stream import StreamFilling, StreamModel

DEFAULT = FillStrategy("threshold", 4)
"""What is best at equal milliseconds on held-out holes with the weights that are shipped; `midspan train eval` measures
it, and the model card has the table."""
_UNBOUNDED = 1 << 30


def begin(family: StreamModel, context: Context, hole: Hole, sampler: Sampler, way: FillStrategy) -> StreamFilling:
    """Return a fill at its start."""
    width, steps = family.info.canvas_tokens, way.steps or _UNBOUNDED
    match way.rule:
        case "left-to-right":
            return LeftToRight(family, context, hole, sampler)
        case "verify":
            return DraftAndVerify(family, context, hole, sampler)
        case "entropy":
            return Denoising(family, context, hole, sampler, by_entropy, width, steps)
        case _:
            return Denoising(family, context, hole, sampler, by_threshold, width, steps)
