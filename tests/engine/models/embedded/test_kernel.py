"""Every path of the kernel computes the pass of numpy_pass.py, and NumPy computes the network in torch."""

import json
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import attrs
import numpy as np
import pytest
import torch
from embedded_models import KERNELS, load_embedded, skip_without
from kernel_passes import ODD, WIDE, random_rows, random_weights, run_holes
from numpy.typing import NDArray
from sources import source_paths

from engine.fill.predictions import Predictions, Query
from engine.fill.stream import StreamPass
from engine.library.resolve import EMBEDDED_FOLDER
from engine.models import predict as torch_predict
from engine.models.embedded import host_runner, kernel_pass, predict_numpy
from engine.models.embedded.kernel_pass import KernelPass
from engine.models.embedded.model import EmbeddedModel
from engine.models.embedded.numpy_pass import Hole, NumpyPass
from engine.models.embedded.shape import Shape
from engine.models.embedded.slabs import SLAB, SlabContext
from engine.models.embedded.weights import Weights
from engine.protocol.messages import Fill

HOLES = [(0, 1, 0), (3, 2, 4), (64, 1, 8), (130, 9, 0), (63, 0, 5), (100, 40, 3), (0, 70, 0)]
"""(context, appended rows, canvas rows): with edges of slabs, and more and fewer rows than are computed at once."""


@pytest.fixture(params=KERNELS)
def path(request: pytest.FixtureRequest) -> str:
    skip_without(request.param)
    return str(request.param)


def passes_of_a_file(model: EmbeddedModel) -> list[StreamPass]:
    """Return passes at the end of a real file: a context, the anchor and a canvas."""
    passes = []
    for source in source_paths()[:3]:
        fill = Fill(id=1, prefix=source.read_text()[:1500], suffix="\n    return total\n", path=source.name)
        context = model.new_context()
        model.logits([StreamPass(context, model.lay_out(fill).context, [], [])])
        passes.append(StreamPass(context, [model.middle, 300, 301], [model.mask] * 8, range(11)))
    return passes


@pytest.mark.parametrize("runner", ["numpy", *KERNELS])
def test_the_shipped_model_predicts_what_torch_predicts(runner: str) -> None:
    model, reference = load_embedded("embedded", runner), load_embedded("embedded", "fp32")
    found, expected = (np.concatenate(each.logits(passes_of_a_file(each))) for each in (model, reference))
    assert np.abs(found - expected).max() < (1e-3 if runner == "numpy" else 0.05)
    assert (found.argmax(1) == expected.argmax(1)).all()


def test_numpy_computes_a_tiny_model_as_torch_does(tiny_model: Path) -> None:
    model, reference = load_embedded(tiny_model, "numpy"), load_embedded(tiny_model, "fp32")
    rows = [20 + at * 7 % 300 for at in range(90)]
    for each in (0, 50):
        found, expected = (
            one.logits([StreamPass(one.new_context(), rows[each:], [one.mask] * 3, range(len(rows) - each + 3))])[0]
            for one in (model, reference)
        )
        np.testing.assert_allclose(found, expected, atol=1e-3)


@pytest.mark.parametrize("shape", [ODD, WIDE], ids=["odd", "wide"])
def test_every_path_computes_what_numpy_computes(path: str, shape: Shape) -> None:
    weights = random_weights(shape)
    expected, read = run_holes(NumpyPass(weights, shape, np.float16), shape, HOLES)
    found, written = run_holes(KernelPass(weights, shape, path), shape, HOLES)
    np.testing.assert_allclose(found.logits, expected.logits, atol=0.02)
    np.testing.assert_allclose(found.rows, expected.rows, atol=0.02)
    for one, other in zip(read, written, strict=True):
        np.testing.assert_allclose(np.array(one.slabs, np.float32), np.array(other.slabs, np.float32), atol=0.02)


def test_a_hole_gets_the_same_numbers_alone_and_with_others(path: str) -> None:
    kernel = KernelPass(random_weights(ODD), ODD, path)
    together, _ = run_holes(kernel, ODD, HOLES)
    first = 0
    for number, (read, append, canvas) in enumerate(HOLES):
        context = SlabContext(ODD, np.float16)
        context.reserve(read + append + canvas)
        if read:
            kernel.run(random_rows(ODD, read, 0, number), [Hole(read, read, 0, context.slabs)], np.zeros(0, np.int64))
        count = append + canvas
        hole = Hole(count, append, read, context.slabs)
        alone = kernel.run(random_rows(ODD, count, read, 100 + number), [hole], np.arange(count))
        assert np.array_equal(alone.logits, together.logits[first : first + count])
        first += count


