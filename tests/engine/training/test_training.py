"""The whole training chain in small: holes, objective, a short run, export, and loading by the engine."""

import json
import random
from pathlib import Path

import attrs
import pytest
import torch
from embedded_models import torch_runner_of
from small_run import SHAPE, TRAINING, small_config, source_files

from engine.corpus import corpus
from engine.corpus.holes import KINDS, TrainingHole, cut
from engine.errors import MidspanError
from engine.evaluation.measure import measure_held_out
from engine.evaluation.strategies import STRATEGIES
from engine.evaluation.summary import summarize
from engine.fill.predictions import Query
from engine.fill.stream import StreamPass
from engine.models.embedded.model import EmbeddedModel
from engine.models.embedded.network import Network
from engine.models.embedded.ngram_lookup import Lookup
from engine.models.embedded.token_healing import unfinished
from engine.models.load import load
from engine.models.stock.token_bytes import load_tokenizer
from engine.training import objective, quality_plot
from engine.training.collator import Collator
from engine.training.config import Config, load_config
from engine.training.export import export_checkpoint
from engine.training.int8 import Int8Linear, products_are_exact
from engine.training.loader import special_tokens_of
from engine.training.train import Run, train

int8_is_exact = pytest.mark.skipif(
    not products_are_exact(), reason="torch's int8 products overflow on this processor; training runs in fp32 here"
)


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


def holes_of(kind: str, count: int) -> list[TrainingHole]:
    rng = random.Random(4)
    holes = (cut(file, kind, rng) for file in source_files() * 9)
    return [hole for hole in holes if hole is not None][:count]


def test_canvas_rows_see_the_stream_up_to_their_anchor_and_the_stream_sees_no_canvas(
    tiny_model: Path, config: Config
) -> None:
    """A canvas row must not change with the stream after its anchor, and the stream must not change with any canvas."""
    tokenizer = load_tokenizer(tiny_model / "tokenizer.json")
    network = Network(SHAPE)
    for matrix in network.parameters():
        torch.nn.init.normal_(matrix, std=0.2)
    batch = Collator(config, tokenizer, special_tokens_of(tokenizer), 0).batch(holes_of("lines", 3), 40)
    rows, length = objective.forward(network, batch, objective.visibility(batch)), batch.stream_rows

    changed = attrs.evolve(batch, tokens=batch.tokens.clone())
    changed.tokens[:, length:] = (changed.tokens[:, length:] + 1) % 400
    new_rows = objective.forward(network, changed, objective.visibility(changed))
    assert torch.equal(rows[:, :length], new_rows[:, :length])

    anchor = int(batch.anchors[0, 0])
    changed = attrs.evolve(batch, tokens=batch.tokens.clone())
    changed.tokens[0, anchor + 1 : length] = (changed.tokens[0, anchor + 1 : length] + 1) % 400
    new_rows = objective.forward(network, changed, objective.visibility(changed))
    first = batch.owners[0] == 0
    assert torch.equal(rows[0, length:][first], new_rows[0, length:][first])


def test_the_engine_computes_the_same_predictions_as_training(
    tiny_model: Path, embedded: EmbeddedModel, config: Config
) -> None:
    """The engine runs the stream and canvas rows of a training batch in pieces and must predict the same."""
    family = embedded  # in fp32 on every processor, as training is
    shape = attrs.evolve(family.card.shape, context_tokens=96)
    tokenizer = load_tokenizer(tiny_model / "tokenizer.json")
    collator = Collator(attrs.evolve(config, model=shape), tokenizer, special_tokens_of(tokenizer), 0)
    holes = holes_of("rest of line", 6)
    batch, typed = collator.batch(holes, 40), [unfinished(tokenizer, hole.prefix).encode() for hole in holes]
    length = batch.stream_rows
    with torch.inference_mode():
        network = torch_runner_of(family).network
        rows = objective.forward(network, batch, objective.visibility(batch))
        for row in range(6):
            for owner in range(int(batch.owners[row].max()) + 1):
                own = length + torch.nonzero(batch.owners[row] == owner)[:, 0]
                anchor = int(batch.anchors[row, own[0] - length])
                stream = batch.tokens[row, : anchor + 1].tolist()
                context = family.new_context()
                before = stream.index(family.middle) if family.middle in stream else anchor // 2
                family.logits([StreamPass(context, stream[:before], [], [])])
                canvas, compatible_tokens = batch.tokens[row, own].tolist(), family.compatible_tokens(typed[row])
                if family.middle in stream[:-1]:
                    family.logits(
                        [StreamPass(context, [family.middle], [], [], Query(compatible_tokens=compatible_tokens))]
                    )
                append = stream[len(context.tokens) :]
                compatible_tokens = compatible_tokens if append[-1] == family.middle else []
                wanted = list(range(len(append) - 1, len(append) + len(canvas)))
                (found,) = family.logits(
                    [StreamPass(context, append, canvas, wanted, Query(compatible_tokens=compatible_tokens))]
                )
                at = torch.cat((torch.tensor([anchor]), own))
                expected = network.logits(rows[row, at], batch.hints[row, at], batch.strengths[row, at])
                torch.testing.assert_close(torch.from_numpy(found), expected, atol=2e-3, rtol=1e-3)


