"""Two runs that average their weights, in two threads as they would be in two processes."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch
from torch import nn

from engine.training import averaging
from engine.training.averaging import SHARED, Averaging


def layer(value: float) -> nn.Linear:
    made = nn.Linear(3, 2)
    nn.init.constant_(made.weight, value)
    nn.init.constant_(made.bias, value)
    return made


def test_two_runs_hold_the_mean_of_both_after_they_have_met(tmp_path: Path) -> None:
    folders = tmp_path / "a", tmp_path / "b"
    for folder in folders:
        folder.mkdir()
    networks = layer(1.0), layer(3.0)
    runs = Averaging(*folders), Averaging(*reversed(folders))
    with ThreadPoolExecutor(2) as pool:
        for expected in (2.0, 2.5):
            assert all(pool.map(Averaging.average, runs, networks))
            for network in networks:
                assert torch.equal(network.weight, torch.full((2, 3), expected))
            nn.init.constant_(networks[1].weight, 3.0)
            nn.init.constant_(networks[1].bias, 3.0)


@pytest.mark.parametrize("theirs", [None, b"no weights", "another network"])
def test_a_run_goes_on_alone_if_the_other_one_has_nothing_for_it(
    tmp_path: Path, theirs: bytes | str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(averaging, "PATIENCE", 0.3)
    own, other = tmp_path / "own", tmp_path / "other"
    own.mkdir()
    other.mkdir()
    network = layer(1.0)
    run = Averaging(own, other)
    if isinstance(theirs, bytes):
        (other / SHARED).write_bytes(theirs)
    elif theirs:
        Averaging(other, own).average(nn.Linear(5, 5))
    assert not run.average(network)
    assert torch.equal(network.weight, torch.ones(2, 3))
