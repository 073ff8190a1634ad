"""The weights of a released checkpoint: safetensors, in one file or in shards with an index."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from safetensors import SafetensorError, safe_open
from torch import Tensor

from engine.errors import ModelError
from engine.json_file import read_json

_SINGLE, _INDEX = "model.safetensors", "model.safetensors.index.json"


def weight_files(folder: Path) -> list[Path]:
    """Return the safetensors files of the weights, in order. Raises ModelError if one is missing."""
    names = _indexed(folder / _INDEX) if (folder / _INDEX).exists() else [_SINGLE]
    for name in names:
        if not (folder / name).is_file():
            if any(folder.glob("*.bin")):
                raise ModelError(f"the weights in {folder} are pickled (.bin); only safetensors are read")
            raise ModelError(f"the model in {folder} lacks {name}; install it again")
    return [folder / name for name in names]


def _indexed(index: Path) -> list[str]:
    try:
        names = set(read_json(index)["weight_map"].values())
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise ModelError(f"{index} cannot be read; install the model again") from None
    if not names or not all(isinstance(name, str) and Path(name).name == name for name in names):
        raise ModelError(f"{index} names no files in this folder; install the model again")
    return sorted(names)


def read_tensors(paths: Sequence[Path], device: str = "cpu") -> Iterator[tuple[str, Tensor]]:
    """Yield every tensor with its name, loaded onto the device. Raises ModelError for a damaged file."""
    for path in paths:
        try:
            with safe_open(path, framework="pt", device=device) as shard:
                for name in shard.keys():  # noqa: SIM118 - not a dict
                    yield name, shard.get_tensor(name)
        except (SafetensorError, OSError) as error:
            reason = str(error).splitlines()[0]
            raise ModelError(f"the weights in {path} are damaged ({reason}); install the model again") from None