def test_a_canvas_masks_every_token_that_it_predicts(tiny_model: Path, config: Config) -> None:
    tokenizer = load_tokenizer(tiny_model / "tokenizer.json")
    special_tokens = special_tokens_of(tokenizer)
    batch = Collator(config, tokenizer, special_tokens, 0).batch(holes_of("rest of line", 16), 64)
    canvas = slice(batch.stream_rows, None)
    asked, held = batch.weights[:, canvas] > 0, batch.tokens[:, canvas]
    together = batch.owners[:, 1:] == batch.owners[:, :-1]
    begins = batch.positions[:, canvas] == batch.anchors + 1
    assert bool((held[begins] == special_tokens.mask).all())
    assert bool((held[:, 1:][asked[:, :-1] & together] == special_tokens.mask).all())
    shown = ~asked[:, :-1] & together
    assert bool((held[:, 1:][shown] == batch.targets[:, canvas][:, :-1][shown]).all())


def test_hints_are_the_tokens_that_followed_the_earlier_occurrence(tiny_model: Path) -> None:
    tokenizer = load_tokenizer(tiny_model / "tokenizer.json")
    special_tokens = special_tokens_of(tokenizer)
    names = [300, 301, 302, 303, 304, 305]
    stream = [
        special_tokens.suffix,
        350,
        special_tokens.prefix,
        *names,
        360,
        *names[:3],
        special_tokens.tail,
        351,
        special_tokens.middle,
    ]
    lookup = Lookup(stream, special_tokens, 64)
    assert lookup.stream().tokens[-4:].tolist() == [303, 0, 0, 303], (
        "the tail has no hint, <middle> has that of the row above"
    )
    canvas = lookup.canvas(len(stream) - 1, [special_tokens.mask] * 8)
    assert canvas.tokens.tolist() == [304, 305, 360, 300, 301, 302, 0, 0], "no token after the anchor is copied"
    for since in range(len(stream)):
        part, whole = Lookup(stream, special_tokens, 64, since).stream(), lookup.stream()
        assert part.tokens.tolist() == whole.tokens[since:].tolist()
        assert part.grams.tolist() == whole.grams[since:].tolist()
        shorter = Lookup(stream[: since + 1], special_tokens, 64).stream()
        assert shorter.tokens.tolist() == whole.tokens[: since + 1].tolist(), (
            "a row's hint changed with the tokens after it"
        )


@int8_is_exact
def test_int8_products_and_gradients_are_close_to_fp32() -> None:
    torch.manual_seed(0)
    rows = torch.randn(64, 32, requires_grad=True)
    exact, coarse = torch.nn.Linear(32, 48, bias=False), Int8Linear(32, 48, bias=False)
    coarse.weight.data = exact.weight.data.clone()
    target = torch.randn(64, 48)
    results = []
    for layer in (exact, coarse):
        result = layer(rows)
        (gradient,) = torch.autograd.grad((result - target).square().mean(), rows, retain_graph=True)
        torch.autograd.backward((result - target).square().mean())
        results.append((result, gradient, layer.weight.grad))
    for expected, actual in zip(*results, strict=True):
        assert expected is not None
        assert actual is not None
        assert float(((expected - actual).norm() / expected.norm()).detach()) < 0.02


def test_text_that_looks_like_a_special_token_is_text(tiny_model: Path) -> None:
    tokenizer = load_tokenizer(tiny_model / "tokenizer.json")
    special = set(attrs.astuple(special_tokens_of(tokenizer)))
    assert not special & set(tokenizer.encode("<svg><mask id='a'/></svg> <end>", add_special_tokens=False).ids)


@pytest.mark.slow
def test_a_short_run_learns_resumes_and_loads_in_the_engine(config: Config, run_folder: Path) -> None:
    train(config, run_folder, minutes=0.1, workers=0, compiled=False)
    first = torch.load(run_folder / "checkpoint.pt", weights_only=True)["progress"]
    streams: list[float] = []
    for minutes in (0.15, 0.4, 1.5):  # a busy machine takes few steps a minute
        train(config, run_folder, minutes=minutes, workers=0, compiled=False)
        losses = [json.loads(line) for line in (run_folder / "metrics.jsonl").read_text().splitlines()]
        streams = [row["held_out"][0] for row in losses if "held_out" in row]
        if streams[-1] < streams[0]:
            break
    assert streams[-1] < streams[0]
    second = torch.load(run_folder / "checkpoint.pt", weights_only=True)["progress"]
    assert second["step"] > first["step"] > 0
    assert second["stream_tokens"] > first["stream_tokens"]

    exported = export_checkpoint(config, run_folder, run_folder / "model")
    assert exported.stream_tokens == second["stream_tokens"]
    held_out = corpus.load(run_folder / "corpus", "held-out")
    rows = measure_held_out(load(str(run_folder / "model"), threads=1), held_out, ["python"], ["rest of line"], 3)
    assert [summary.strategy for summary in summarize(rows)] == [strategy.name for strategy in STRATEGIES]
    quality_plot.draw({first["stream_tokens"]: rows, second["stream_tokens"]: rows}, run_folder / "quality.png")
    assert (run_folder / "quality.png").read_bytes().startswith(b"\x89PNG")


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


def test_where_int8_products_overflow_a_run_trains_in_fp32(run_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.training.train.products_are_exact", lambda: False)
    config = small_config()
    config = attrs.evolve(config, optimizer=attrs.evolve(config.optimizer, int8=True))
    run = Run(config, run_folder, compiled=False)
    assert not any(isinstance(module, Int8Linear) for module in run.network.modules())
