"""Mixing networks for tests."""

import numpy as np
from numpy.typing import NDArray

from engine.memory.followers import RUN_LENGTHS
from engine.memory.mixing_network import FEATURES, HIDDEN, MixingNetwork
from engine.memory.row_memory import SCOPES


def random_network(seed: int, scale: float = 1.0) -> MixingNetwork:
    """Return a mixing network of normally distributed weights."""
    random = np.random.default_rng(seed)

    def normal(*shape: int) -> NDArray[np.float32]:
        return random.normal(scale=scale, size=shape).astype(np.float32)

    back_off = np.abs(normal(SCOPES, len(RUN_LENGTHS), 2))
    return MixingNetwork(
        normal(FEATURES, HIDDEN), normal(HIDDEN), normal(HIDDEN, 1 + SCOPES), normal(1 + SCOPES), back_off
    )


def believing_network() -> MixingNetwork:
    """Return a mixing network that believes the memory nearly always, and the longest run most."""
    return MixingNetwork(
        hidden=np.zeros((FEATURES, HIDDEN), np.float32),
        hidden_bias=np.zeros(HIDDEN, np.float32),
        output=np.zeros((HIDDEN, 1 + SCOPES), np.float32),
        output_bias=np.array([0.0, 3.0, 4.0, 3.0], np.float32),
        back_off=np.full((SCOPES, len(RUN_LENGTHS), 2), 0.01, np.float32),
    )
