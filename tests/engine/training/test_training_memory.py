"""The memory in the loss: what a package's other files say of a target takes its share of the gradient."""

import hashlib
from pathlib import Path

import attrs
import numpy as np
import pytest
import torch
from gates import random_gate
from small_run import SHAPE, small_config, source_files
from torch.nn import functional as F

from engine.corpus.languages import File
from engine.memory.file_scan import FileScan
from engine.memory.followers import RUNS
from engine.memory.index import RunIndex
from engine.memory.mixture import Mixture
from engine.memory.row_memory import followers_of_rows
from engine.memory.row_statistics import Statistics
from engine.models.embedded.network import Network
from engine.models.stock.token_bytes import load_tokenizer
from engine.training import int8_head, objective, packed_batch, row_losses
from engine.training.collator import Collator
from engine.training.int8 import Int8Head, products_are_exact
from engine.training.int8_logits import Guess, Head
from engine.training.line_encoder import LineEncoder
from engine.training.loader import special_tokens_of
from engine.training.memory_odds import MemoryOdds, blind_features
from engine.training.workspace_holes import Workspace, WorkspaceHoles


@pytest.fixture
def gate_path(tmp_path: Path) -> Path:
    random_gate(1, 0.2).save(tmp_path / "gate.safetensors")
    return tmp_path / "gate.safetensors"


def two_packages() -> list[File]:
    files = source_files()
    half = len(files) // 2
    named = [("one", file) for file in files[:half]] + [("two", file) for file in files[half:]]
    renamed = [attrs.evolve(file, path=f"{name}/{file.path}") for name, file in named]
    return sorted(renamed, key=lambda file: (file.path[:3], hashlib.sha1(file.path.encode()).digest()))


def workspace_holes(tiny_model: Path, encode: LineEncoder) -> WorkspaceHoles:
    config = small_config()
    return WorkspaceHoles(two_packages(), config.corpus.shares, config.holes.weights, encode, 0)


def test_a_hole_brings_the_files_of_its_own_package(tiny_model: Path) -> None:
    encode = LineEncoder(load_tokenizer(tiny_model / "tokenizer.json"))
    files = {file.path: file for file in two_packages()}
    draws = workspace_holes(tiny_model, encode)
    seen = set()
    for _ in range(30):
        hole, workspace = draws.draw()
        seen.add(package := hole.path.split("/")[0])
        assert hole.prefix + hole.middle + hole.suffix == files[hole.path].text
        of_package = [file for path, file in files.items() if path.startswith(package + "/")]
        assert workspace.index.tokens == sum(len(encode(file.text)) for file in of_package)
        before = workspace.index.tokens
        workspace.index.remove(workspace.file)
        assert workspace.index.tokens == before - len(encode(files[hole.path].text))
        workspace.index.add(workspace.file, np.array(encode(files[hole.path].text), np.int32))
    assert seen == {"one", "two"}


def test_the_odds_of_a_target_are_those_of_the_mixture(gate_path: Path) -> None:
    random = np.random.default_rng(0)
    above, below, middle = (random.integers(0, 6, size).tolist() for size in (40, 30, 9))
    other, own = (random.integers(0, 6, 60).astype(np.int32) for _ in range(2))
    index, gate, known = RunIndex(), random_gate(1, 0.2), 25
    index.add(0, other)
    index.add(1, own)
    targets = [*above[known:], *middle]

    odds = MemoryOdds(gate_path).of(Workspace(index, 1), above, below, known, targets)

    only_other = RunIndex()
    only_other.add(0, other)
    for number, target in enumerate(targets):
        end = min(known + number, len(above))
        history = [*above[:known], *targets[:number]][-RUNS[-1] :]
        found = followers_of_rows(FileScan(above[:end], below), only_other, None, [history], {})
        mixture, statistics = Mixture.of(found, gate, 100), Statistics.of(found.joined)
        weights = gate.weights(blind_features(statistics), statistics.present)[0]
        expected = (mixture.shares[0][mixture.named[0] == target].sum(0) * weights[1:]).sum() / weights[0]
        assert odds[number] == pytest.approx(expected, rel=1e-3, abs=1e-6)
    assert (odds > 0).sum() > 10


