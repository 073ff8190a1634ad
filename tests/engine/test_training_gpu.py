"""What training does otherwise on a GPU, held against what it does on a CPU; and the way of a run there and back."""

import random
from pathlib import Path

import attrs
import msgpack
import numpy as np
import pytest
import torch
from torch.nn.attention.flex_attention import create_block_mask

from engine.errors import MidspanError
from engine.models.lookup import Lookup
from engine.models.network import Network, Shape
from engine.models.pieces import load_tokenizer
from engine.models.quantized import pack
from engine.training import attention, checkpoint, corpus, gpu, objective, row_losses, shards, wire
from engine.training.batched_muon import BatchedMuon
from engine.training.collator import BulkCollator, LineEncoder
from engine.training.config import Config, load_config
from engine.training.holes import Hole, Sampler
from engine.training.loader import marks_of
from engine.training.muon import Muon
from engine.training.repeats import Repeats
from engine.training.train import optimizers, rate, train

ROOT = Path(__file__).parents[2]
TRAINING = ROOT / "engine" / "training"
SHAPE = Shape(
    vocabulary=400, width=32, layers=2, heads=2, context_tokens=96, canvas_tokens=8, gram_buckets=64, gram_width=16
)


def source_files() -> list[corpus.File]:
    paths = sorted((ROOT / "engine").glob("*.py"))
    return [corpus.File(path.name, "python", path.read_text()) for path in paths]


@pytest.fixture
def config() -> Config:
    full = load_config(TRAINING / "cpu.toml")
    return attrs.evolve(
        full,
        model=SHAPE,
        holes=attrs.evolve(full.holes, suffix_tokens=24, middle_tokens=16),
        objective=attrs.evolve(full.objective, canvas_rows_early=32, canvas_rows_late=32),
        optimizer=attrs.evolve(full.optimizer, batch=4, checkpoint_minutes=0.02, int8=False),
    )


def holes_of(config: Config, count: int, seed: int = 0) -> list[Hole]:
    sampler = Sampler(source_files(), config.corpus.shares, config.holes.weights, seed)
    return [sampler.draw() for _ in range(count)]


@pytest.fixture
def batch(tiny_model: Path, config: Config) -> objective.Batch:
    tokenizer = load_tokenizer(tiny_model / "tokenizer.json")
    return BulkCollator(config, tokenizer, marks_of(tokenizer), 0).batch(holes_of(config, 5), 32)


@pytest.fixture
def network() -> Network:
    torch.manual_seed(0)
    network = Network(SHAPE)
    for matrix in network.parameters():
        torch.nn.init.normal_(matrix, std=0.2)
    return network


def gradients_of(network: Network, loss: torch.Tensor) -> list[torch.Tensor]:
    return list(torch.autograd.grad(loss, [*network.blocks.parameters(), network.embed.weight]))


