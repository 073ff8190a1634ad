"""Runs side by side that average their weights every some steps (local SGD: Stich, arXiv 1805.09767).

Two runs of one thread each use two cores better than one run of two threads, which stalls wherever another program
takes a core for a moment. Each reads other holes (another `optimizer.seed`). Only weights are averaged, no momentum.
"""

import time
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import nn

from engine.training.checkpoint import drafted

EVERY = 4
"""Steps between two averages: about a minute of a core."""
PATIENCE = 120.0
"""Seconds that a run waits for the other one. It does not wait again before it has met it."""
SHARED = "shared.safetensors"
"""The name of the weights that a run shows the other one, in its own folder."""


class Averaging:
    """Averages a run's weights with those of the run in another folder, which does the same with this one's."""

    def __init__(self, own: Path, other: Path) -> None:
        self._own, self._other = own / SHARED, other / SHARED
        self._own.unlink(missing_ok=True)
        self._seen = _stamp(self._other)
        self._patience = PATIENCE

    def average(self, network: nn.Module) -> bool:
        """Share the weights, wait for the other run's, and take the mean; return whether they came in time."""
        state = {name: tensor for name, tensor in network.state_dict().items() if tensor.is_floating_point()}
        with drafted(self._own) as draft:
            save_file({name: tensor.contiguous() for name, tensor in state.items()}, draft)
        theirs = self._await()
        if theirs is None or {name: tensor.shape for name, tensor in theirs.items()} != {
            name: tensor.shape for name, tensor in state.items()
        }:
            return False
        with torch.no_grad():
            for name, tensor in state.items():
                tensor.lerp_(theirs[name].to(tensor.device), 0.5)
        return True

    def _await(self) -> dict[str, torch.Tensor] | None:
        """Return the weights that the other run has shared since the last time, or None."""
        until = time.monotonic() + self._patience
        while (stamp := _stamp(self._other)) == self._seen:
            if time.monotonic() >= until:
                self._patience = 0.0
                return None
            time.sleep(0.1)
        self._seen, self._patience = stamp, PATIENCE
        try:
            return load_file(self._other)
        except (OSError, SafetensorError):
            return None


def _stamp(path: Path) -> int:
    """Return when a file was written, in nanoseconds; 0 if there is none."""
    try:
        return path.stat().st_mtime_ns
    except FileNotFoundError:
        return 0
