"""The scales and gains of a rounded network are trained until it predicts more like the exact one."""

import copy
from pathlib import Path

import numpy as np
import torch
from small_run import drawn_batch, drawn_network, small_config

from engine.models.embedded.weights import Weights
from engine.models.stock.token_bytes import load_tokenizer
from engine.training.calibrated import round_to_int4
from engine.training.export import export
from engine.training.loader import special_tokens_of
from engine.training.tuned import distance, tune


def test_a_tuned_network_predicts_more_like_the_exact_one_and_is_exported_as_it_was_tuned(
    tiny_model: Path, tmp_path: Path
) -> None:
    tokenizer = load_tokenizer(tiny_model / "tokenizer.json")
    exact = drawn_network()
    drawn = [drawn_batch(tokenizer, 8, seed=seed) for seed in range(8)]
    network = copy.deepcopy(exact)
    rounded = round_to_int4(network, drawn[:4], special_tokens_of(tokenizer).pad)
    with torch.no_grad():
        before = float(distance(network, exact, drawn[7]))
    tuned = tune(network, rounded, exact, iter(drawn[:7] * 4), steps=24, rate=0.01)
    with torch.no_grad():
        after = float(distance(network, exact, drawn[7]))
    assert after < 0.9 * before
    assert all(np.array_equal(tuned[name][0], rounded[name][0]) for name in rounded), "the int4 numbers stay"

    export(small_config(), network, tiny_model / "tokenizer.json", tmp_path / "model", tuned)
    weights = Weights.load(tmp_path / "model" / "model.safetensors")
    for name in weights.names:
        if name != "embed.weight":
            assert torch.equal(torch.from_numpy(weights.dense(name)), network.state_dict()[name]), name
