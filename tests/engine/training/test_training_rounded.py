"""A trained network is rounded to the numbers that it ships in, and what was exported is trained on without loss."""

import copy
from pathlib import Path

import numpy as np
import torch
from small_run import drawn_batch, drawn_network, small_config
from torch import nn

from engine.models.embedded.network import Network
from engine.models.embedded.weights import MIDDLE, Weights, quantize_int4
from engine.models.stock.token_bytes import load_tokenizer
from engine.training.batch import Batch
from engine.training.export import card_of, export
from engine.training.objective import losses
from engine.training.rounded import make_exact, round_linears, rounded_linears, rounded_network
from engine.training.rounding import adam as adam_of_rounded
from engine.training.rounding import distance, round_to, tuning_step
from engine.training.train import adam


def test_weights_that_come_in_4_bits_with_offsets_begin_without_loss() -> None:
    network = drawn_network()
    with torch.no_grad():
        for module in network.blocks.modules():
            if isinstance(module, nn.Linear):
                packed, scales, offsets = quantize_int4(module.weight.numpy())
                whole = np.stack((packed & 15, packed >> 4), -1).reshape(*scales.shape, -1)
                dense = whole * scales.astype(np.float32)[..., None] + offsets.astype(np.float32)[..., None]
                module.weight.copy_(torch.from_numpy(dense.reshape(module.weight.shape)))
    before = {name: weight.clone() for name, weight in network.state_dict().items()}
    round_linears(network)
    layers = rounded_linears(network)
    assert set(layers) == {name for name, weight in before.items() if "blocks" in name and weight.dim() > 1}
    for name, linear in layers.items():
        assert torch.allclose(linear.matrix(), before[name], atol=1e-6), name


def test_what_was_learned_survives_rounding_and_export(tiny_model: Path, tmp_path: Path) -> None:
    tokenizer = load_tokenizer(tiny_model / "tokenizer.json")
    batch = drawn_batch(tokenizer, 8)
    parent, config = drawn_network(), small_config()
    round_linears(parent)
    exact = copy.deepcopy(parent)
    make_exact(exact)
    optimizer = adam(exact, config.optimizer)
    found = []
    for _ in range(24):
        loss = losses(exact, batch, 0.5, 0.15).total
        found.append(float(loss.detach()))
        torch.autograd.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
    assert found[-1] < 0.9 * found[0]
    exact.requires_grad_(False)

    nearest = _nearest(parent, exact)
    network = copy.deepcopy(parent)
    round_to(network, exact, [batch])
    for (name, linear), old in zip(rounded_linears(network).items(), rounded_linears(parent).values(), strict=True):
        assert not torch.equal(linear.numbers, old.numbers), f"the numbers of {name} have moved"
        assert torch.equal(linear.numbers, linear.numbers.round().clamp(0, 15)), name
        assert not torch.equal(linear.scale, old.scale), f"the scales of {name} have moved"
    rounded = _away(network, exact, batch)
    assert rounded < 0.5 * _away(nearest, exact, batch)
    tuner = adam_of_rounded(network, config.rounding)
    for group in tuner.param_groups:
        group["lr"] = 1e-3 * group["size"]
    for _ in range(10):
        tuning_step(network, exact, tuner, [batch])
    assert _away(network, exact, batch) < rounded

    export(config, network, tiny_model / "tokenizer.json", tmp_path / "model")
    weights = Weights.load(tmp_path / "model" / "model.safetensors")
    weights.check(network.shape)
    for name, linear in rounded_linears(network).items():
        # Scales and centres are stored in 8 bits: a weight is off by a half step of each at most.
        step = 7.5 * linear.scale.amax(-1) / 510 + linear.centre.abs().amax() / 254
        off = (torch.from_numpy(weights.dense(name)) - linear.matrix()).abs().amax(-1)
        in_fp16 = linear.matrix().abs().amax(-1) / 1000  # what rounding scales, offsets and steps to fp16 adds
        assert (off <= step + in_fp16).all(), name


@torch.no_grad()
def _away(network: Network, exact: Network, batch: Batch) -> float:
    return float(distance(network, exact, batch))


def _nearest(parent: Network, exact: Network) -> Network:
    """Return a rounded network with the numbers that are nearest to the exact weights in the parent's scales."""
    network = copy.deepcopy(parent)
    others = {name: each for name, each in exact.state_dict().items() if each.dim() == 1 or name == "embed.weight"}
    network.load_state_dict(others, strict=False)
    for name, linear in rounded_linears(network).items():
        groups = exact.get_parameter(name).detach().view(*linear.scale.shape, -1)
        numbers = (groups - linear.centre.detach()[..., None]) / linear.scale.detach()[..., None] + MIDDLE
        with torch.no_grad():
            linear.numbers.copy_(numbers.round().clamp(0, 15).flatten(1))
    return network


def test_a_weight_that_did_not_move_keeps_its_number(tiny_model: Path) -> None:
    parent = drawn_network()
    round_linears(parent)
    exact, network = copy.deepcopy(parent), copy.deepcopy(parent)
    make_exact(exact)
    round_to(network, exact, [drawn_batch(load_tokenizer(tiny_model / "tokenizer.json"), 4)])
    for (name, linear), old in zip(rounded_linears(network).items(), rounded_linears(parent).values(), strict=True):
        assert torch.equal(linear.numbers, old.numbers), name


def test_what_was_exported_is_trained_on_without_loss(tiny_model: Path, tmp_path: Path) -> None:
    network = drawn_network()
    round_linears(network)
    for linear in rounded_linears(network).values():
        with torch.no_grad():  # No group uses all numbers: rounding it once more would find other ones.
            linear.numbers.clamp_(3, 11)
    export(small_config(), network, tiny_model / "tokenizer.json", tmp_path)
    card = card_of(tmp_path)
    assert card is not None
    weights = Weights.load(tmp_path / "model.safetensors")
    again = rounded_network(card.shape, weights)
    for name, linear in rounded_linears(again).items():
        assert torch.equal(linear.numbers, rounded_linears(network)[name].numbers), name
        assert torch.allclose(linear.matrix(), torch.from_numpy(weights.dense(name)), atol=1e-6), name
    assert card_of(tmp_path / "nothing") is None
