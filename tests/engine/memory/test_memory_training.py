"""What the mixing network is trained on, and that it comes out as it was trained."""

import hashlib
from pathlib import Path

import numpy as np
import pytest
import torch
from support.sources import source_paths

import engine
from engine.corpus.corpus import FEWEST_FILES, packages
from engine.corpus.languages import File
from engine.memory.followers import GROUPS_A_ROW
from engine.memory.mixing_network import MIXING_FILE, MixingNetwork
from engine.memory.row_memory import SCOPES
from engine.models.embedded.model import EmbeddedModel
from engine.models.load import load
from engine.training.memory import TorchMixing, TrainingBatch, fit, judge, measure
from engine.training.memory_rows import HoleReader, Rows, rows_of

pytestmark = pytest.mark.slow
ENGINE = Path(engine.__file__).parent
FUNCTION = """
def {name}(self, first_value, second_value):
    if first_value is None:
        raise ValueError("no first value")
    self.total += first_value * second_value
    return self.total
"""


def package(name: str, files: int) -> list[File]:
    """Return files in the order of a corpus: by the hashes of their paths."""
    names = sorted(
        (f"{name}/{file}.py" for file in range(files)), key=lambda path: hashlib.sha1(path.encode()).digest()
    )
    text = "".join(FUNCTION.format(name=f"compute_{number}") for number in range(8))
    return [File(path, "python", f"# {path}\n{text}") for path in names]


@pytest.fixture(scope="module")
def rows() -> Rows:
    return rows_of_package(short_share=0.0)


def rows_of_package(short_share: float) -> Rows:
    model = load("embedded")
    assert isinstance(model, EmbeddedModel)
    return Rows.joined([rows_of(hole) for hole in HoleReader(model, 0, short_share).read(package("a", 6), 3)])


def test_the_packages_of_a_corpus_are_separated() -> None:
    first, second, small = package("package", 9), package("package", 8), package("other", FEWEST_FILES - 1)
    shifted = [File(file.path.replace("/", "/x"), file.language, file.text) for file in first]
    assert list(packages([*second, *small])) == [second]
    parts = list(packages([*first, *small, *shifted]))
    assert parts[0] == first
    assert sum(map(len, parts)) <= len(first) + len(shifted)


def test_code_that_the_workspace_repeats_is_expected(rows: Rows) -> None:
    of_longest = rows.target_counts.max(2)
    assert (of_longest[:, 1] > 0).mean() > 0.7
    assert rows.statistics.present[:, 1].mean() > 0.9
    assert np.isfinite(rows.features()).all()
    assert ((rows.target >= 0) & (rows.target <= 1)).all()


def test_a_short_file_has_no_workspace(rows: Rows) -> None:
    short = rows_of_package(short_share=1.0)
    assert not short.statistics.present[:, 1].any()
    assert short.statistics.present[:, 0].any()
    assert short.statistics.totals[:, 0].mean() < rows.statistics.totals[:, 0].mean(), "the file has less to count"


def test_a_scope_that_is_left_out_counts_nothing(rows: Rows) -> None:
    alone = rows.only(0)
    assert not alone.statistics.present[:, 1].any()
    assert alone.statistics.present[:, 2].any(), "the words of the file still count"
    assert not alone.statistics.totals[:, 2, 0].any(), "those of the other files do not"
    assert not alone.target_counts[:, 1].any()
    assert (alone.statistics.totals[:, 0] == rows.statistics.totals[:, 0]).all()


@pytest.mark.slow
def test_a_gate_learns_to_believe_a_workspace_that_repeats_itself(rows: Rows) -> None:
    mixing = fit(rows, seed=0, steps=100).export()
    nats = measure(mixing, rows)
    assert nats.both < min(nats.file, nats.workspace) + 0.05
    assert max(nats.file, nats.workspace) < nats.model


def test_the_exported_gate_mixes_as_the_trained_one(rows: Rows) -> None:
    torch.manual_seed(0)
    trained = TorchMixing(TrainingBatch.of(rows).features)
    with torch.no_grad():
        expected = trained(TrainingBatch.of(rows)).numpy()
    mixing, statistics = trained.export(), rows.statistics
    weights = mixing.weights(rows.features(), statistics.present)
    of_runs = mixing.run_weights(statistics)
    assert of_runs.shape == (len(expected), SCOPES, GROUPS_A_ROW)
    shares = (of_runs * rows.target_counts / np.maximum(statistics.totals, 1)).sum(-1)
    assert weights[:, 0] * rows.target + (weights[:, 1:] * shares).sum(-1) == pytest.approx(expected, abs=1e-4)


def test_training_goes_on_from_what_another_gate_has_learned(rows: Rows) -> None:
    torch.manual_seed(0)
    batch = TrainingBatch.of(rows)
    trained, again = TorchMixing(batch.features), TorchMixing(TrainingBatch.of(rows.only(0)).features)
    again.go_on_from(trained.export())
    with torch.no_grad():
        torch.testing.assert_close(again(batch), trained(batch), atol=1e-5, rtol=1e-4)


def test_the_first_choice_of_a_mixture_is_judged(rows: Rows) -> None:
    model = load("embedded")
    assert isinstance(model, EmbeddedModel)
    mixing = fit(rows, seed=0, steps=100).export()
    judged = judge(HoleReader(model, 1), mixing, [package("b", 6)], most_files=1)
    assert sum(each.right for each in judged) > 0.7 * len(judged)
    assert all(0 <= each.confidence <= 1 + 1e-6 for each in judged), "more than a sum of fp32 is off by"


@pytest.mark.timeout(400)
def test_the_shipped_gate_lowers_the_loss_on_a_workspace_it_never_saw() -> None:
    model = load("embedded")
    assert isinstance(model, EmbeddedModel)
    files = [File(f"midspan/{path.stem}", "python", path.read_text("utf-8")) for path in source_paths()]
    rows = Rows.joined([rows_of(hole) for hole in HoleReader(model, 0, short_share=0.0).read(files, 10)])
    mixing = MixingNetwork.load(ENGINE / "weights" / MIXING_FILE)
    weights = mixing.weights(rows.features(), rows.statistics.present)
    shares = mixing.run_weights(rows.statistics) * rows.target_counts / np.maximum(rows.statistics.totals, 1)
    mixed = weights[:, 0] * rows.target + (weights[:, 1:] * shares.sum(-1)).sum(-1)
    assert np.log(mixed).mean() > np.log(rows.target).mean() + 0.2