def test_a_batch_knows_the_odds_of_the_prefix_and_the_middle_only(tiny_model: Path, gate_path: Path) -> None:
    config, tokenizer = small_config(), load_tokenizer(tiny_model / "tokenizer.json")
    special_tokens = special_tokens_of(tokenizer)
    collator = Collator(config, tokenizer, special_tokens, 0, MemoryOdds(gate_path))
    drawn = [workspace_holes(tiny_model, collator.encode).draw() for _ in range(3)]
    holes, workspaces = [hole for hole, _ in drawn], [workspace for _, workspace in drawn]
    length = config.model.context_tokens
    packed = collator.pack([*holes, holes[0]], 32, workspaces)
    remembered = packed[11, :, :length].view(np.float32)
    assert (remembered[:3] > 0).any(1).all()
    assert not remembered[3].any(), "a hole without a workspace has no memory"
    for row in range(3):
        stream = packed[0, row, :length].tolist()
        prefix = stream.index(special_tokens.prefix)
        assert not remembered[row, :prefix].any()
        # No odds for a target that the hole does not have.
        assert not remembered[row][packed[9, row, :length].view(np.float32) == 0].any()


@pytest.mark.skipif(not products_are_exact(), reason="torch's int8 products overflow on this processor")
def test_the_head_in_int8_descends_the_mixtures_loss() -> None:
    torch.manual_seed(0)
    layer = Int8Head(64, 500, bias=False)
    layer.weight.data = torch.randn(500, 64) * 0.3
    layer.compiled = False
    guess = Guess(
        torch.randn(300, 64).requires_grad_(), torch.randint(500, (300, 1)), (torch.randn(300, 1) + 2).requires_grad_()
    )
    targets, weights, remembered = torch.randint(500, (300,)), torch.rand(300) / 300, torch.rand(300) * 0.1
    remembered[::3] = 0
    logits = (guess.rows @ layer.weight.t()).scatter_add(1, guess.tokens, guess.added)
    probabilities = logits.softmax(-1).gather(1, targets[:, None])[:, 0]
    expected = -((probabilities + remembered).log() * weights).sum()
    loss, plain = int8_head.losses(Head.of(layer), guess, targets, weights, remembered=remembered)
    assert float(loss.detach()) == pytest.approx(float(expected.detach()), rel=0.01)
    torch.testing.assert_close(plain, F.cross_entropy(logits, targets, reduction="none"), atol=0.1, rtol=0)
    given = (guess.rows, guess.added, layer.weight)
    for actual, exact in zip(torch.autograd.grad(loss, given), torch.autograd.grad(expected, given), strict=True):
        assert float((actual - exact).norm() / exact.norm()) < 0.05


def test_both_ways_to_compute_the_loss_count_the_memory(tiny_model: Path, gate_path: Path) -> None:
    config, tokenizer = small_config(), load_tokenizer(tiny_model / "tokenizer.json")
    torch.manual_seed(0)
    network = Network(attrs.evolve(SHAPE, vocabulary=tokenizer.get_vocab_size()))
    network.initialize()
    collator = Collator(config, tokenizer, special_tokens_of(tokenizer), 0, MemoryOdds(gate_path))
    drawn = [workspace_holes(tiny_model, collator.encode).draw() for _ in range(4)]
    packed = collator.pack([hole for hole, _ in drawn], 32, [workspace for _, workspace in drawn])
    batch = packed_batch.unpack(torch.from_numpy(packed), network.shape, torch.device("cpu"))
    selected = objective.losses(network, batch).stream
    rows = objective.forward(network, batch, objective.visibility(batch))
    fixed = row_losses.losses(network, rows, batch, 0.0)
    assert float(selected) == pytest.approx(float(fixed.stream), rel=1e-4)
    plain = float(fixed.sums[0] / fixed.weights[0])
    assert float(selected) < plain - 0.01