def test_the_fused_attention_equals_the_other_forward_and_backward(
    batch: objective.Batch, network: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    # torch has this operator's gradient for every device but asks for a GPU, where the compiled kernel is.
    monkeypatch.setattr("torch.nn.attention.flex_attention._validate_device", lambda *_: None)
    mask = attention.block_mask(batch.anchors, batch.owners, batch.stream_rows, block=32)
    weights = torch.randn(5, 128, 32)
    found = [objective.forward(network, batch, seen) for seen in (objective.visibility(batch), mask)]
    torch.testing.assert_close(found[1], found[0], atol=1e-5, rtol=1e-4)
    grown = [gradients_of(network, (rows * weights).sum()) for rows in found]
    for one, other in zip(*grown, strict=True):
        torch.testing.assert_close(other, one, atol=1e-4, rtol=1e-3)


def test_the_mask_lists_each_block_that_is_seen_and_no_other(batch: objective.Batch) -> None:
    mask = attention.block_mask(batch.anchors, batch.owners, batch.stream_rows, block=16)
    assert mask.mask_mod is not None
    every = create_block_mask(mask.mask_mod, 5, None, 128, 128, device="cpu", BLOCK_SIZE=16)
    assert torch.equal(mask.to_dense(), every.to_dense())
    dense = torch.ones(5, 96, 96, dtype=torch.bool).tril()
    rows = torch.arange(128)
    place = torch.arange(5)[:, None, None]
    told = mask.mask_mod(place, torch.tensor(0), rows[:, None], rows)
    assert torch.equal(told[:, :96, :96], dense)
    assert not told[:, :96, 96:].any(), "the stream sees a canvas"
    assert torch.equal(told[:, 96:], objective.visibility(batch)[:, 0])  # type: ignore[index]


def test_rows_that_fit_no_block_are_told_in_one_line(batch: objective.Batch) -> None:
    with pytest.raises(ValueError, match="multiples of 128") as caught:
        attention.block_mask(batch.anchors, batch.owners, batch.stream_rows)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("distilled", [0.0, 0.5])
def test_losses_of_all_rows_equal_those_of_the_rows_that_count(
    batch: objective.Batch, network: Network, distilled: float
) -> None:
    expected = objective.losses(network, batch, distilled)
    rows = objective.forward(network, batch, objective.visibility(batch))
    found = row_losses.losses(network, rows, batch, distilled)
    torch.testing.assert_close(found.stream, expected.stream)
    torch.testing.assert_close(found.canvas, expected.canvas)
    assert not found.told().requires_grad, "a sum of what is told would keep every step's graph"
    told = found.told().tolist()
    assert told[2:] == pytest.approx([expected.canvas_full, expected.canvas_partial], rel=1e-4)
    grown = [gradients_of(network, losses.stream + losses.canvas) for losses in (expected, found)]
    for one, other in zip(*grown, strict=True):
        torch.testing.assert_close(other, one, atol=1e-5, rtol=1e-3)


def test_levels_share_out_the_canvases_by_how_much_is_masked(batch: objective.Batch, network: Network) -> None:
    found = row_losses.losses(network, objective.forward(network, batch, objective.visibility(batch)), batch, 0.0)
    weights = batch.weights[:, batch.stream_rows :]
    assert float(found.weights[1:].sum()) == pytest.approx(float(weights.sum()), rel=1e-5)
    assert float(found.weights[3]) == pytest.approx(float(weights[batch.masked <= 0.5].sum()), rel=1e-5)


def test_every_line_by_itself_gives_the_tokens_of_the_whole(tiny_model: Path) -> None:
    tokenizer = load_tokenizer(tiny_model / "tokenizer.json")
    encode = LineEncoder(tokenizer)
    texts = [file.text for file in source_files()]
    for text in (*texts, *texts[:2], "", "\n", "\n\n  a\n", "a\r\nb\r\r\n", "  x = 1\n\n\ty\n", "no newline", "\r\n x"):
        assert encode(text) == tokenizer.encode(text, add_special_tokens=False).ids


def test_the_quick_collator_lays_out_and_looks_up_as_the_other(tiny_model: Path, config: Config) -> None:
    tokenizer = load_tokenizer(tiny_model / "tokenizer.json")
    marks = marks_of(tokenizer)
    slow, quick = (kind(config, tokenizer, marks, 3) for kind in (objective.Collator, BulkCollator))
    holes = holes_of(config, 30)
    for hole in holes:
        one, other = slow._lay_out(hole), quick._lay_out(hole)
        assert (one[0], one[2:]) == (other[0], other[2:])
        assert np.array_equal(one[1], other[1])
        expected, found = Lookup(one[0], marks, 64).stream(), Repeats(one[0], marks, 64).stream()
        assert all(np.array_equal(*pair) for pair in zip(attrs.astuple(expected), attrs.astuple(found), strict=True))


def test_canvases_of_the_quick_collator_are_the_engines(tiny_model: Path, config: Config) -> None:
    tokenizer = load_tokenizer(tiny_model / "tokenizer.json")
    marks = marks_of(tokenizer)
    batch = BulkCollator(config, tokenizer, marks, 0).batch(holes_of(config, 12), 48)
    rows = batch.inputs
    for row in range(12):
        stream = batch.tokens[row, :96]
        stream = stream[stream != marks.pad].tolist()
        lookup = Lookup(stream, marks, 64)
        assert int(batch.anchors[row, 0]) == stream.index(marks.middle)
        for owner in batch.owners[row].unique():
            own = 96 + torch.nonzero(batch.owners[row] == owner)[:, 0]
            anchor = int(batch.anchors[row, own[0] - 96])
            hints = lookup.canvas(anchor, rows.tokens[row, own].numpy())
            assert rows.hints[row, own].tolist() == hints.tokens.tolist()
            assert rows.strengths[row, own].tolist() == hints.strengths.tolist()
            assert rows.grams[row, own].tolist() == hints.grams.tolist()
            assert rows.positions[row, own].tolist() == list(range(anchor + 1, anchor + 1 + len(own)))
            known = [*stream, *[marks.end] * 64][anchor + 1 : anchor + 2 + len(own)]
            assert batch.targets[row, own].tolist() == known[1:]
            shown, asked = rows.tokens[row, own], batch.weights[row, own] > 0
            assert shown[0] == marks.mask
            assert asked[-1]
            assert torch.equal(shown[1:] == marks.mask, asked[:-1])
            free = torch.tensor(known[:-1])
            assert torch.equal(shown[shown != marks.mask], free[shown != marks.mask])
            behind = anchor + 2 + torch.arange(len(own)) >= len(stream)
            expected = torch.where(behind, config.objective.padding_weight, 1.0) * asked
            torch.testing.assert_close(batch.weights[row, own], expected)


def test_both_collators_draw_with_the_same_odds(tiny_model: Path, config: Config) -> None:
    tokenizer = load_tokenizer(tiny_model / "tokenizer.json")
    told = []
    for kind in (objective.Collator, BulkCollator):
        batch = kind(config, tokenizer, marks_of(tokenizer), 0).batch(holes_of(config, 400), 64)
        canvases = (batch.owners.amax(1) + 1).float().mean() / 10
        share = batch.anchors.float().mean() / 96
        drawn = ((batch.masked == 1).float().mean(), batch.masked.mean(), (batch.weights[:, 96:] > 0).float().mean())
        told.append([float(value) for value in (canvases, share, *drawn)])
    assert told[1] == pytest.approx(told[0], abs=0.03)


def test_a_wire_carries_what_counts(batch: objective.Batch, tiny_model: Path, config: Config) -> None:
    tokenizer = load_tokenizer(tiny_model / "tokenizer.json")
    packed = BulkCollator(config, tokenizer, marks_of(tokenizer), 0).packed(holes_of(config, 5), 32)
    stream, canvas = wire.counted(torch.from_numpy(packed), 96)
    assert stream == int((batch.weights[:, :96] > 0).sum()) > 0
    assert canvas == int((batch.weights[:, 96:] > 0).sum()) > 0


def test_muon_of_many_matrices_is_muon_of_each() -> None:
    torch.manual_seed(0)
    shapes = [(32, 16), (16, 32), (32, 16), (16, 16)]
    start = [torch.randn(shape) for shape in shapes]
    gradients = [[torch.randn(shape) for shape in shapes] for _ in range(3)]
    chains = []
    for kind in (Muon, BatchedMuon):
        matrices = [torch.nn.Parameter(each.clone()) for each in start]
        chains.append((matrices, kind(matrices, lr=0.02, weight_decay=0.01)))
    for step in gradients:
        for matrices, optimizer in chains:
            for matrix, gradient in zip(matrices, step, strict=True):
                matrix.grad = gradient.clone()
            optimizer.step()
    for one, other, begun in zip(chains[0][0], chains[1][0], start, strict=True):
        assert float((one - other).detach().norm() / (one - begun).detach().norm()) < 0.03, (
            "further apart than bf16 explains"
        )
    chains[0][1].load_state_dict(chains[1][1].state_dict())


@pytest.fixture
def work(tiny_model: Path, tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    (folder / "corpus").mkdir(parents=True)
    rows = msgpack.packb([attrs.astuple(file) for file in source_files()])
    for split in ("train", "held-out"):
        (folder / "corpus" / f"{split}.msgpack").write_bytes(rows)
    (folder / "tokenizer.json").write_bytes((tiny_model / "tokenizer.json").read_bytes())
    return folder


def test_a_corpus_packed_in_loads_comes_out_again(work: Path, tmp_path: Path) -> None:
    told = shards.pack(work / "corpus", work / "tokenizer.json", tmp_path, {"python": 1.0}, 0.045, 0.01, 2)
    assert len(told) == 2
    for load in (tmp_path / "load-0", tmp_path / "load-1"):
        assert sum(path.stat().st_size for path in load.glob("*.xz")) < 45_000
        assert all(path.stat().st_size <= 10_000 for path in load.glob("*.xz"))
    other = tmp_path / "other"
    counts = []
    for load in ("load-0", "load-1", "load-1"):
        shards.unpack(tmp_path / load, other)
        files = corpus.load(other / "corpus", "train")
        counts.append(len(files))
        assert {file.text for file in files} <= {file.text for file in source_files()}
        assert len({file.path for file in files}) == len(files), "a file came twice"
    assert 0 < counts[0] < counts[1] == counts[2]
    assert corpus.load(other / "corpus", "held-out")
    assert (other / "tokenizer.json").read_bytes() == (work / "tokenizer.json").read_bytes()


def test_shards_keep_the_languages_shares() -> None:
    files = [corpus.File(f"{at}.{kind}", kind, "x" * 100) for at in range(300) for kind in ("python", "go", "c")]
    groups = list(shards._mixed(files, {"python": 0.6, "go": 0.3, "c": 0.1}, 200))
    early = [file.language for group in groups[:100] for file in group]
    assert {name: round(early.count(name) / len(early), 1) for name in ("python", "go", "c")} == {
        "python": 0.6,
        "go": 0.3,
        "c": 0.1,
    }
    assert sorted(file.path for group in groups for file in group) == sorted(file.path for file in files)


@pytest.mark.parametrize("harm", ["missing", "damaged", "unlisted"])
def test_a_shard_that_did_not_arrive_is_told_in_one_line(tmp_path: Path, harm: str) -> None:
    source = tmp_path / "weights.bin"
    source.write_bytes(random.Random(0).randbytes(100_000))
    pieces = shards.split([source], tmp_path / "pieces", 0.03)
    assert [piece.name for piece in pieces] == [f"weights.bin.{number:03}" for number in range(4)]
    assert shards.join(tmp_path / "pieces", tmp_path / "whole") == [tmp_path / "whole" / "weights.bin"]
    assert (tmp_path / "whole" / "weights.bin").read_bytes() == source.read_bytes()
    if harm == "missing":
        pieces[2].unlink()
    elif harm == "damaged":
        pieces[2].write_bytes(b"x" + pieces[2].read_bytes()[1:])
    else:
        (tmp_path / "pieces" / shards.LIST).unlink()
    with pytest.raises(MidspanError) as caught:
        shards.join(tmp_path / "pieces", tmp_path / "again")
    assert "\n" not in str(caught.value)
    assert (shards.LIST if harm == "unlisted" else "weights.bin.002") in str(caught.value)


@pytest.mark.parametrize(("precision", "close"), [("fp32", 0.0), ("bf16", 0.01), ("int8", 0.02)])
def test_a_slim_checkpoint_goes_on(
    config: Config, network: Network, tmp_path: Path, precision: checkpoint.Precision, close: float
) -> None:
    chain = optimizers(network, config.optimizer)
    for matrix in network.parameters():
        matrix.grad = torch.randn_like(matrix)
    for optimizer in chain:
        optimizer.step()
    whole = tmp_path / checkpoint.NEWEST
    checkpoint.save(whole, network, chain, checkpoint.Progress(7, 1.5, 900, 300))
    contents: tuple[checkpoint.Contents, ...] = ("weights", "everything")
    for each in contents:
        small = tmp_path / f"{each}.pt"
        checkpoint.slim(whole, small, precision, each)
        other = Network(SHAPE)
        again = optimizers(other, config.optimizer)
        assert checkpoint.restore(small, other, again) == checkpoint.Progress(7, 1.5, 900, 300)
        assert bool(again[1].state) == (each == "everything")
        for one, two in zip(network.parameters(), other.parameters(), strict=True):
            assert float((one - two).norm() / one.norm()) <= close
    with pytest.raises(MidspanError, match="does not fit the config"):
        checkpoint.restore(whole, Network(attrs.evolve(SHAPE, width=64)), [])


def test_a_run_in_sessions_comes_back_and_goes_on_from_its_plateau(config: Config, work: Path, tmp_path: Path) -> None:
    config = attrs.evolve(config, optimizer=attrs.evolve(config.optimizer, checkpoint_minutes=60))
    train(config, work, minutes=60, workers=0, compiled=False, session=0.04)
    assert not (work / checkpoint.PLATEAU).exists()
    first = torch.load(work / checkpoint.NEWEST, weights_only=True)["progress"]
    assert first["step"] > 0
    train(config, work, minutes=2 * first["minutes"] + 0.06, workers=0, compiled=False)
    done = torch.load(work / checkpoint.NEWEST, weights_only=True)["progress"]
    assert done["step"] > first["step"]

    gpu.bring(tmp_path / "results", work, megabytes=0.05)
    assert all(path.stat().st_size <= 50_000 for path in (tmp_path / "results").iterdir())
    home = tmp_path / "home"
    (home / "corpus").parent.mkdir()
    (home / "corpus").symlink_to(work / "corpus")
    (home / "tokenizer.json").write_bytes((work / "tokenizer.json").read_bytes())
    gpu.join(tmp_path / "results", home)
    checkpoint.back_to_plateau(home)
    plateau = torch.load(home / checkpoint.NEWEST, weights_only=True)["progress"]
    assert first["step"] <= plateau["step"] < done["step"]
    train(config, home, minutes=plateau["minutes"] + 0.05, workers=0, compiled=False)
    assert torch.load(home / checkpoint.NEWEST, weights_only=True)["progress"]["step"] > plateau["step"]
    assert (home / "loss.png").exists()


def test_the_gpus_model_fits_its_bounds() -> None:
    config = load_config(TRAINING / "gpu.toml")
    assert config.model.context_tokens % attention.BLOCK == 0
    assert config.objective.canvas_rows_early == config.objective.canvas_rows_late
    assert config.objective.canvas_rows_late % attention.BLOCK == 0
    assert not config.optimizer.int8
    with torch.device("meta"):
        network = Network(config.model)
    packed = pack(dict(network.state_dict()))
    assert sum(weight.numel() * weight.element_size() for weight in packed.values()) < 30e6
    assert rate(1 - config.optimizer.cooldown, config.optimizer) == 1.0
