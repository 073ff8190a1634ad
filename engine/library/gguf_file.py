"""The header of a GGUF file (llama.cpp, Ollama, LM Studio): what it says of a model, and where its tensors are.

Pure Python: it reads no weights, and imports no NumPy and no torch. A file may be cut short or hostile, so every length
is compared with what is left of the header before anything is made of it. The file's own size is no bound: a file of
gigabytes that nobody wrote costs nothing. The format is described in ggml's docs/gguf.md.
"""

import math
import mmap
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs

from engine.bounds import LONGEST_NAME, MOST_FIELDS, MOST_HEADER_BYTES, MOST_HEADER_ITEMS, MOST_TENSORS
from engine.errors import ModelError

MAGIC = b"GGUF"
_VERSIONS = (2, 3)
_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_STRING, _ARRAY = 8, 9
_MOST_SIDES = 4
_MOST_ALIGNMENT = 1 << 20

BLOCKS = {
    0: ("F32", 1, 4),
    1: ("F16", 1, 2),
    2: ("Q4_0", 32, 18),
    3: ("Q4_1", 32, 20),
    6: ("Q5_0", 32, 22),
    7: ("Q5_1", 32, 24),
    8: ("Q8_0", 32, 34),
    10: ("Q2_K", 256, 84),
    11: ("Q3_K", 256, 110),
    12: ("Q4_K", 256, 144),
    13: ("Q5_K", 256, 176),
    14: ("Q6_K", 256, 210),
    30: ("BF16", 1, 2),
}
"""The types of tensors that are read, by their numbers: name, weights of a block, bytes of a block."""


@attrs.frozen
class GgufTensor:
    """A tensor: its type's name, its sides [outputs, inputs] or [width], and the place of its bytes in the file."""

    name: str
    kind: str
    sides: tuple[int, ...]
    start: int
    size: int


@attrs.frozen
class GgufHeader:
    """What a file says. `fields` has numbers, truth values, strings, and lists of these."""

    path: Path
    fields: dict[str, Any]
    tensors: dict[str, GgufTensor]

    @property
    def architecture(self) -> str:
        return self.text("general.architecture")

    @property
    def parameters(self) -> int:
        return sum(math.prod(tensor.sides) for tensor in self.tensors.values())

    def text(self, key: str, default: str | None = None) -> str:
        """Return a field that is a string. Raises ModelError."""
        value = self.fields.get(key, default)
        if not isinstance(value, str):
            raise ModelError(f"{self.path} does not say {key}, or not as text")
        return value

    def number(self, key: str, default: float | None = None) -> float:
        """Return a field that is a number. Raises ModelError."""
        value: Any = self.fields.get(key, default)
        if type(value) not in (int, float) or not math.isfinite(value):
            raise ModelError(f"{self.path} does not say {key}, or not as a number")
        return float(value)

    def whole(self, key: str, default: int | None = None) -> int:
        """Return a field that is a whole number. Raises ModelError."""
        value = self.fields.get(key, default)
        if type(value) is not int:
            raise ModelError(f"{self.path} does not say {key}, or not as a whole number")
        return value

    def items(self, key: str, kind: type) -> list[Any]:
        """Return a field that is a list of `kind`. Raises ModelError."""
        value = self.fields.get(key)
        if not isinstance(value, list) or set(map(type, value)) - {kind}:
            raise ModelError(f"{self.path} does not say {key}, or not as a list")
        return value


def is_gguf(path: Path) -> bool:
    """Tell whether a path is a file that begins like a GGUF. Ollama's files have no suffix."""
    try:
        if not path.is_file():
            return False
        with path.open("rb") as stream:
            return stream.read(len(MAGIC)) == MAGIC
    except OSError:
        return False


def read_header(path: Path) -> GgufHeader:
    """Read the header of a GGUF. Raises ModelError with one line for what is none, or is damaged."""
    try:
        if not path.is_file():
            raise ModelError(f"{path} is not a file")
        with path.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return _Reader(path, data).header()
    except ValueError as error:  # mmap says so of an empty file, too
        raise ModelError(f"{path} is no GGUF that can be read: {error}") from None
    except OSError as error:
        raise ModelError(f"{path} cannot be read: {error.strerror}") from None


