"""What a model's files say about themselves, read without torch."""

import json
import math
import struct
from importlib.resources import files
from pathlib import Path

import attrs

from engine.errors import ModelError

_FILES = ("config.json", "tokenizer.json", "model.safetensors")


@attrs.frozen
class WeightsHeader:
    parameters: int
    megabytes: float


def read_weights() -> WeightsHeader:
    """Check the embedded model's files and count its parameters.

    Raises ModelError when one is missing, is not what it should be, or is cut short.
    """
    folder = Path(str(files("engine"))) / "weights"
    for name in _FILES:
        if not (folder / name).is_file():
            raise ModelError(f"{folder / name} is missing")
    for name in ("config.json", "tokenizer.json"):
        try:
            json.loads((folder / name).read_bytes())
        except ValueError:
            raise ModelError(f"{folder / name} is not JSON") from None
    return read_safetensors(folder / "model.safetensors")


def read_folder(folder: Path) -> WeightsHeader:
    """Count the parameters in all safetensors files of `folder`. Raises ModelError when there is none, or a bad one."""
    headers = [read_safetensors(path) for path in sorted(folder.glob("*.safetensors"))]
    if not headers:
        raise ModelError(f"no .safetensors file is in {folder}; other kinds of weights are not read")
    return WeightsHeader(sum(header.parameters for header in headers), sum(header.megabytes for header in headers))


def read_safetensors(path: Path) -> WeightsHeader:
    """Count the parameters in one file. Raises ModelError when it is not what it should be, or is cut short.

    The layout of safetensors: a little-endian u64 length, that many bytes of JSON with each tensor's shape and offsets,
    then the tensors.
    """
    try:
        with path.open("rb") as stream:
            (length,) = struct.unpack("<Q", stream.read(8))
            if length > path.stat().st_size:
                raise ValueError("a header longer than the file")
            tensors = json.loads(stream.read(length))
        tensors.pop("__metadata__", None)
        end = 8 + length + max(tensor["data_offsets"][1] for tensor in tensors.values())
        parameters = sum(math.prod(tensor["shape"]) for tensor in tensors.values())
    except (struct.error, ValueError, KeyError, TypeError, AttributeError):
        raise ModelError(f"{path} is not a safetensors file; is it a Git LFS pointer?") from None
    size = path.stat().st_size
    if size != end:
        raise ModelError(f"{path} has {size} bytes instead of {end}: it was cut short")
    return WeightsHeader(parameters, size / 1e6)
