"""A left-to-right model with an adapter beside it drafts with canvases, and writes what it writes without."""

import json
import shutil
from pathlib import Path

import attrs
import numpy as np
import pytest
from safetensors.numpy import save_file
from support.fill_tasks import run_to_end, started
from support.gguf_files import SHAPES, VOCABULARY, TinyNetwork, tiny_network
from support.kernel_passes import random_adapter, skip_without

from engine.corpus.languages import File
from engine.evaluation.measure import measure
from engine.evaluation.rows import TWIN, VERIFY, held_out, strategies_of
from engine.evaluation.summary import accepted_an_iteration, same_as_twin
from engine.fill.interface import FillStrategy
from engine.fill.stream import StreamPass
from engine.models.embedded.adapter import ADAPTER_FILE, Adapter
from engine.models.embedded.shape import Floats, Shape
from engine.models.left_to_right.load import load_gguf
from engine.models.left_to_right.model import LeftToRightModel
from engine.models.load import load as load_any
from engine.protocol.messages import Fill

FILL = Fill(id=1, prefix="def total(values):\n    result = 0\n", suffix="\n\nx = 1\n", extent="lines", max_tokens=40)


@pytest.fixture(params=SHAPES)
def tiny(request: pytest.FixtureRequest) -> TinyNetwork:
    return tiny_network(request.param)


def shape_of(model: LeftToRightModel) -> Shape:
    """Return the shape of a model that torch runs."""
    from engine.models.embedded.torch_runner import TorchRunner

    assert isinstance(model.runner, TorchRunner)
    return model.runner.network.shape


def write_adapter(source: Path, target: Path) -> Adapter:
    """Write a random adapter for the GGUF or folder at `source`."""
    from engine.training.adapt import frozen_model

    model = frozen_model(str(source), 1)
    assert model.adapter_key is not None
    adapter = random_adapter(shape_of(model))
    adapter.save(target, model.adapter_key)
    return adapter


def written(model: LeftToRightModel, rule: FillStrategy | None = None) -> list[int]:
    filling = run_to_end(model, started(model, FILL, rule or model.default))
    return list(filling.committed().tokens)


def logits(model: LeftToRightModel, mask: int) -> Floats:
    """Return the logits of two stream rows, and of a canvas after them."""
    context = model.new_context()
    model.runner.logits([StreamPass(context, list(range(20, 60)), [], [])])
    context.tokens += range(20, 60)
    return model.runner.logits([StreamPass(context, [5, 6], [mask] * 4, range(6))])


def test_an_adapter_beside_a_gguf_gives_it_a_canvas_and_leaves_its_text(tiny: TinyNetwork, tmp_path: Path) -> None:
    path = tiny.save_gguf(tmp_path / "tiny.gguf")
    without = load_gguf(path, 1)
    assert without.canvas_tokens == 0
    write_adapter(path, tmp_path / ADAPTER_FILE)
    model = load_gguf(path, 1)
    assert (model.canvas_tokens, model.mask) == (8, VOCABULARY)
    assert np.array_equal(logits(model, model.mask)[:2], logits(without, 0)[:2])
    expected = written(without, FillStrategy("left-to-right"))
    assert written(without) == expected
    assert written(model, FillStrategy("left-to-right")) == expected
    assert written(model) == expected
    first = started(model, FILL, model.default).next_pass()
    assert isinstance(first, StreamPass)
    assert first.canvas
    assert set(first.canvas) == {model.mask}


