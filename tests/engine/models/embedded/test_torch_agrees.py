"""The passes without torch compute the network in torch: NumPy, every path of the kernel, and the predictions."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from support.embedded_models import load_embedded
from support.kernel_passes import KERNELS, ODD, random_weights
from support.sources import source_paths

from engine.errors import ModelError
from engine.fill.sampler import Predictions, Query
from engine.fill.stream import StreamPass
from engine.models import predict as torch_predict
from engine.models.embedded import runner
from engine.models.embedded.model import EmbeddedModel
from engine.models.embedded.numpy_pass import NumpyPass
from engine.models.embedded.runner import host_pass, predict
from engine.protocol.messages import Fill


def passes_of_a_file(model: EmbeddedModel) -> list[StreamPass]:
    """Return passes at the end of a real file: a context, the anchor and a canvas."""
    passes = []
    for source in source_paths()[:3]:
        fill = Fill(id=1, prefix=source.read_text()[:1500], suffix="\n    return total\n", path=source.stem)
        context = model.new_context()
        layout = model.lay_out(fill)
        model.logits([StreamPass(context, layout.context, [], [])])
        passes.append(StreamPass(context, [layout.anchor, 300, 301], [model.mask] * 8, range(11)))
    return passes


@pytest.mark.parametrize("runner", ["numpy", *KERNELS])
def test_the_shipped_model_predicts_what_torch_predicts(runner: str) -> None:
    model, reference = load_embedded("embedded", runner), load_embedded("embedded", "fp32")
    found, expected = (np.concatenate(each.logits(passes_of_a_file(each))) for each in (model, reference))
    if runner == "numpy":
        assert np.abs(found - expected).max() < 1e-2
        assert (found.argmax(1) == expected.argmax(1)).all()
        return
    # The kernel rounds the rows of a product to int8: a hundredth a layer (docs/kernel.md).
    assert np.abs(found - expected).mean() < 0.3
    assert np.corrcoef(found.ravel(), expected.ravel())[0, 1] > 0.995
    assert (found.argmax(1) == expected.argmax(1)).mean() > 0.85


def test_numpy_computes_a_tiny_model_as_torch_does(tiny_model: Path) -> None:
    model, reference = load_embedded(tiny_model, "numpy"), load_embedded(tiny_model, "fp32")
    rows = [20 + at * 7 % 300 for at in range(90)]
    for each in (0, 50):
        found, expected = (
            one.logits([StreamPass(one.new_context(), rows[each:], [one.mask] * 3, range(len(rows) - each + 3))])[0]
            for one in (model, reference)
        )
        np.testing.assert_allclose(found, expected, atol=1e-3)


def test_numpy_runs_where_the_kernel_was_not_built(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "_kernel", None)
    assert isinstance(host_pass(random_weights(ODD), ODD), NumpyPass)
    assert runner.kernel_paths() == []


def test_a_path_can_be_chosen_and_one_that_is_not_here_is_refused_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    weights = random_weights(ODD)
    for name in (*runner.kernel_paths(), "numpy"):
        monkeypatch.setenv("MIDSPAN_KERNEL", name)
        assert host_pass(weights, ODD).name == name
    monkeypatch.setenv("MIDSPAN_KERNEL", "quantum")
    with pytest.raises(ModelError, match=r"^MIDSPAN_KERNEL is quantum, .* one of .*numpy$"):
        host_pass(weights, ODD)


def test_predictions_in_numpy_are_those_in_torch() -> None:
    rng = np.random.default_rng(3)
    logits = rng.normal(0, 3, (7, 200)).astype(np.float32)
    named = rng.integers(0, 200, (4, 5))
    queries = [Query(3), Query(1, entropy=True, compatible_tokens=(4, 9, 11)), Query(8, named=named)]
    counts, forbidden = [1, 2, 4], [0, 3, 5]
    continuing = (rng.random(200) < 0.4).astype(np.float32)
    expected = torch_predict.predict(
        torch.from_numpy(logits.copy()), queries, counts, torch.tensor(forbidden), torch.from_numpy(continuing)
    )
    found = predict(logits.copy(), queries, counts, np.array(forbidden), continuing)
    for query, one, other in zip(queries, found, expected, strict=True):
        assert np.array_equal(one.tokens, other.tokens)
        for part in ("probabilities", "named", "continues", *(["entropy"] if query.entropy else [])):
            np.testing.assert_allclose(getattr(one, part), getattr(other, part), rtol=2e-5, atol=1e-7)
        assert isinstance(one, Predictions)


def test_equal_logits_are_ordered_by_their_ids() -> None:
    logits = np.zeros((2, 20), np.float32)
    logits[:, [3, 7, 11]] = 5
    for top in (1, 2, 3):
        (found,) = predict(logits.copy(), [Query(top)], [2], np.zeros(0, np.int64), np.zeros(20, np.float32))
        assert found.tokens.tolist() == [[3, 7, 11][:top]] * 2


def test_a_fill_with_the_default_model_imports_no_torch() -> None:
    program = """
import asyncio, sys
from engine.models.load import load
from engine.protocol.messages import Fill
from engine.schedule.scheduler import Scheduler

async def fill():
    scheduler = Scheduler(load("embedded", threads=1, device="cpu"))
    await scheduler.start()
    hole = Fill(id=1, prefix="def count(numbers):\\n    return len(num", suffix="\\n", budget_ms=60000.0)
    print((await scheduler.submit(hole, None).result).candidates[0].text)
    await scheduler.stop()

asyncio.run(fill())
print(sorted({name.partition(".")[0] for name in sys.modules} & {"torch", "transformers"}))
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    lines = ran.stdout.splitlines()
    assert lines[0]
    assert lines[-1] == "[]"
