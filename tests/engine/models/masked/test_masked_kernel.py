"""A masked model of a shape that the kernel runs denoises there as it does in torch."""

import attrs
import numpy as np
import pytest
from support.fill_tasks import run_to_end, started
from support.kernel_passes import skip_without
from support.masked_canvases import FILL, begin
from support.masked_checkpoints import TinyCheckpoint, save_checkpoint

from engine.fill.interface import FillStrategy, expect_type
from engine.models.load import load
from engine.models.masked.model import MaskedModel
from engine.models.masked.network import KernelMaskedNetwork, MaskedNetwork
from engine.models.masked.rows import MaskedPass
from engine.protocol.messages import RuleName

FAMILIES = ("dream", "dreamon", "open-dcoder", "dllm-qwen", "coda")
SIZES = {"hidden_size": 64, "intermediate_size": 128}


@pytest.fixture(scope="module", params=[*FAMILIES, "a2d-qwen3"])
def checkpoint(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> TinyCheckpoint:
    folder = tmp_path_factory.mktemp("masked") / "tiny"
    if request.param == "a2d-qwen3":
        return save_checkpoint("dllm-qwen", folder, model_type="a2d-qwen3", head_dim=16, **SIZES)
    return save_checkpoint(request.param, folder, **SIZES)


def load_in(checkpoint: TinyCheckpoint, precision: str) -> MaskedModel:
    skip_without("plain")
    model = expect_type(load(str(checkpoint.folder), threads=1, device="cpu", precision=precision), MaskedModel)
    kind = MaskedNetwork if precision == "fp32" else KernelMaskedNetwork
    assert isinstance(model._network, kind)
    return model


def test_each_step_is_what_transformers_computes(checkpoint: TinyCheckpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MIDSPAN_KERNEL", "numpy")  # in fp32
    model = load_in(checkpoint, "auto")
    item = expect_type(begin(model).next_pass(), MaskedPass)
    layout = model.lay_out(attrs.evolve(FILL, max_tokens=12))
    (found,) = model.logits([item])
    first = 0
    for middle in item.middles[:1]:
        rows = len(item.surrounding.anchor) + len(middle)
        wanted = [row for row in item.wanted if first <= row < first + rows]
        all_rows = checkpoint.logits([*layout.before, *middle, *layout.after])
        before = len(layout.before) - len(item.surrounding.anchor)
        expected = all_rows[[before + row for row in wanted]]
        assert np.abs(found[: len(wanted)].numpy() - expected.numpy()).max() < 1e-3 * float(expected.abs().max())


@pytest.mark.parametrize("rule", ["threshold", "left-to-right"])
def test_whole_fills_are_those_of_torch(
    checkpoint: TinyCheckpoint, monkeypatch: pytest.MonkeyPatch, rule: RuleName
) -> None:
    monkeypatch.setenv("MIDSPAN_KERNEL", "numpy")
    model, reference = load_in(checkpoint, "auto"), load_in(checkpoint, "fp32")
    for steps, most in ((0, 12), (2, 20), (3, 7)):
        fill = attrs.evolve(FILL, max_tokens=most, rule=rule)
        found, expected = (
            run_to_end(each, started(each, fill, FillStrategy(fill.rule, steps))) for each in (model, reference)
        )
        assert found.answer().text == expected.answer().text
        assert found.steps == expected.steps


def test_holes_together_get_the_bits_that_each_gets_alone(checkpoint: TinyCheckpoint) -> None:
    model = load_in(checkpoint, "auto")
    assert model.info.dtype.startswith("int8, ")
    fills = [begin(model, most) for most in (4, 12)]
    together = model.logits([expect_type(each.next_pass(), MaskedPass) for each in fills])
    for most, found in zip((4, 12), together, strict=True):
        (alone,) = model.logits([expect_type(begin(model, most).next_pass(), MaskedPass)])
        assert np.array_equal(alone.numpy(), found.numpy())
