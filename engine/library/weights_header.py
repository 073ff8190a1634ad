"""The headers of a model's safetensors files: how many parameters they hold. Does not import torch.

The matrices of a released checkpoint's layers can be quantized, also those of experts: nearly all of a model.
Embedding, head and router keep their precision because their errors affect every token. Norms and biases are too small
to matter.
"""

import math
import re
import struct
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import attrs

from engine.errors import ModelError
from engine.json_file import parse_json, read_json, unpacked

SIDE = 16
"""The kernels need matrices whose sides are multiples of this. All released models have such matrices."""
_IN_A_LAYER = re.compile(r"\.(?:layers|blocks)\.\d+\.")
_IMAGE_PARTS = ("vision_tower.", "embed_vision.")
_ROUTER = ".router."


def is_quantized(name: str, shape: Sequence[int]) -> bool:
    """Tell whether a tensor can be quantized: a matrix [out, in] of a layer, or a stack of such matrices."""
    if len(shape) < 2 or _ROUTER in name or not _IN_A_LAYER.search(name):
        return False
    return shape[-1] % SIDE == 0 and shape[-2] % SIDE == 0


def is_image_tensor(name: str) -> bool:
    """Tell whether a tensor belongs to the image encoder, which is never loaded."""
    return any(part in name for part in _IMAGE_PARTS)


_FILES = ("config.json", "tokenizer.json.gz", "model.safetensors")
_SCALE = ".scale"
_PARTS = (_SCALE, ".centre", ".steps")
"""What a quantized matrix of the embedded model has beside its numbers (models/embedded/weights.py)."""


@attrs.frozen
class WeightsHeader:
    """The size of a model's weights.

    Only `loaded` of the `parameters` are ever loaded: not those for images. `plain` of the loaded are never quantized.
    """

    parameters: int
    megabytes: float
    loaded: int = 0
    plain: int = 0


def read_weights() -> WeightsHeader:
    """Check the embedded model's files and count its parameters.

    Raises ModelError when a file is missing, has the wrong format, or is cut short.
    """
    folder = Path(str(files("engine"))) / "weights"
    for name in _FILES:
        if not (folder / name).is_file():
            raise ModelError(f"{folder / name} is missing")
    for name, read in (("config.json", read_json), ("tokenizer.json.gz", lambda path: parse_json(unpacked(path)))):
        try:
            read(folder / name)
        except ValueError:
            raise ModelError(f"{folder / name} is not JSON") from None
    return read_safetensors(folder / "model.safetensors")


OUR_OWN = re.compile(r"(?i)midspan.*|memory\.safetensors")
"""Our records, a user's notes, an adapter and the mixing network of a model: a repository must not bring its own."""


def weight_files(folder: Path) -> list[Path]:
    """Return the safetensors of a folder that are a model's."""
    return sorted(path for path in folder.glob("*.safetensors") if not OUR_OWN.fullmatch(path.name))


def read_folder(folder: Path) -> WeightsHeader:
    """Count the parameters in the safetensors files of `folder`. Raises ModelError for a bad file and for no file."""
    paths = weight_files(folder)
    if not paths:
        raise ModelError(f"there is no .safetensors file in {folder}; Midspan reads no other format")
    return read_files(paths)


def read_files(paths: Sequence[Path]) -> WeightsHeader:
    """Count the parameters in these files. Raises ModelError for a bad one."""
    headers = [read_safetensors(path) for path in paths]
    return WeightsHeader(
        sum(header.parameters for header in headers),
        sum(header.megabytes for header in headers),
        sum(header.loaded for header in headers),
        sum(header.plain for header in headers),
    )


def read_safetensors(path: Path) -> WeightsHeader:
    """Count the parameters in one file. Raises ModelError when it has the wrong format or is cut short.

    The safetensors format: a little-endian u64 length, that many bytes of JSON with the shape and the offsets of each
    tensor, then the tensors.
    """
    try:
        with path.open("rb") as stream:
            (length,) = struct.unpack("<Q", stream.read(8))
            if length > path.stat().st_size:
                raise ValueError("a header longer than the file")
            tensors = parse_json(stream.read(length))
        tensors.pop("__metadata__", None)
        end = 8 + length + max(_whole(tensor["data_offsets"][1]) for tensor in tensors.values())
        names = [name for name in tensors if not _is_part(name, tensors)]
        shapes = {name: _shape(name, tensors[name], tensors) for name in names}
        counts = [(name, shape, math.prod(shape)) for name, shape in shapes.items()]
    except (struct.error, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        raise ModelError(
            f"the weights in {path} are damaged, or the file is a Git LFS pointer; install the model again"
        ) from None
    size = path.stat().st_size
    if size != end:
        raise ModelError(f"{path} has {size} bytes instead of {end}: it is damaged; install the model again")
    loaded = [(name, shape, count) for name, shape, count in counts if not is_image_tensor(name)]
    plain = [count for name, shape, count in loaded if not is_quantized(name, shape)]
    return WeightsHeader(sum(count for *_, count in counts), size / 1e6, sum(count for *_, count in loaded), sum(plain))


def _is_part(name: str, tensors: Mapping[str, Any]) -> bool:
    """Tell whether a tensor belongs to the numbers of another one."""
    return any(name.endswith(part) and name.removesuffix(part) in tensors for part in _PARTS)


def _shape(name: str, tensor: Any, tensors: Mapping[str, Any]) -> list[int]:
    """Return a tensor's sides. In the embedded model's matrices in 4 bits a byte has two numbers."""
    sides = [_whole(side) for side in tensor["shape"]]
    if sides and tensor.get("dtype") == "U8" and name + _SCALE in tensors:
        sides[-1] *= 2
    return sides


def _whole(value: object) -> int:
    """Return a size or an offset. Raises TypeError for anything else that JSON can say."""
    if type(value) is not int or value < 0:
        raise TypeError
    return value
