"""Checkpoints: the whole state of a run, or a small copy for a machine that only takes small files."""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import attrs
import torch
from torch import Tensor
from torch.optim import Optimizer

from engine.errors import MidspanError
from engine.models.embedded.int8_weights import pack, unpack
from engine.models.embedded.link import Link
from engine.models.embedded.network import Network

NEWEST, PLATEAU = "checkpoint.pt", "plateau.pt"
Precision = Literal["fp32", "bf16", "int8"]
Contents = Literal["weights", "everything"]


class CheckpointError(MidspanError):
    """A checkpoint that is missing, damaged or of another network."""

    code = "checkpoint"


@attrs.define
class Progress:
    """How far a run is; saved with every checkpoint."""

    step: int = 0
    minutes: float = 0.0
    stream_tokens: int = 0
    canvas_rows: int = 0


def save(path: Path, network: Network, chain: Sequence[Optimizer], progress: Progress) -> None:
    """Write a checkpoint; an older one stays whole until the new one is complete."""
    state: dict[str, object] = {
        "network": dict(network.state_dict()),
        "optimizers": [optimizer.state_dict() for optimizer in chain],
        "progress": attrs.asdict(progress),
    }
    _write(path, state)


def restore(path: Path, network: Network, chain: Sequence[Optimizer]) -> Progress:
    """Load a checkpoint into a network and its optimizers; optimizers without saved state stay as they are.

    An empty chain loads the weights only. Raises CheckpointError.
    """
    saved = _read(path)
    try:
        weights, own = unpack(saved["network"]), network.state_dict()
        # A checkpoint without a link gets the network's own link, which adds nothing yet.
        weights |= {name: own[name] for name in own if name.startswith("link.") and name not in weights}
        network.load_state_dict(weights)
        if chain and saved["optimizers"]:
            for optimizer, state in zip(chain, saved["optimizers"], strict=False):  # the link's is the last one
                optimizer.load_state_dict(state)
        return Progress(**saved["progress"])
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        reason = str(error).strip().splitlines()[-1].strip()
        raise CheckpointError(
            f"{path} does not fit the config: {reason}; name the config it was trained with"
        ) from None


def slim(source: Path, target: Path, precision: Precision, contents: Contents) -> None:
    """Write a smaller copy of a checkpoint, from which a run can continue.

    A weight takes 4, 2 or 1 bytes. Without the optimizers' state the run loses their momentum, some hundred steps'
    worth.
    """
    saved = _read(source)
    saved["network"] = unpack(saved["network"])
    dtype = torch.float32 if precision == "fp32" else torch.bfloat16
    if precision == "int8":
        saved["network"] = pack(saved["network"])
    else:
        saved["network"] = _cast(saved["network"], dtype)
    saved["optimizers"] = _cast(saved["optimizers"], dtype) if contents == "everything" else []
    _write(target, saved)


def give_link(path: Path, link: Link) -> None:
    """Replace the link in a checkpoint and drop its optimizer's state, which no longer fits."""
    saved = _read(path)
    saved["network"] = unpack(saved["network"]) | {f"link.{name}": each for name, each in link.state_dict().items()}
    saved["optimizers"] = saved["optimizers"][:2]
    _write(path, saved)


def back_to_plateau(work: Path) -> None:
    """Set the run in `work` back to the start of its cooldown; a longer `--minutes` then plans a new one."""
    if not (work / PLATEAU).exists():
        raise CheckpointError(f"no {PLATEAU} in {work}; it is written when the learning rate begins to fall")
    shutil.copyfile(work / PLATEAU, work / NEWEST)


def _cast(value: Any, dtype: torch.dtype) -> Any:
    """Return nested lists and dicts with their float tensors in another precision; counters of shape [] stay."""
    if isinstance(value, Tensor):
        return value.to(dtype) if value.is_floating_point() and value.ndim else value
    if isinstance(value, dict):
        return {key: _cast(each, dtype) for key, each in value.items()}
    return [_cast(each, dtype) for each in value] if isinstance(value, list) else value


def _read(path: Path) -> dict[str, Any]:
    try:
        saved: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
        return saved
    except FileNotFoundError:
        raise CheckpointError(f"no checkpoint at {path}; train first: midspan train") from None
    except Exception as error:
        reason = str(error).strip().splitlines()[0]
        raise CheckpointError(f"{path} is damaged ({reason}); delete it or bring it again") from None


def _write(path: Path, state: dict[str, Any]) -> None:
    draft = path.with_suffix(".part")
    torch.save(state, draft)
    draft.replace(path)
