"""The link between neighbours of a canvas: the same in training and at work, learnt alone, and drafts chosen by it."""

import random
from pathlib import Path

import attrs
import pytest
import torch
from embedded_models import PRECISIONS, load_embedded
from scheduler_client import answer
from small_run import drawn_holes, small_config

from engine.fill.stream import StreamPass
from engine.models.embedded.layout import SpecialTokens
from engine.models.embedded.link_numpy import CANDIDATES, NumpyLink, last_row
from engine.models.embedded.model import EmbeddedModel
from engine.models.embedded.network import Network, Rows
from engine.models.embedded.ngram_lookup import Lookup
from engine.models.embedded.weights import Weights
from engine.models.stock.token_bytes import load_tokenizer
from engine.protocol.messages import Fill
from engine.schedule.scheduler import Scheduler
from engine.training import link_loss, objective
from engine.training.batch import Batch
from engine.training.checkpoint import NEWEST, restore
from engine.training.collator import Collator
from engine.training.config import Config, ConfigError
from engine.training.export import export
from engine.training.link_fit import fit_link
from engine.training.loader import special_tokens_of
from engine.training.train import Run

PREFIX = "import os\n\n\ndef width_of(name, parts):\n    total = 0\n    for part in parts:\n        total += "
HOLE = Fill(id=1, prefix=PREFIX, suffix="\n    return total\n", path="a/b.py", extent="lines", max_tokens=24)
HOLES = [attrs.evolve(HOLE, prefix=f"name_{at} = {at * 7}\n" + PREFIX, budget_ms=6e5) for at in range(3)]
MARKS = SpecialTokens(pad=0, suffix=1, prefix=2, tail=3, middle=4, end=5, mask=6, file=7)


@pytest.fixture(scope="module")
def config() -> Config:
    plain = small_config()
    return attrs.evolve(plain, model=attrs.evolve(plain.model, context_tokens=192, link_width=24))


@pytest.fixture(scope="module")
def network(config: Config) -> Network:
    torch.manual_seed(2)
    network = Network(config.model)
    for matrix in network.parameters():
        torch.nn.init.normal_(matrix, std=0.3)
    return network


@pytest.fixture(scope="module", params=PRECISIONS)
def family(
    config: Config,
    network: Network,
    tiny_model: Path,
    tmp_path_factory: pytest.TempPathFactory,
    request: pytest.FixtureRequest,
) -> EmbeddedModel:
    folder = tmp_path_factory.mktemp("linked")
    export(config, network, tiny_model / "tokenizer.json", folder)
    return load_embedded(folder, str(request.param))


def batch_of(config: Config, tiny_model: Path) -> Batch:
    tokenizer = load_tokenizer(tiny_model / "tokenizer.json")
    return Collator(config, tokenizer, special_tokens_of(tokenizer), 0).batch(drawn_holes(config, 4), 32)


@pytest.mark.parametrize("temperature", [0.0, 1.0])
async def test_drafts_chosen_through_the_link_change_no_answer(scheduler: Scheduler, temperature: float) -> None:
    for hole in HOLES:
        asked = attrs.evolve(hole, temperature=temperature, candidates=2, seed=3)
        left = await answer(scheduler, attrs.evolve(asked, rule="left-to-right"))
        verified = await answer(scheduler, attrs.evolve(asked, rule="verify"))
        assert [one.tokens for one in verified.candidates] == [one.tokens for one in left.candidates]


def test_a_pass_leaves_the_link_only_where_the_weights_have_one(family: EmbeddedModel, embedded: EmbeddedModel) -> None:
    for each, linked in ((family, True), (embedded, False)):
        tokens = [*range(20, 40), each.card.marks.tail, each.middle]
        asked = StreamPass(each.new_context(), tokens, [each.mask] * 3, range(len(tokens) - 1, len(tokens) + 3))
        (result,) = each.run([asked])
        assert (result.draft_rows is not None) == linked


def test_the_last_row_alone_is_what_the_lookup_finds() -> None:
    rng = random.Random(5)
    for size in (1, 2, 3, 5, 9, 30, 80, 200):
        above = [rng.randrange(8, 14) for _ in range(size)]
        stream = [MARKS.suffix, 9, 9, MARKS.prefix, *above, MARKS.tail, 8, MARKS.middle]
        for _ in range(12):
            stream.append(rng.randrange(8, 14))
            found, hints = last_row(stream, MARKS, 64), Lookup(stream, MARKS, 64).stream()
            assert found.token == stream[-1]
            assert found.strength == hints.strengths[-1]
            assert found.hint == hints.tokens[-1]
            assert list(found.grams) == hints.grams[-1].tolist()


