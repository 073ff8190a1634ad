"""How much the memory is believed: the weights of a mixture, from a network with one hidden layer."""

from pathlib import Path

import attrs
import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file

from engine.errors import ModelError
from engine.library.resolve import EMBEDDED_FOLDER
from engine.memory.followers import RUNS
from engine.memory.row_memory import SCOPES
from engine.memory.row_statistics import FEATURES, Statistics

GATE_FILE = "memory.safetensors"
"""The name of a gate's file in the folder of the weights that it was trained for."""
HIDDEN = 32
_NEVER = np.float32(-1e9)

Floats = NDArray[np.float32]


@attrs.frozen(eq=False)
class MemoryGate:
    """Weights of the model and of each scope, and of the runs within a scope.

    hidden: fp32 [FEATURES, HIDDEN], hidden_bias [HIDDEN], output [HIDDEN, 1 + SCOPES], output_bias [1 + SCOPES].
    back_off: fp32 [SCOPES, runs, 2]. A run that occurred `total` times, with `kinds` different followers, leaves the
    shorter runs the share s / (total + s), s = back_off[0] * kinds + back_off[1] (1 and 0 in Witten and Bell, 1991).
    """

    hidden: Floats
    hidden_bias: Floats
    output: Floats
    output_bias: Floats
    back_off: Floats

    @classmethod
    def load(cls, path: Path) -> "MemoryGate":
        """Read a gate. Raises ModelError if the file is none, or of another shape."""
        shapes = {
            "hidden": (FEATURES, HIDDEN),
            "hidden_bias": (HIDDEN,),
            "output": (HIDDEN, 1 + SCOPES),
            "output_bias": (1 + SCOPES,),
            "back_off": (SCOPES, len(RUNS), 2),
        }
        try:
            tensors = load_file(path)
        except Exception as error:  # safetensors has its own type, and OSError
            raise ModelError(f"{path} cannot be read as a gate: {error}") from None
        if {name: tensor.shape for name, tensor in tensors.items()} != shapes:
            raise ModelError(f"{path} is a gate of another version; run `midspan train memory`")
        return cls(**tensors)

    @classmethod
    def of_model(cls, folder: Path) -> "MemoryGate":
        """Read the gate of the model in `folder`; without one, the gate of the embedded model. Raises ModelError."""
        own = folder / GATE_FILE
        return cls.load(own if own.exists() else EMBEDDED_FOLDER / GATE_FILE)

    def save(self, path: Path) -> None:
        """Write the gate as safetensors."""
        save_file({name: np.ascontiguousarray(tensor) for name, tensor in attrs.asdict(self).items()}, path)

    def weights(self, features: Floats, present: NDArray[np.bool_]) -> Floats:
        """Return the mixture weights [n, 1 + SCOPES] of the model and of each scope; they sum to 1.

        features: [n, FEATURES]. present: [n, SCOPES], the scopes that have followers; others get 0.
        """
        hidden = np.maximum(features @ self.hidden + self.hidden_bias, 0)
        scores = hidden @ self.output + self.output_bias
        scores[:, 1:] = np.where(present, scores[:, 1:], _NEVER)
        scores -= scores.max(1, keepdims=True)
        shares: Floats = np.exp(scores)
        shares /= shares.sum(1, keepdims=True)
        return shares

    def run_weights(self, statistics: Statistics) -> Floats:
        """Return the weights [n, SCOPES, runs] of the runs within each scope; of a scope with followers they sum to 1.

        The longest run comes first. What it leaves goes to the next shorter one.
        """
        strength = statistics.kinds * self.back_off[..., 0] + self.back_off[..., 1]
        occurs = statistics.totals > 0
        kept = np.where(occurs, statistics.totals / np.maximum(statistics.totals + strength, 1e-9), 0)
        left = np.cumprod(1 - kept[..., ::-1], axis=-1)[..., ::-1]
        weights: Floats = kept.copy()
        weights[..., :-1] *= left[..., 1:]
        weights /= np.maximum(weights.sum(-1, keepdims=True), 1e-9)
        return weights
