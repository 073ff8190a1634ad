"""The ways in which a StreamFamily makes a fill, by their names on the wire."""

from engine.fill.causal import DraftAndVerify, LeftToRight
from engine.fill.commit_rules import by_entropy, by_threshold
from engine.fill.denoise import Denoising
from engine.fill.filling import Hole
from engine.fill.interface import Context
from engine.fill.sampler import Drawing
from engine.fill.strategy import Way
from engine.fill.stream import StreamFamily, StreamFilling

DEFAULT = Way("threshold", 4)
"""What is best at equal milliseconds on held-out holes with the weights that are shipped; `midspan train eval` measures
it, and the model card has the table."""
_UNBOUNDED = 1 << 30


def begin(family: StreamFamily, context: Context, hole: Hole, drawing: Drawing, way: Way) -> StreamFilling:
    """Return a fill at its start."""
    width, steps = family.info.canvas_tokens, way.steps or _UNBOUNDED
    match way.rule:
        case "left-to-right":
            return LeftToRight(family, context, hole, drawing)
        case "verify":
            return DraftAndVerify(family, context, hole, drawing)
        case "entropy":
            return Denoising(family, context, hole, drawing, by_entropy, width, steps)
        case _:
            return Denoising(family, context, hole, drawing, by_threshold, width, steps)
