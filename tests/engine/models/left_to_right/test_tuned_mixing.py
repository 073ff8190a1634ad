"""How much the memory is believed is fitted on a user's own code, and held out by file."""

from pathlib import Path

import numpy as np
import pytest
from mixing_networks import random_network
from support.fill_tasks import run_to_end
from support.gguf_files import tiny_network
from support.kernel_passes import skip_without

from engine.errors import ModelError
from engine.fill.interface import Bounds, FillTask
from engine.fill.sampler import Sampler
from engine.memory.mixing_network import FEATURES, MixingNetwork, new_mixing_of, own_mixing_of
from engine.memory.row_memory import SCOPES
from engine.memory.workspace import EngineMemories
from engine.models.left_to_right.load import load_gguf
from engine.protocol.messages import Fill
from engine.training.tuned_mixing import _Batch, tune

REPEATED = (
    "def total(values):\n    result = 0\n    for value in values:\n        result += value\n    return result\n\n"
)


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("code")
    for number in range(7):
        (folder / f"module{number}.py").write_text(REPEATED * 4)
    (folder / "data.json").write_text("[]" * 500)
    return folder


@pytest.fixture
def path(tmp_path: Path) -> Path:
    skip_without("plain")
    return tiny_network("qwen2").save_gguf(tmp_path / "tiny.gguf", "Q4_0")


def test_the_slopes_are_those_of_the_loss() -> None:
    rng, network = np.random.default_rng(0), random_network(1, 0.1)
    features = rng.normal(size=(20, network.hidden.shape[0])).astype(np.float32)
    shares = rng.uniform(0.01, 1, (20, network.output.shape[1])).astype(np.float32)
    present = rng.random((20, shares.shape[1] - 1)) < 0.7
    batch = _Batch(features, present, shares)
    weights = [network.hidden, network.hidden_bias, network.output, network.output_bias]

    def loss() -> float:
        own = network.weights(features, present)  # of the same arrays
        return float(-np.log((own.astype(np.float64) * shares).sum(1)).mean())

    for each, slope in zip(weights, batch.slopes(weights, np.arange(20)), strict=True):
        direction = rng.normal(size=each.shape).astype(np.float32)
        before = each.copy()
        each += 2e-4 * direction
        above = loss()
        each[...] = before - 2e-4 * direction
        below = loss()
        each[...] = before
        assert (above - below) / 4e-4 == pytest.approx(float((slope * direction).sum()), rel=0.05, abs=2e-3)


def test_a_model_that_knows_nothing_learns_to_believe_code_that_repeats(path: Path, workspace: Path) -> None:
    tuned = tune(load_gguf(path, 1), workspace, 0.05)
    assert tuned.helps
    assert tuned.rows > 100
    assert min(tuned.tuned, tuned.shipped) < 0.5 * tuned.alone


def test_a_network_that_is_off_gives_the_model_all_the_weight(path: Path) -> None:
    off = MixingNetwork.without()
    off.save(new_mixing_of(path))
    kept = MixingNetwork.load(new_mixing_of(path))
    assert kept.is_off
    assert not MixingNetwork.shipped().is_off
    features, present = np.ones((2, FEATURES), np.float32), np.ones((2, SCOPES), np.bool_)
    assert kept.weights(features, present).tolist() == [[1.0] + [0.0] * SCOPES] * 2


def test_a_model_mixes_the_memory_as_it_is_tuned_to(path: Path, workspace: Path) -> None:
    fill = Fill(id=1, prefix=REPEATED + "def total(values):\n    result", suffix="\n", extent="line", max_tokens=8)

    def filled() -> str:
        model = load_gguf(path, 1)
        memories = EngineMemories(model, model.tokenizer, MixingNetwork.of_model(path), 1 << 24, model.memory_use)
        memories.learn("code", "other.py", np.array(memories.tokenize(REPEATED * 3), np.int32))
        layout = model.lay_out(fill)
        memory = memories.for_fill(fill, layout)
        task = FillTask(model.new_context(), layout, Bounds(fill.extent, 8), Sampler(), model.default, memory)
        return "".join(model.texts_of(run_to_end(model, model.start_fill(task)).committed().tokens))

    MixingNetwork.without().save(new_mixing_of(path))
    assert not filled().startswith(" result = 0")
    tune(load_gguf(path, 1), workspace, 0).mixing.save(new_mixing_of(path))
    assert own_mixing_of(path) == path.with_name("tiny.gguf.memory.safetensors")
    assert filled().startswith(" result = 0")


def test_too_few_files_are_refused_in_one_line(path: Path, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="0 files of code are too few to tune on; at least 5 are needed"):
        tune(load_gguf(path, 1), tmp_path, 0)
