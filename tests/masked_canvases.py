"""Tiny masked models in fp32, and fills at their start, for tests of single steps."""

from pathlib import Path

import attrs
from masked_checkpoints import TinyCheckpoint, save_checkpoint

from engine.fill.filling import Hole
from engine.fill.sampler import Sampler
from engine.fill.strategy import FillStrategy
from engine.models.load import load
from engine.models.masked.canvas import Canvas
from engine.models.masked.model import MaskedModel
from engine.protocol.messages import Fill, RuleName

FILL = Fill(id=1, prefix="def area(width, height):\n    total = ", suffix="\n    return total\n")
PLENTY = 1 << 20
"""The steps left in an unlimited budget."""


@attrs.frozen
class Loaded:
    checkpoint: TinyCheckpoint
    family: MaskedModel


def load_tiny(name: str, folder: Path) -> Loaded:
    """Save the checkpoint of a family in a new folder and load it in fp32, also on a processor with bf16."""
    checkpoint = save_checkpoint(name, folder)
    family = load(str(folder), threads=1, device="cpu", precision="fp32")
    assert isinstance(family, MaskedModel)
    return Loaded(checkpoint, family)


def begin(family: MaskedModel, max_tokens: int = 12, rule: RuleName = "threshold", steps: int = 0) -> Canvas:
    hole = Hole(family.lay_out(FILL), "lines", max_tokens)
    sampler = Sampler(forbidden=family.never, entropy=rule == "entropy")
    canvas = family.filling(family.new_context(), hole, sampler, FillStrategy(rule, steps))
    assert isinstance(canvas, Canvas)
    return canvas