def test_numpy_and_torch_run_the_adapter_of_a_gguf_alike(
    tiny: TinyNetwork, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tiny.save_gguf(tmp_path / "tiny.gguf")
    write_adapter(path, tmp_path / ADAPTER_FILE)
    in_torch = load_gguf(path, 1, "cpu", "fp32")
    monkeypatch.setenv("MIDSPAN_KERNEL", "numpy")
    found, expected = (logits(model, model.mask) for model in (load_gguf(path, 1), in_torch))
    np.testing.assert_allclose(found, expected, atol=2e-2 * np.abs(expected).max())


def test_the_adapter_of_a_folder_is_beside_its_weights_or_where_the_notes_say(tmp_path: Path) -> None:
    skip_without("plain")
    folder = tiny_network("qwen2").save_folder(tmp_path / "tiny")

    def load() -> LeftToRightModel:
        model = load_any(str(folder), threads=1, device="cpu")
        assert isinstance(model, LeftToRightModel)
        return model

    expected = written(load())
    write_adapter(folder, folder / ADAPTER_FILE)
    assert load().canvas_tokens == 8
    assert written(load()) == expected
    shutil.move(folder / ADAPTER_FILE, folder / "drafts.safetensors")
    (folder / "midspan.json").write_text(json.dumps({"adapter": "drafts.safetensors"}))
    assert load().canvas_tokens == 8
    (folder / "midspan.json").write_text(json.dumps({"adapter": "none.safetensors"}))
    (folder / "drafts.safetensors").unlink()
    assert load().canvas_tokens == 0


def test_a_mixing_network_in_a_folder_is_none_of_its_weights(tmp_path: Path) -> None:
    skip_without("plain")
    folder = tiny_network("qwen2").save_folder(tmp_path / "tiny")
    save_file({"hidden": np.zeros(3, np.float32)}, folder / "memory.safetensors")
    assert isinstance(load_any(str(folder), threads=1, device="cpu"), LeftToRightModel)


@pytest.mark.parametrize("problem", ["other weights", "damaged"])
def test_a_model_runs_without_an_adapter_that_is_not_its_own_and_the_log_says_so_in_a_line(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, problem: str
) -> None:
    path = tiny_network("qwen2").save_gguf(tmp_path / "tiny.gguf")
    expected = written(load_gguf(path, 1))
    if problem == "damaged":
        write_adapter(path, tmp_path / ADAPTER_FILE)
        with (tmp_path / ADAPTER_FILE).open("r+b") as file:
            file.truncate(1000)
    else:
        other = tiny_network("qwen2")
        for weight in other.network.parameters():
            weight.data = weight.data * 1.25
        write_adapter(other.save_gguf(tmp_path / "other.gguf"), tmp_path / ADAPTER_FILE)
    model = load_gguf(path, 1)
    assert model.canvas_tokens == 0
    assert written(model) == expected
    (line,) = [record.getMessage() for record in caplog.records if "adapter" in record.getMessage()]
    assert line.startswith(f"the adapter {tmp_path / ADAPTER_FILE} is not used: ")
    assert line.endswith("; the model runs without it")
    assert "\n" not in line


def test_a_fill_near_the_end_of_the_context_has_room_for_its_canvas(tmp_path: Path) -> None:
    path = tiny_network("qwen2").save_gguf(tmp_path / "tiny.gguf")
    write_adapter(path, tmp_path / ADAPTER_FILE)
    model = load_gguf(path, 1)
    fill = attrs.evolve(FILL, prefix="value = 1\n" * 4000, max_tokens=500)
    filling = run_to_end(model, started(model, fill, model.default))
    assert filling.finish is not None


async def test_an_evaluation_finds_the_same_texts_and_no_draft_of_another_strategys_text(tmp_path: Path) -> None:
    path = tiny_network("qwen2").save_gguf(tmp_path / "tiny.gguf")
    tasks = held_out(
        [File("total.py", "python", "def total(value):\n    return value + 1\n\n\n" * 9)], "python", "lines", 3
    )
    without = await measure(load_gguf(path, 1), tasks, strategies_of(load_gguf(path, 1), (TWIN, VERIFY)))
    assert accepted_an_iteration(without) == 1.0
    write_adapter(path, tmp_path / ADAPTER_FILE)
    rows = await measure(load_gguf(path, 1), tasks, (TWIN, VERIFY))
    assert same_as_twin(rows) == same_as_twin(without) == (3, 3)
