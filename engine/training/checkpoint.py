"""Checkpoints: the network's shape and weights, and the state of a run."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import attrs
import cattrs
import torch
from safetensors import SafetensorError
from torch.optim import Optimizer

from engine.errors import MidspanError
from engine.models.embedded.network import Network
from engine.models.embedded.shape import Shape
from engine.training.rounded import NUMBERS, round_linears

NEWEST, PLATEAU, PARENT = "checkpoint.pt", "plateau.pt", "parent.pt"


class CheckpointError(MidspanError):
    """A checkpoint that is missing, damaged or of another network."""

    code = "checkpoint"


@attrs.define
class Progress:
    """How far a run is; saved with every checkpoint.

    `minutes` plan the rate. `earlier` are the minutes before it rose again.
    """

    step: int = 0
    minutes: float = 0.0
    earlier: float = 0.0
    stream_tokens: int = 0
    canvas_rows: int = 0
    middle_tokens: int = 0


def save(path: Path, network: Network, optimizer: Optimizer | None = None, progress: Progress | None = None) -> None:
    """Write a checkpoint."""
    state: dict[str, Any] = {
        "shape": attrs.asdict(network.shape),
        "network": dict(network.state_dict()),
        "optimizer": optimizer.state_dict() if optimizer is not None else None,
        "progress": attrs.asdict(progress or Progress()),
    }
    write_state(path, state)


def load_network(path: Path) -> Network:
    """Return the network of a checkpoint. Raises CheckpointError."""
    saved = _read(path)
    try:
        network = Network(cattrs.Converter(detailed_validation=False).structure(saved["shape"], Shape))
        if any(name.endswith(f".{NUMBERS}") for name in saved["network"]):
            round_linears(network)
        network.load_state_dict(saved["network"])
    except Exception as error:
        raise CheckpointError(f"{path} is no checkpoint of this kind of network: {_reason(error)}") from None
    return network


def restore(path: Path, network: Network, optimizer: Optimizer) -> Progress:
    """Load a checkpoint into a network and its optimizer. Raises CheckpointError."""
    saved = _read(path)
    try:
        network.load_state_dict(saved["network"])
        if saved["optimizer"] is not None:
            optimizer.load_state_dict(saved["optimizer"])
        return Progress(**saved["progress"])
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        raise CheckpointError(
            f"{path} does not fit the run: {_reason(error)}; convert the parent again into another folder"
        ) from None


def progress_of(path: Path) -> Progress:
    """Return how far the run of a checkpoint was. Raises CheckpointError."""
    return Progress(**_read(path)["progress"])


def begin_again(work: Path) -> Progress:
    """Let the next training of a run begin with a new rise of the rate, from its exact weights.

    Returns how far the run is. Raises CheckpointError.
    """
    saved = _read(work / NEWEST)
    progress = Progress(**saved["progress"])
    progress.earlier, progress.minutes = progress.earlier + progress.minutes, 0.0
    write_state(work / NEWEST, {**saved, "progress": attrs.asdict(progress)})
    return progress


@contextmanager
def drafted(path: Path) -> Iterator[Path]:
    """Give the path of a draft, which takes the place of `path` once it is whole. Raises CheckpointError."""
    draft = path.with_suffix(".part")
    try:
        yield draft
        draft.replace(path)
    except (OSError, RuntimeError, SafetensorError) as error:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
        raise CheckpointError(
            f"{path.parent} cannot be written ({_reason(error)}); make room and start it again"
        ) from None


def write_state(path: Path, state: dict[str, Any]) -> None:
    """Write the state of a run; an older one stays whole until the new one is complete. Raises CheckpointError."""
    with drafted(path) as draft:
        torch.save(state, draft)


def _reason(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[-1].strip()


def _read(path: Path) -> dict[str, Any]:
    try:
        saved: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
        return saved
    except FileNotFoundError:
        raise CheckpointError(f"no checkpoint at {path}; make one: midspan train convert") from None
    except Exception as error:
        raise CheckpointError(f"{path} is damaged ({_reason(error)}); delete it or bring it again") from None
