"""Tiny masked models in fp32, and fills at their start, for the tests of what a step computes."""

from pathlib import Path

import attrs
from torch import Tensor

from engine.fill.interface import FillStrategy, expect_type
from engine.fill.sampler import PassResult
from engine.models.load import load
from engine.models.masked.filling import MaskedFilling
from engine.models.masked.model import MaskedModel
from engine.models.predict import predict
from engine.protocol.messages import Fill, RuleName
from support.fill_tasks import started
from support.masked_checkpoints import TinyCheckpoint, save_checkpoint

FILL = Fill(id=1, prefix="def area(width, height):\n    total = ", suffix="\n    return total\n", extent="lines")
PLENTY = 1 << 20
"""The steps left in an unlimited budget."""


@attrs.frozen
class Loaded:
    checkpoint: TinyCheckpoint
    model: MaskedModel


def load_tiny(name: str, folder: Path) -> Loaded:
    """Save the checkpoint of a family in a new folder and load it in fp32, also on a processor with bf16."""
    checkpoint = save_checkpoint(name, folder)
    model = load(str(folder), threads=1, device="cpu", precision="fp32")
    assert isinstance(model, MaskedModel)
    return Loaded(checkpoint, model)


def begin(model: MaskedModel, max_tokens: int = 12, rule: RuleName = "threshold", steps: int = 0) -> MaskedFilling:
    filling = started(model, attrs.evolve(FILL, max_tokens=max_tokens), FillStrategy(rule, steps))
    assert isinstance(filling, MaskedFilling)
    return filling


def result_of(filling: MaskedFilling, logits: Tensor) -> PassResult:
    """Return what the model would for the fill's next pass if its network gave `logits` [wanted, vocabulary]."""
    model = expect_type(filling.vocabulary, MaskedModel)
    (predictions,) = predict(logits.clone(), [filling.next_pass().query], [len(logits)], model._forbidden)
    return PassResult(predictions)