def test_one_row_on_the_processor_is_the_networks(config: Config, network: Network) -> None:
    link, stream = network.link, [MARKS.prefix, 9, 10, 11, 12, 9, 10, MARKS.tail, MARKS.middle, 11, 30, 9, 10]
    assert link is not None
    rows, canvas = torch.randn(5, config.model.width), torch.randn(5, config.model.vocabulary)
    hints = Lookup(stream, MARKS, config.model.gram_buckets).stream().part(slice(-1, None))
    inputs = [torch.from_numpy(part) for part in (hints.tokens, hints.strengths, hints.grams)]
    with torch.no_grad():
        entry = network.entry(Rows(torch.tensor(stream[-1:]), torch.tensor([0]), *inputs))
        wanted = network.logits(link(rows, entry.expand(5, -1)), inputs[0].expand(5), inputs[1].expand(5))
    weights = Weights({name: matrix.detach().numpy() for name, matrix in network.named_parameters()})
    host = NumpyLink(weights, config.model, MARKS, [])
    for row, logits, expected in zip(rows, canvas, wanted, strict=True):
        found = torch.from_numpy(host.logits(row.numpy(), logits.numpy(), stream))
        likeliest = set(logits.topk(CANDIDATES).indices.tolist()) | {int(hints.tokens[0])}
        recomputed = torch.tensor([token in likeliest for token in range(config.model.vocabulary)])
        assert torch.allclose(found[recomputed], expected[recomputed], atol=1e-3)
        assert torch.equal(found[~recomputed], logits[~recomputed])


def test_only_the_link_learns_from_its_loss(config: Config, network: Network, tiny_model: Path) -> None:
    batch = batch_of(config, tiny_model)
    rows = objective.forward(network, batch, objective.visibility(batch))
    torch.autograd.backward(link_loss.link_loss(network, rows, batch))
    taught = {name for name, weight in network.named_parameters() if weight.grad is not None}
    assert taught == {"link.up.weight", "link.down.weight"}
    network.zero_grad()


def test_linked_rows_are_inputs_what_the_stream_holds(config: Config, tiny_model: Path) -> None:
    batch = batch_of(config, tiny_model)
    pairs = link_loss.every(batch)
    assert len(pairs.row) > 20
    assert torch.equal(pairs.of(batch.targets), pairs.neighbours(batch.targets))
    assert torch.equal(pairs.of(batch.positions), pairs.neighbours(batch.positions))


def test_a_run_without_a_link_goes_on_with_one_and_the_link_is_saved(config: Config, run_folder: Path) -> None:
    without = attrs.evolve(config, model=attrs.evolve(config.model, link_width=0))
    begun = Run(without, run_folder, compiled=False)
    begun.step(next(begun.source.batches(1, 32, 0, begun.device)), 0.5, 1.0)
    begun.save()
    later = Run(config, run_folder, compiled=False)
    link = later.network.link
    assert link is not None
    assert not link.down.weight.any()
    for _ in range(2):
        later.step(next(later.source.batches(2, 32, 0, later.device)), 0.5, 1.0)
    later.save()
    assert Run(config, run_folder, compiled=False).progress.step == 3
    again = Network(config.model)
    restore(run_folder / NEWEST, again, [])
    assert again.link is not None
    assert torch.equal(again.link.down.weight, link.down.weight)
    assert link.down.weight.any()


def test_a_link_can_be_learnt_alone(config: Config, run_folder: Path) -> None:
    begun = Run(config, run_folder, compiled=False)
    torch.nn.init.normal_(begun.network.head.weight, std=0.1)
    begun.save()
    before = {name: weight.clone() for name, weight in begun.network.named_parameters() if "link." not in name}
    overall = fit_link(config, run_folder, minutes=0.05, workers=0)[0]
    assert overall.linked < overall.alone
    after = Network(config.model)
    restore(run_folder / NEWEST, after, [])
    found = dict(after.named_parameters())
    assert all(torch.equal(found[name], weight) for name, weight in before.items())


def test_a_config_without_a_link_is_inputs_so(run_folder: Path) -> None:
    with pytest.raises(ConfigError, match="link_width"):
        fit_link(attrs.evolve(small_config(), model=attrs.evolve(small_config().model, link_width=0)), run_folder, 1, 0)
