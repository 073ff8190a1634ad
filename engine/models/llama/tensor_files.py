"""The tensors of a model that others trained, read piece by piece from a GGUF or from a folder of safetensors.

A file is mapped, so what is not asked for is not read. NumPy knows no bf16: its bytes are the upper half of an fp32.
"""

import math
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import attrs
import numpy as np
from gguf import GGMLQuantizationType
from gguf.quants import Q4_K, dequantize
from numpy.typing import NDArray

from engine.errors import ModelError
from engine.json_file import parse_json
from engine.library.gguf_file import GgufHeader
from engine.models.embedded.shape import Floats
from engine.models.embedded.weights import HALF, Packed, packed_pairs

Bytes = NDArray[np.uint8]
FOUR_BITS = ("Q4_0", "Q4_1", "Q4_K")
"""Types that are int4 with a scale and an offset for each 32 weights, as the kernel has it."""
_SAFETENSORS = {"F32": 4, "F16": 2, "BF16": 2}


class TensorFile(Protocol):
    """Tensors by the names that the file has for them."""

    def sides(self, name: str) -> tuple[int, ...] | None:
        """Return a tensor's sides; None if there is no such tensor."""
        ...

    def kind(self, name: str) -> str:
        """Return a tensor's type, as a GGUF names it."""
        ...

    def dense(self, name: str, first: int, stop: int) -> Floats:
        """Return rows of a tensor in fp32; of a vector, its numbers."""
        ...

    def packed(self, name: str) -> Packed:
        """Return a matrix of FOUR_BITS as it is in the file."""
        ...


class GgufTensors:
    """Implements TensorFile."""

    def __init__(self, header: GgufHeader) -> None:
        self._tensors = header.tensors
        self._data: Bytes = np.memmap(header.path, np.uint8, "r")

    def sides(self, name: str) -> tuple[int, ...] | None:
        tensor = self._tensors.get(name)
        return None if tensor is None else tensor.sides

    def kind(self, name: str) -> str:
        return self._tensors[name].kind

    def dense(self, name: str, first: int, stop: int) -> Floats:
        kind, rows = self.kind(name), self._rows(name)[first:stop]
        if kind == "F32":
            return rows.view(np.float32).reshape(-1) if self._is_vector(name) else rows.view(np.float32)
        result: Floats = dequantize(rows, GGMLQuantizationType[kind])
        return result.reshape(-1) if self._is_vector(name) else result

    def packed(self, name: str) -> Packed:
        blocks = {"Q4_0": _of_q4_0, "Q4_1": _of_q4_1, "Q4_K": _of_q4_k}[self.kind(name)]
        rows = self._rows(name)
        outputs, inputs = self._tensors[name].sides
        whole, scales, offsets = blocks(rows)
        sides = (outputs, inputs // HALF)
        values = packed_pairs(whole.reshape(outputs, inputs))
        return Packed(values, scales.reshape(sides), offsets.reshape(sides))

    def _is_vector(self, name: str) -> bool:
        return len(self._tensors[name].sides) == 1

    def _rows(self, name: str) -> Bytes:
        """Return the bytes of a tensor by its rows; each number of a vector is a row."""
        tensor = self._tensors[name]
        return self._data[tensor.start : tensor.start + tensor.size].reshape(tensor.sides[0], -1)


def _of_q4_0(rows: Bytes) -> tuple[Bytes, NDArray[np.float16], NDArray[np.float16]]:
    blocks = rows.reshape(-1, 18)
    scales = blocks[:, :2].copy().view(np.float16)
    return _halves(blocks[:, 2:]), scales, (scales.astype(np.float32) * -8).astype(np.float16)


def _of_q4_1(rows: Bytes) -> tuple[Bytes, NDArray[np.float16], NDArray[np.float16]]:
    blocks = rows.reshape(-1, 20)
    numbers = blocks[:, :4].copy().view(np.float16)
    return _halves(blocks[:, 4:]), numbers[:, :1].copy(), numbers[:, 1:].copy()


def _of_q4_k(rows: Bytes) -> tuple[Bytes, NDArray[np.float16], NDArray[np.float16]]:
    blocks = rows.reshape(-1, 144)
    both = blocks[:, :4].copy().view(np.float16).astype(np.float32)
    scales, least = Q4_K.get_scale_min(blocks[:, 4:16])
    whole = _halves(blocks[:, 16:].reshape(-1, HALF))
    return whole, (both[:, :1] * scales).astype(np.float16), (-both[:, 1:] * least).astype(np.float16)


def _halves(blocks: Bytes) -> Bytes:
    """Return the low halves of each block's bytes, and the high ones after them."""
    return np.concatenate((blocks & 15, blocks >> 4), 1)


@attrs.frozen
class _Stored:
    kind: str
    sides: tuple[int, ...]
    data: Bytes


class SafetensorsFolder:
    """Implements TensorFile, for all .safetensors of a folder."""

    def __init__(self, paths: Sequence[Path]) -> None:
        """Raises ModelError for a damaged file."""
        self._stored: dict[str, _Stored] = {}
        for path in paths:
            try:
                self._add(path)
            except (OSError, ValueError, LookupError, TypeError, AttributeError, struct.error) as error:
                raise ModelError(f"the weights in {path} are damaged ({error}); install the model again") from None

    def _add(self, path: Path) -> None:
        data = np.memmap(path, np.uint8, "r")
        (length,) = struct.unpack("<Q", data[:8].tobytes())
        if length > len(data) - 8:
            raise ValueError("a header longer than the file")
        for name, tensor in parse_json(data[8 : 8 + length].tobytes()).items():
            if name == "__metadata__":
                continue
            kind, sides = tensor["dtype"], tuple(tensor["shape"])
            first, stop = tensor["data_offsets"]
            if kind not in _SAFETENSORS:
                raise ValueError(f"{name} is in {kind}")
            if not all(type(number) is int and number >= 0 for number in (*sides, first, stop)):
                raise ValueError(f"{name} has no size")
            if stop - first != math.prod(sides) * _SAFETENSORS[kind] or stop > len(data) - 8 - length:
                raise ValueError(f"{name} is cut short")
            self._stored[name] = _Stored(kind, sides, data[8 + length + first : 8 + length + stop])

    def sides(self, name: str) -> tuple[int, ...] | None:
        stored = self._stored.get(name)
        return None if stored is None else stored.sides

    def kind(self, name: str) -> str:
        return self._stored[name].kind

    def dense(self, name: str, first: int, stop: int) -> Floats:
        stored = self._stored[name]
        rows = stored.data.reshape(stored.sides[0], -1)[first:stop]
        if stored.kind == "BF16":
            wide: Floats = (np.ascontiguousarray(rows).view(np.uint16).astype(np.uint32) << 16).view(np.float32)
        else:
            form = np.float32 if stored.kind == "F32" else np.float16
            wide = np.ascontiguousarray(rows).view(form).astype(np.float32)
        return wide.reshape(-1) if len(stored.sides) == 1 else wide

    def packed(self, name: str) -> Packed:
        raise ValueError(f"{name} is not in 4 bits")