def test_two_threads_may_run_one_network(path: str) -> None:
    kernel = KernelPass(random_weights(ODD), ODD, path)
    expected, _ = run_holes(kernel, ODD, HOLES)
    found: list[NDArray[np.float32]] = []
    threads = [threading.Thread(target=lambda: found.append(run_holes(kernel, ODD, HOLES)[0].logits)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    assert all(np.array_equal(logits, expected.logits) for logits in found)


def a_batch(rows: int = 3) -> tuple[NDArray[np.int64], list[Hole], NDArray[np.int64]]:
    context = SlabContext(ODD, np.float16)
    context.reserve(rows)
    return random_rows(ODD, rows, 0), [Hole(rows, rows, 0, context.slabs)], np.arange(rows)


def with_number(field: int, value: int) -> Callable[[], tuple[NDArray[np.int64], list[Hole], NDArray[np.int64]]]:
    def changed() -> tuple[NDArray[np.int64], list[Hole], NDArray[np.int64]]:
        numbers, holes, wanted = a_batch()
        numbers[field, 1] = value
        return numbers, holes, wanted

    return changed


def with_hole(rows: int, append: int, start: int, slabs: int = 1) -> Callable[[], object]:
    def changed() -> object:
        numbers, holes, wanted = a_batch()
        return numbers, [Hole(rows, append, start, holes[0].slabs * slabs)], wanted

    return changed


def with_other_slab(dtype: type[np.generic]) -> Callable[[], object]:
    def changed() -> object:
        numbers, holes, wanted = a_batch()
        return numbers, [Hole(3, 3, 0, [holes[0].slabs[0].astype(dtype)])], wanted

    return changed


@pytest.mark.parametrize(
    ("batch", "says"),
    [
        (with_number(0, 77), "a token is 77; it must be from 0 to 76"),
        (with_number(0, -1), "a token is -1"),
        (with_number(1, ODD.positions), "a position"),
        (with_number(2, 1 << 40), "a hint"),
        (with_number(3, 28), "a strength"),
        (with_number(5, 9), "a gram"),
        (with_hole(2, 2, 0), "fewer rows than the batch"),
        (with_hole(4, 4, 0), "more rows than the batch"),
        (with_hole(3, 4, 0), "wrong numbers of rows"),
        (with_hole(3, 3, SLAB - 2), "too few slabs"),
        (with_hole(3, 3, ODD.positions - 2, 9), "more positions"),
        (with_hole(3, 3, sys.maxsize, 9), "more positions"),
        (with_other_slab(np.float64), "bytes"),
        (lambda: (*a_batch()[:2], np.array([3])), "a wanted row"),
        (lambda: (a_batch()[0][:5], *a_batch()[1:]), "wrong size"),
    ],
)
def test_what_does_not_fit_is_refused_in_one_line(batch: Callable[[], tuple], says: str) -> None:  # type: ignore[type-arg]
    skip_without("plain")
    kernel = KernelPass(random_weights(ODD), ODD)
    with pytest.raises(ValueError, match=says):
        kernel.run(*batch())
    assert np.isfinite(kernel.run(*a_batch()).logits).all()


def test_an_unknown_path_and_a_shape_that_does_not_fit_are_refused() -> None:
    skip_without("plain")
    with pytest.raises(ValueError, match="no path quantum"):
        KernelPass(random_weights(ODD), ODD, "quantum")
    with pytest.raises(ValueError, match=r"array 0 has 3696 bytes; the sizes say 3744"):
        KernelPass(random_weights(ODD), attrs.evolve(ODD, vocabulary=78))


def test_numpy_runs_what_the_kernel_cannot(monkeypatch: pytest.MonkeyPatch) -> None:
    narrow = Shape(70, 16, 1, 2, 64, 8, 9, 4)
    assert isinstance(host_runner.host_pass(random_weights(narrow), narrow), NumpyPass)
    monkeypatch.setattr(kernel_pass, "_kernel", None)
    assert isinstance(host_runner.host_pass(random_weights(ODD), ODD), NumpyPass)
    assert kernel_pass.kernel_paths() == []


def test_a_pass_without_wanted_rows_only_reads(path: str) -> None:
    kernel = KernelPass(random_weights(ODD), ODD, path)
    numbers, holes, _ = a_batch()
    assert kernel.run(numbers, holes, np.zeros(0, np.int64)).logits.shape == (0, 77)
    assert np.abs(holes[0].slabs[0]).max() > 0
    assert kernel.run(numbers[:, :0], [], np.zeros(0, np.int64)).logits.shape == (0, 77)


def test_a_value_beyond_fp16_is_stored_as_the_largest(path: str) -> None:
    config = json.loads((EMBEDDED_FOLDER / "config.json").read_text())
    shape = Shape(**config["shape"])
    weights = Weights.load(EMBEDDED_FOLDER / "model.safetensors")
    name = "blocks.0.qkv.weight"
    weights._stored[name + ".scale"] = weights.int8(name).scales * np.float32(1e6)
    result, contexts = run_holes(KernelPass(weights, shape, path), shape, [(0, 3, 0)])
    assert np.isfinite(np.array(contexts[0].slabs)).all()
    assert np.isfinite(result.logits).all()


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
    found = predict_numpy.predict(logits.copy(), queries, counts, np.array(forbidden), continuing)
    for query, one, other in zip(queries, found, expected, strict=True):
        assert np.array_equal(one.tokens, other.tokens)
        for part in ("probabilities", "named", "continues", *(["entropy"] if query.entropy else [])):
            np.testing.assert_allclose(getattr(one, part), getattr(other, part), rtol=2e-5, atol=1e-7)
        assert isinstance(one, Predictions)


def test_equal_logits_are_ordered_by_their_ids() -> None:
    logits = np.zeros((2, 20), np.float32)
    logits[:, [3, 7, 11]] = 5
    for top in (1, 2, 3):
        (found,) = predict_numpy.predict(
            logits.copy(), [Query(top)], [2], np.zeros(0, np.int64), np.zeros(20, np.float32)
        )
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
    hole = Fill(id=1, prefix="def add(a, b):\\n    return a", suffix="\\n", budget_ms=60000.0)
    print((await scheduler.submit(hole, None).result).candidates[0].text)
    await scheduler.stop()

asyncio.run(fill())
print(sorted({name.partition(".")[0] for name in sys.modules} & {"torch", "transformers"}))
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    lines = ran.stdout.splitlines()
    assert lines[0]
    assert lines[-1] == "[]"
