"""The training chain at the size of a test: holes, objective, a short run, export, loading by the engine."""

import json
import random
from pathlib import Path

import attrs
import msgpack
import pytest
import torch
from tokenizers import Tokenizer

from engine.errors import MidspanError
from engine.models.network import Network, Shape
from engine.models.registry import load
from engine.training import corpus, evaluate, objective
from engine.training.config import Config, load_config
from engine.training.export import export_checkpoint
from engine.training.holes import KINDS, cut
from engine.training.train import initialize, marks_of, train

ROOT = Path(__file__).parents[2]
SHAPE = Shape(vocabulary=400, width=32, layers=2, heads=2, context_tokens=96, canvas_tokens=8)


def source_files() -> list[corpus.File]:
    paths = sorted((ROOT / "engine").glob("*.py"))
    return [corpus.File(path.name, "python", path.read_text()) for path in paths]


@pytest.fixture
def config() -> Config:
    full = load_config(ROOT / "engine" / "training" / "cpu.toml")
    return attrs.evolve(
        full,
        model=SHAPE,
        holes=attrs.evolve(full.holes, suffix_tokens=24, middle_tokens=16),
        objective=attrs.evolve(full.objective, canvas_rows_early=16, canvas_rows_late=32),
        optimizer=attrs.evolve(full.optimizer, batch=4, checkpoint_minutes=0.02),
    )


@pytest.mark.parametrize("kind", KINDS)
def test_a_cut_hole_puts_the_file_back_together(kind: str) -> None:
    rng = random.Random(2)
    files = source_files()
    found = [hole for hole in (cut(rng.choice(files), kind, rng) for _ in range(200)) if hole is not None]
    texts = {file.path: file.text for file in files}
    assert found
    assert all(hole.prefix + hole.middle + hole.suffix == texts[hole.path] for hole in found)
    if kind in ("rest of line", "inside"):
        assert not any("\n" in hole.middle for hole in found)


def test_canvas_and_stream_see_what_the_design_says(tiny_model: Path, config: Config) -> None:
    """A canvas row must not change with the stream behind its anchor, nor the stream with any canvas."""
    tokenizer = Tokenizer.from_file(str(tiny_model / "tokenizer.json"))
    network = Network(SHAPE)
    initialize(network)
    for matrix in network.parameters():
        torch.nn.init.normal_(matrix, std=0.2)
    rng = random.Random(4)
    holes = [hole for hole in (cut(file, "lines", rng) for file in source_files() * 4) if hole is not None]
    batch = objective.Collator(config, tokenizer, marks_of(tokenizer), 0).batch(holes[:3], 40)
    read, drawn = objective.forward(network, batch, objective.visibility(batch))

    other = attrs.evolve(batch, canvas=(batch.canvas + 1) % 400)
    read_again, _ = objective.forward(network, other, objective.visibility(other))
    assert torch.equal(read, read_again)

    anchor = int(batch.anchors[0, 0])
    stream = batch.stream.clone()
    stream[0, anchor + 1 :] = (stream[0, anchor + 1 :] + 1) % 400
    other = attrs.evolve(batch, stream=stream)
    _, drawn_again = objective.forward(network, other, objective.visibility(other))
    first = batch.owners[0] == 0
    assert torch.equal(drawn[0][first], drawn_again[0][first])


def test_a_canvas_hides_what_it_asks_for(tiny_model: Path, config: Config) -> None:
    tokenizer = Tokenizer.from_file(str(tiny_model / "tokenizer.json"))
    marks = marks_of(tokenizer)
    rng = random.Random(5)
    holes = [hole for hole in (cut(file, "rest of line", rng) for file in source_files() * 9) if hole is not None]
    batch = objective.Collator(config, tokenizer, marks, 0).batch(holes[:16], 64)
    asked, held = batch.canvas_weights > 0, batch.canvas
    together = batch.owners[:, 1:] == batch.owners[:, :-1]
    begins = batch.canvas_positions == batch.anchors + 1
    assert bool((held[begins] == marks.mask).all())
    assert bool((held[:, 1:][asked[:, :-1] & together] == marks.mask).all())
    shown = ~asked[:, :-1] & together
    assert bool((held[:, 1:][shown] == batch.canvas_targets[:, :-1][shown]).all())


def test_a_short_run_learns_goes_on_and_loads_in_the_engine(tiny_model: Path, config: Config, tmp_path: Path) -> None:
    (tmp_path / "corpus").mkdir()
    rows = msgpack.packb([attrs.astuple(file) for file in source_files()])
    for split in ("train", "held-out"):
        (tmp_path / "corpus" / f"{split}.msgpack").write_bytes(rows)
    (tmp_path / "tokenizer.json").write_bytes((tiny_model / "tokenizer.json").read_bytes())
    train(config, tmp_path, minutes=0.1, workers=0, compiled=False)
    first = torch.load(tmp_path / "checkpoint.pt", weights_only=True)["progress"]
    train(config, tmp_path, minutes=0.15, workers=0, compiled=False)
    second = torch.load(tmp_path / "checkpoint.pt", weights_only=True)["progress"]
    assert second["step"] > first["step"] > 0
    assert second["stream_tokens"] > first["stream_tokens"]
    losses = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    streams = [row["held_out"][0] for row in losses if "held_out" in row]
    assert streams[-1] < streams[0]

    export_checkpoint(config, tmp_path, tmp_path / "model")
    summaries = evaluate.run(
        load(str(tmp_path / "model"), threads=1), tmp_path / "corpus", "python", "rest of line", 3, None
    )
    assert [summary.way for summary in summaries] == [way.name for way in evaluate.WAYS]


def test_generated_vendored_and_minified_files_are_left_out() -> None:
    source = "def name(value):\n    return value\n" * 20
    assert corpus.clean("pkg/name.py", source.encode()) is not None
    assert corpus.clean("pkg/_vendor/name.py", source.encode()) is None
    assert corpus.clean("pkg/name.py", ("# Code generated by a tool. DO NOT EDIT.\n" + source).encode()) is None
    assert corpus.clean("pkg/name.js", ("a" * 5000 + "\n" + source).encode()) is None
    assert corpus.clean("pkg/name.py", source.encode("utf-16")) is None


def test_the_manifest_names_only_pinned_permissive_packages() -> None:
    packages = corpus.read_manifest(ROOT / "engine" / "training" / "manifest.toml")
    held_out = {package.name.lower() for package in packages if package.split == "held-out"}
    assert {"boltons", "trio", "peewee", "mkdocs", "rope", "kombu", "httpx"} <= held_out
    trained = [package for package in packages if package.split == "train"]
    assert not held_out & {package.name.lower() for package in trained}
    assert not [package for package in trained if "GPL" in package.licence.upper() or not package.version]


@pytest.mark.parametrize("text", ["not toml [", "name = 3", ""])
def test_a_broken_config_is_told_in_one_line(tmp_path: Path, text: str) -> None:
    path = tmp_path / "broken.toml"
    path.write_text(text)
    with pytest.raises(MidspanError) as caught:
        load_config(path)
    assert "\n" not in str(caught.value)
    assert "broken.toml" in str(caught.value)
