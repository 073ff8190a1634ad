"""The files of a released checkpoint: are they all here, how large are they, and their tensors one by one."""

import json
from collections.abc import Iterator
from pathlib import Path

from safetensors import SafetensorError, safe_open
from torch import Tensor

from engine.errors import ModelError

_SINGLE, _INDEX = "model.safetensors", "model.safetensors.index.json"


def weight_files(folder: Path) -> list[Path]:
    """Return the safetensors files that make up the weights. Raises ModelError for one that is missing."""
    index = folder / _INDEX
    names = [_SINGLE]
    if index.exists():
        try:
            names = sorted(set(json.loads(index.read_text())["weight_map"].values()))
            paths = [folder / Path(name).name for name in names]
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            raise ModelError(f"{index} cannot be read; install the model again") from None
    else:
        paths = [folder / _SINGLE]
    for path in paths:
        if not path.is_file():
            raise ModelError(f"the model in {folder} lacks {path.name} (weights are read from safetensors only)")
    return paths


def read_tensors(paths: list[Path], device: str) -> Iterator[tuple[str, Tensor]]:
    """Yield every tensor with its name, straight onto the device. Raises ModelError for a damaged file."""
    for path in paths:
        try:
            with safe_open(path, framework="pt", device=device) as shard:
                for name in shard.keys():  # noqa: SIM118 - it is no dict
                    yield name, shard.get_tensor(name)
        except (SafetensorError, OSError) as error:
            raise ModelError(f"the weights in {path} are damaged ({error}); install the model again") from None
