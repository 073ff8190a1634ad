"""The tensors of a model that others trained, read piece by piece from a GGUF or from a folder of safetensors.

A file is mapped, so what is not asked for is not read. NumPy knows no bf16: its bytes are the upper half of an fp32.
"""

import math
import mmap
import os
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import attrs
import numpy as np
from numpy.typing import NDArray

from engine.errors import ModelError
from engine.json_file import parse_json
from engine.library.gguf_file import GgufHeader
from engine.models.embedded.shape import Floats

Bytes = NDArray[np.uint8]
FOUR_BITS = ("Q4_0", "Q4_1", "Q4_K")
"""Types that are int4 with a scale and an offset for each 32 weights, as the kernel has it."""
Stamp = tuple[int, int, int, int]
"""A file's inode, its bytes, and when its content and its inode were changed, in nanoseconds."""
_SAFETENSORS = {"F32": 4, "F16": 2, "BF16": 2}


class TensorFile(Protocol):
    """Tensors by the names that the file has for them."""

    @property
    def names(self) -> list[str]:
        """The names of all tensors."""
        ...

    def sides(self, name: str) -> tuple[int, ...] | None:
        """Return a tensor's sides; None if there is no such tensor."""
        ...

    def kind(self, name: str) -> str:
        """Return a tensor's type, as a GGUF names it."""
        ...

    def dense(self, name: str, first: int, stop: int) -> Floats:
        """Return rows of a tensor in fp32; of a vector, its numbers."""
        ...

    def bytes_of(self, name: str) -> Bytes:
        """Return a tensor's bytes, without reading them."""
        ...

    def drop(self) -> None:
        """Forget what was read. Another reading reads the file again."""
        ...

    @property
    def stamps(self) -> list[Stamp]:
        """What changes when somebody changes a file or puts another in its place."""
        ...


class GgufTensors:
    """Implements TensorFile."""

    def __init__(self, header: GgufHeader) -> None:
        self._tensors = header.tensors
        self._file = _MappedFile(header.path)

    @property
    def names(self) -> list[str]:
        return list(self._tensors)

    def sides(self, name: str) -> tuple[int, ...] | None:
        tensor = self._tensors.get(name)
        return None if tensor is None else tensor.sides

    def kind(self, name: str) -> str:
        return self._tensors[name].kind

    def dense(self, name: str, first: int, stop: int) -> Floats:
        kind, rows = self.kind(name), self._rows(name)[first:stop]
        if kind == "F32":
            return rows.view(np.float32).reshape(-1) if self._is_vector(name) else rows.view(np.float32)
        # A start with packed weights needs none of it.
        from gguf import GGMLQuantizationType
        from gguf.quants import dequantize

        result: Floats = dequantize(rows, GGMLQuantizationType[kind])
        return result.reshape(-1) if self._is_vector(name) else result

    def bytes_of(self, name: str) -> Bytes:
        tensor = self._tensors[name]
        return self._file.part(tensor.start, tensor.start + tensor.size)

    def drop(self) -> None:
        self._file.drop()

    @property
    def stamps(self) -> list[Stamp]:
        return [self._file.stamp]

    def _is_vector(self, name: str) -> bool:
        return len(self._tensors[name].sides) == 1

    def _rows(self, name: str) -> Bytes:
        """Return the bytes of a tensor by its rows; each number of a vector is a row."""
        return self.bytes_of(name).reshape(self._tensors[name].sides[0], -1)


class _MappedFile:
    """A file's bytes, which are read when they are used.

    To read what is not in the file any more ends the process, so its size is looked at before.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        with path.open("rb") as stream:
            self._map = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
            status = os.fstat(stream.fileno())
        self.stamp: Stamp = (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
        self._data = np.frombuffer(self._map, np.uint8)

    def __len__(self) -> int:
        return len(self._data)

    def part(self, start: int, stop: int) -> Bytes:
        """Return some bytes of the file. Raises ModelError if they are not there any more."""
        if self._map.size() < stop:
            raise ModelError(f"{self._path} was cut short while it was loaded; get the model again")
        return self._data[start:stop]

    def drop(self) -> None:
        if hasattr(mmap, "MADV_DONTNEED"):
            self._map.madvise(mmap.MADV_DONTNEED)


@attrs.frozen
class _Stored:
    kind: str
    sides: tuple[int, ...]
    file: _MappedFile
    start: int
    stop: int

    @property
    def data(self) -> Bytes:
        return self.file.part(self.start, self.stop)


class SafetensorsFolder:
    """Implements TensorFile, for all .safetensors of a folder."""

    def __init__(self, paths: Sequence[Path]) -> None:
        """Raises ModelError for a damaged file."""
        self._stored: dict[str, _Stored] = {}
        self._files: list[_MappedFile] = []
        for path in paths:
            try:
                self._add(path)
            except (OSError, ValueError, LookupError, TypeError, AttributeError, struct.error) as error:
                raise ModelError(f"the weights in {path} are damaged ({error}); install the model again") from None

    def _add(self, path: Path) -> None:
        file = _MappedFile(path)
        self._files.append(file)
        if len(file) < 8:
            raise ValueError("no header")
        (length,) = struct.unpack("<Q", file.part(0, 8).tobytes())
        if length > len(file) - 8:
            raise ValueError("a header longer than the file")
        for name, tensor in parse_json(file.part(8, 8 + length).tobytes()).items():
            if name == "__metadata__":
                continue
            kind, sides = tensor["dtype"], tuple(tensor["shape"])
            first, stop = tensor["data_offsets"]
            if kind not in _SAFETENSORS:
                raise ValueError(f"{name} is in {kind}")
            if not all(type(number) is int and number >= 0 for number in (*sides, first, stop)):
                raise ValueError(f"{name} has no size")
            if stop - first != math.prod(sides) * _SAFETENSORS[kind] or stop > len(file) - 8 - length:
                raise ValueError(f"{name} is cut short")
            self._stored[name] = _Stored(kind, sides, file, 8 + length + first, 8 + length + stop)

    @property
    def names(self) -> list[str]:
        return list(self._stored)

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

    def bytes_of(self, name: str) -> Bytes:
        return self._stored[name].data

    def drop(self) -> None:
        for file in self._files:
            file.drop()

    @property
    def stamps(self) -> list[Stamp]:
        return [file.stamp for file in self._files]