class _Reader:
    """Reads a header from its start. Raises ValueError in a few words."""

    def __init__(self, path: Path, data: mmap.mmap) -> None:
        self._path, self._data, self._at = path, data, 0
        self._end, self._items = min(len(data), MOST_HEADER_BYTES), MOST_HEADER_ITEMS

    def header(self) -> GgufHeader:
        if self._take(len(MAGIC)) != MAGIC:
            raise ValueError("it does not begin with GGUF")
        version = self._number("I")
        if version not in _VERSIONS:
            raise ValueError(f"it is of version {version}, and versions 2 and 3 are known")
        tensors, fields = self._count("Q", 24, MOST_TENSORS), self._count("Q", 13, MOST_FIELDS)
        found: dict[str, Any] = {}
        for _ in range(fields):
            name = self._name()
            if name in found:
                raise ValueError(f"{_short(name)} is there twice")
            found[name] = self._value(self._number("I"))
        described = [self._described() for _ in range(tensors)]
        alignment = found.get("general.alignment", 32)
        if type(alignment) is not int or not 0 < alignment <= _MOST_ALIGNMENT or alignment & (alignment - 1):
            raise ValueError("its alignment is no power of two")
        start = -(-self._at // alignment) * alignment
        return GgufHeader(self._path, found, dict(self._placed(described, start, alignment)))

    def _placed(
        self, described: list[tuple[str, tuple[int, ...], int, int]], start: int, alignment: int
    ) -> Iterator[tuple[str, GgufTensor]]:
        names = set[str]()
        for name, sides, kind, offset in described:
            if name in names:
                raise ValueError(f"the tensor {_short(name)} is there twice")
            names.add(name)
            if kind not in BLOCKS:
                raise ValueError(f"the tensor {_short(name)} is of type {kind}, which is not known")
            known, weights, size = BLOCKS[kind]
            if sides[-1] % weights or offset % alignment:
                raise ValueError(f"the tensor {_short(name)} has no whole blocks")
            length = math.prod(sides) // weights * size
            if start + offset + length > len(self._data):
                raise ValueError("it is cut short: fetch it again")
            yield name, GgufTensor(name, known, sides, start + offset, length)

    def _described(self) -> tuple[str, tuple[int, ...], int, int]:
        """Return a tensor's name, its sides (the longest stride first), its type and its offset."""
        name, count = self._name(), self._number("I")
        if not 0 < count <= _MOST_SIDES:
            raise ValueError(f"the tensor {_short(name)} has {count} sides")
        sides = tuple(self._number("Q") for _ in range(count))[::-1]
        if not all(0 < side < 1 << 40 for side in sides):
            raise ValueError(f"the tensor {_short(name)} has a side of no length")
        while len(sides) > 1 and sides[0] == 1:
            sides = sides[1:]
        return name, sides, self._number("I"), self._number("Q")

    def _value(self, kind: int) -> Any:
        if kind == _STRING:
            return self._string()
        if kind in _SCALARS:
            return self._number(_SCALARS[kind])
        if kind != _ARRAY:
            raise ValueError(f"a field is of type {kind}")
        inner = self._number("I")
        if inner == _STRING:
            return self._strings(self._list_count(8))
        if inner not in _SCALARS:
            raise ValueError(f"a list is of type {inner}")
        form = _SCALARS[inner]
        count = self._list_count(struct.calcsize(form))
        return list(struct.unpack(f"<{count}{form}", self._take(count * struct.calcsize(form))))

    def _count(self, form: str, least_bytes: int, most: int | None = None) -> int:
        """Read how many things come, each of at least so many bytes: no more than a header has room for."""
        count: int = self._number(form)
        if count * least_bytes > self._end - self._at or (most is not None and count > most):
            raise ValueError(f"it says that {count} things come, which its header has no room for")
        return count

    def _list_count(self, least_bytes: int) -> int:
        count = self._count("Q", least_bytes, self._items)
        self._items -= count
        return count

    def _strings(self, count: int) -> list[str]:
        """Read strings in a row: a vocabulary has 150,000."""
        data, at, most, found = self._data, self._at, self._end, list[bytes]()
        read, add = struct.Struct("<Q").unpack_from, found.append
        try:
            for _ in range(count):
                start = at + 8
                at = start + read(data, at)[0]
                if at > most:
                    raise self._too_short()
                add(data[start:at])
        except struct.error:
            raise self._too_short() from None
        self._at = at
        texts = b"\0".join(found).decode("utf-8", "replace").split("\0")
        return texts if len(texts) == count else [each.decode("utf-8", "replace") for each in found]

    def _name(self) -> str:
        return self._take(self._count("Q", 1, LONGEST_NAME)).decode("utf-8", "replace")

    def _string(self) -> str:
        return self._take(self._count("Q", 1)).decode("utf-8", "replace")

    def _number(self, form: str) -> Any:
        return struct.unpack(f"<{form}", self._take(struct.calcsize(form)))[0]

    def _take(self, count: int) -> bytes:
        if count > self._end - self._at:
            raise self._too_short()
        self._at += count
        return self._data[self._at - count : self._at]

    def _too_short(self) -> ValueError:
        if self._end < len(self._data):
            return ValueError(f"its header has more than {MOST_HEADER_BYTES >> 20} MB")
        return ValueError("it is cut short: fetch it again")


def _short(name: str) -> str:
    return repr(name[:40])
