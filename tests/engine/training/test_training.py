"""The whole training chain in small: holes, objective, a short run, export, and loading by the engine."""

import json
import random
from pathlib import Path

import attrs
import pytest
import torch
from small_run import TRAINING, drawn_batch, drawn_network, small_config, source_files
from support.embedded_models import torch_runner_of

from engine.corpus import corpus
from engine.corpus.holes import KINDS, cut
from engine.errors import MidspanError
from engine.evaluation.measure import measure_held_out
from engine.evaluation.rows import STRATEGIES
from engine.evaluation.summary import summarize
from engine.fill.stream import StreamPass
from engine.models.embedded.model import EmbeddedModel
from engine.models.load import load
from engine.models.stock.token_bytes import load_tokenizer
from engine.training import objective
from engine.training.checkpoint import NEWEST, PARENT, begin_again, progress_of, save
from engine.training.config import Config, load_config
from engine.training.export import export_checkpoint
from engine.training.loader import special_tokens_of
from engine.training.rounding import round_checkpoint
from engine.training.train import train


@pytest.fixture
def config() -> Config:
    return small_config()


@pytest.mark.parametrize("kind", KINDS)
def test_prefix_middle_and_suffix_of_a_hole_give_the_file_back(kind: str) -> None:
    rng = random.Random(2)
    files = source_files()
    holes = [hole for hole in (cut(rng.choice(files), kind, rng) for _ in range(200)) if hole is not None]
    texts = {file.path: file.text for file in files}
    assert holes
    assert all(hole.prefix + hole.middle + hole.suffix == texts[hole.path] for hole in holes)
    if kind in ("rest of line", "inside"):
        assert not any("\n" in hole.middle for hole in holes)


def test_canvas_rows_see_the_stream_up_to_their_anchor_and_the_stream_sees_no_canvas(tiny_model: Path) -> None:
    """A canvas row must not change with the stream after its anchor, and the stream must not change with any canvas."""
    network, batch = drawn_network(), drawn_batch(load_tokenizer(tiny_model / "tokenizer.json"), 3, 40)
    rows, length = objective.forward(network, batch), batch.stream_rows

    changed = attrs.evolve(batch, tokens=batch.tokens.clone())
    changed.tokens[:, length:] = (changed.tokens[:, length:] + 1) % 400
    torch.testing.assert_close(rows[:, :length], objective.forward(network, changed)[:, :length])

    anchor = int(batch.anchors[0, 0])
    changed = attrs.evolve(batch, tokens=batch.tokens.clone())
    changed.tokens[0, anchor + 1 : length] = (changed.tokens[0, anchor + 1 : length] + 1) % 400
    first = batch.owners[0] == 0
    torch.testing.assert_close(rows[0, length:][first], objective.forward(network, changed)[0, length:][first])


def test_the_engine_computes_the_same_predictions_as_training(tiny_model: Path, embedded: EmbeddedModel) -> None:
    """The engine runs the stream and canvas rows of a training batch in pieces and must predict the same."""
    batch = drawn_batch(load_tokenizer(tiny_model / "tokenizer.json"), 6, 40)
    length = batch.stream_rows
    with torch.inference_mode():
        network = torch_runner_of(embedded).network  # in fp32 on every processor, as training is
        rows = objective.forward(network, batch)
        for row in range(6):
            for owner in range(int(batch.owners[row].max()) + 1):
                own = length + torch.nonzero(batch.owners[row] == owner)[:, 0]
                anchor = int(batch.anchors[row, own[0] - length])
                stream, canvas = batch.tokens[row, : anchor + 1].tolist(), batch.tokens[row, own].tolist()
                context, before = embedded.new_context(), anchor // 2
                embedded.logits([StreamPass(context, stream[:before], [], [])])
                append = stream[before:]
                wanted = list(range(len(append) - 1, len(append) + len(canvas)))
                (found,) = embedded.logits([StreamPass(context, append, canvas, wanted)])
                expected = network.logits(rows[row, torch.cat((torch.tensor([anchor]), own))])
                torch.testing.assert_close(torch.from_numpy(found), expected, atol=2e-3, rtol=1e-3)


def test_text_that_looks_like_a_special_token_is_text(tiny_model: Path) -> None:
    tokenizer = load_tokenizer(tiny_model / "tokenizer.json")
    special = set(attrs.astuple(special_tokens_of(tokenizer)))
    assert not special & set(tokenizer.encode("<svg><mask id='a'/></svg> <end>", add_special_tokens=False).ids)


@pytest.mark.slow
def test_a_short_run_learns_resumes_and_loads_in_the_engine(config: Config, run_folder: Path) -> None:
    save(run_folder / PARENT, drawn_network())
    train(config, run_folder, minutes=0.1)
    first = progress_of(run_folder / NEWEST)
    middles: list[float] = []
    for minutes in (0.15, 0.4, 1.5):  # a busy machine takes few steps a minute
        train(config, run_folder, minutes=minutes)
        notes = [json.loads(line) for line in (run_folder / "metrics.jsonl").read_text().splitlines()]
        middles = [row["held_out"]["middle"] for row in notes if "held_out" in row]
        second = progress_of(run_folder / NEWEST)
        if middles[-1] < middles[0] and second.step > first.step:
            break
    assert middles[-1] < middles[0]
    assert second.step > first.step > 0
    assert second.stream_tokens > first.stream_tokens

    rounded = round_checkpoint(config, run_folder)
    export_checkpoint(config, run_folder, run_folder / "model", rounded)
    held_out = corpus.load(run_folder / "corpus", "held-out")
    rows = measure_held_out(load(str(run_folder / "model"), threads=1), held_out, ["python"], ["rest of line"], 3)
    assert [summary.strategy for summary in summarize(rows)] == [strategy.name for strategy in STRATEGIES]

    before = rounded.read_bytes()
    assert begin_again(run_folder) == attrs.evolve(second, earlier=second.minutes, minutes=0.0)
    train(config, run_folder, minutes=0.1)
    assert progress_of(run_folder / NEWEST).step > second.step, "there is time again"
    assert round_checkpoint(config, run_folder).read_bytes() != before, "older than the checkpoint"


def test_generated_vendored_and_minified_files_are_left_out() -> None:
    source = "def name(value):\n    return value\n" * 20
    assert corpus.clean("pkg/name.py", source.encode()) is not None
    assert corpus.clean("pkg/_vendor/name.py", source.encode()) is None
    assert corpus.clean("pkg/name.py", ("# Code generated by a tool. DO NOT EDIT.\n" + source).encode()) is None
    assert corpus.clean("pkg/name.js", ("a" * 5000 + "\n" + source).encode()) is None
    assert corpus.clean("pkg/name.py", source.encode("utf-16")) is None


def test_the_manifest_names_only_pinned_permissive_packages() -> None:
    packages = corpus.read_manifest(TRAINING / "manifest.toml")
    held_out = {package.name.lower() for package in packages if package.split == "held-out"}
    assert {"boltons", "trio", "peewee", "mkdocs", "rope", "kombu", "httpx"} <= held_out
    trained = [package for package in packages if package.split == "train"]
    assert not held_out & {package.name.lower() for package in trained}
    assert not [package for package in trained if "GPL" in package.licence.upper() or not package.version]


@pytest.mark.parametrize("text", ["not toml [", "name = 3", ""])
def test_a_broken_config_gives_an_error_of_one_line(tmp_path: Path, text: str) -> None:
    path = tmp_path / "broken.toml"
    path.write_text(text)
    with pytest.raises(MidspanError) as caught:
        load_config(path)
    assert "\n" not in str(caught.value)
    assert "broken.toml" in str(caught.value)
