"""A trained network is rounded to int4 so that what it computes changes least, and is exported as it was rounded."""

import copy
from pathlib import Path

import torch
from small_run import drawn_batch, drawn_network, small_config
from torch import nn

from engine.models.embedded.network import Network
from engine.models.embedded.weights import Packed, Weights, quantize_int4
from engine.models.stock.token_bytes import load_tokenizer
from engine.training.batch import Batch
from engine.training.calibrated import round_to_int4
from engine.training.export import export
from engine.training.loader import special_tokens_of
from engine.training.objective import forward


def test_rounding_by_rows_of_the_corpus_changes_other_rows_less_than_rounding_to_the_nearest(tiny_model: Path) -> None:
    tokenizer = load_tokenizer(tiny_model / "tokenizer.json")
    pad = special_tokens_of(tokenizer).pad
    exact = drawn_network()
    batches = [drawn_batch(tokenizer, 8, seed=seed) for seed in range(6)]
    nearest, calibrated = copy.deepcopy(exact), copy.deepcopy(exact)
    with torch.no_grad():
        for module in nearest.blocks.modules():
            if isinstance(module, nn.Linear):
                module.weight.copy_(torch.from_numpy(Packed(*quantize_int4(module.weight.numpy())).dense()))
    matrices = round_to_int4(calibrated, batches[:5], pad)
    assert set(matrices) == {name for name, weight in exact.named_parameters() if "blocks" in name and weight.dim() > 1}
    assert _change(exact, calibrated, batches[5], pad) < 0.9 * _change(exact, nearest, batches[5], pad)


def test_a_model_is_exported_as_it_was_rounded(tiny_model: Path, tmp_path: Path) -> None:
    tokenizer = load_tokenizer(tiny_model / "tokenizer.json")
    network = drawn_network()
    matrices = round_to_int4(network, [drawn_batch(tokenizer, 8)], special_tokens_of(tokenizer).pad)
    export(small_config(), network, tiny_model / "tokenizer.json", tmp_path / "model", matrices)
    weights = Weights.load(tmp_path / "model" / "model.safetensors")
    for name in matrices:
        assert torch.equal(torch.from_numpy(weights.dense(name)), network.state_dict()[name]), name


def _change(exact: Network, other: Network, batch: Batch, pad: int) -> float:
    """Return by how much the rows of a batch differ, as a share of their size."""
    counted = batch.tokens != pad
    with torch.no_grad():
        before, after = (forward(network, batch)[counted] for network in (exact, other))
    return float((after - before).norm() / before.norm())
