"""The link between neighbours of a canvas in training: learnt with the network, or alone."""

from pathlib import Path

import attrs
import pytest
import torch
from small_run import drawn_holes, small_config

from engine.models.embedded.network import Network
from engine.models.stock.token_bytes import load_tokenizer
from engine.training import link_loss, objective
from engine.training.batch import Batch
from engine.training.checkpoint import NEWEST, restore
from engine.training.collator import Collator
from engine.training.config import Config, ConfigError
from engine.training.link_fit import fit_link
from engine.training.loader import special_tokens_of
from engine.training.train import Run


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


def batch_of(config: Config, tiny_model: Path) -> Batch:
    tokenizer = load_tokenizer(tiny_model / "tokenizer.json")
    return Collator(config, tokenizer, special_tokens_of(tokenizer), 0).batch(drawn_holes(config, 4), 32)


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
