"""A run on another machine: slim checkpoints, sessions, and the way there and back."""

from pathlib import Path

import attrs
import pytest
import torch
from small_run import SHAPE, TRAINING, small_config

from engine.errors import MidspanError
from engine.models.embedded.int8_weights import pack
from engine.models.embedded.network import Network
from engine.training import attention, checkpoint, gpu
from engine.training.config import load_config
from engine.training.train import optimizers, rate, train


@pytest.mark.parametrize(("precision", "close"), [("fp32", 0.0), ("bf16", 0.01), ("int8", 0.02)])
def test_a_run_can_continue_from_a_slim_checkpoint(
    tmp_path: Path, precision: checkpoint.Precision, close: float
) -> None:
    config, network = small_config(), Network(SHAPE)
    network.initialize()
    chain = optimizers(network, config.optimizer)
    for matrix in network.parameters():
        matrix.grad = torch.randn_like(matrix)
    for optimizer in chain:
        optimizer.step()
    whole = tmp_path / checkpoint.NEWEST
    checkpoint.save(whole, network, chain, checkpoint.Progress(7, 1.5, 900, 300))
    contents: tuple[checkpoint.Contents, ...] = ("weights", "everything")
    for kept in contents:
        small = tmp_path / f"{kept}.pt"
        checkpoint.slim(whole, small, precision, kept)
        other = Network(SHAPE)
        other_chain = optimizers(other, config.optimizer)
        assert checkpoint.restore(small, other, other_chain) == checkpoint.Progress(7, 1.5, 900, 300)
        assert bool(other_chain[1].state) == (kept == "everything")
        for original, restored in zip(network.parameters(), other.parameters(), strict=True):
            assert float(((original - restored).norm() / original.norm()).detach()) <= close
    with pytest.raises(MidspanError, match="does not fit the config"):
        checkpoint.restore(whole, Network(attrs.evolve(SHAPE, width=64)), [])


@pytest.mark.slow
def test_results_of_a_run_in_sessions_continue_from_the_plateau_on_another_machine(
    run_folder: Path, tmp_path: Path
) -> None:
    config, work = small_config(), run_folder
    config = attrs.evolve(config, optimizer=attrs.evolve(config.optimizer, checkpoint_minutes=60, int8=False))
    train(config, work, minutes=60, workers=0, compiled=False, session=0.04)
    assert not (work / checkpoint.PLATEAU).exists()
    first = torch.load(work / checkpoint.NEWEST, weights_only=True)["progress"]
    assert first["step"] > 0
    train(config, work, minutes=2 * first["minutes"] + 0.06, workers=0, compiled=False)
    second = torch.load(work / checkpoint.NEWEST, weights_only=True)["progress"]
    assert second["step"] > first["step"]

    gpu.bring(tmp_path / "results", work, megabytes=0.05)
    assert all(path.stat().st_size <= 50_000 for path in (tmp_path / "results").iterdir())
    home = tmp_path / "home"
    (home / "corpus").parent.mkdir()
    (home / "corpus").symlink_to(work / "corpus")
    (home / "tokenizer.json").write_bytes((work / "tokenizer.json").read_bytes())
    gpu.join(tmp_path / "results", home)
    checkpoint.back_to_plateau(home)
    plateau = torch.load(home / checkpoint.NEWEST, weights_only=True)["progress"]
    assert first["step"] <= plateau["step"] < second["step"]
    train(config, home, minutes=plateau["minutes"] + 0.05, workers=0, compiled=False)
    assert torch.load(home / checkpoint.NEWEST, weights_only=True)["progress"]["step"] > plateau["step"]
    assert (home / "loss.png").exists()


def test_the_gpu_config_respects_block_size_and_weight_limit() -> None:
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
