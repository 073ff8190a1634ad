"""Fills at their start, without a scheduler."""

from engine.fill.interface import Bounds, Filling, FillStrategy, FillTask, Model
from engine.fill.sampler import Sampler
from engine.protocol.messages import Fill


def started(model: Model, fill: Fill, strategy: FillStrategy | None = None, sampler: Sampler | None = None) -> Filling:
    """Return the fill of a hole over a new context, by a strategy or by the fill's own rule."""
    bounds = Bounds(fill.extent, fill.max_tokens, fill.min_line_probability)
    strategy = strategy or FillStrategy(fill.rule, fill.steps)
    return model.start_fill(FillTask(model.new_context(), model.lay_out(fill), bounds, sampler or Sampler(), strategy))


def run_to_end(model: Model, filling: Filling, steps_left: int = 1 << 20) -> Filling:
    """Run passes of one fill until it ends."""
    while filling.finish is None:
        (result,) = model.run([filling.next_pass()])
        filling.absorb(result, steps_left)
    return filling
