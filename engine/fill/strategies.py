"""The strategies of a StreamModel, by their names on the wire."""

from functools import partial

from engine.fill.causal import DraftAndVerify, LeftToRight
from engine.fill.denoise import Denoising, by_entropy, by_threshold
from engine.fill.interface import Filling, FillStrategy, FillTask
from engine.fill.revising import Revising
from engine.fill.scoring import Scoring
from engine.fill.stream import StreamModel

DEFAULT = FillStrategy("verify")
"""Best at equal milliseconds on held-out holes with the shipped weights. `midspan train eval` measures it, and the
model card has the table."""


def start_stream_fill(model: StreamModel, task: FillTask) -> Filling:
    """Return a fill at its start."""
    if task.scored:
        return Scoring(model, task)
    match task.strategy.rule:
        case "threshold" if model.info.noise == "uniform":
            return Revising(model, task)
        case "left-to-right":
            return LeftToRight(model, task)
        case "verify":
            return DraftAndVerify(model, task)
        case "entropy":
            return Denoising(model, task, by_entropy)
        case _:
            return Denoising(model, task, partial(by_threshold, threshold=model.canvas_use.threshold))
