"""JSON files and texts. What is read may be anything: a device, a pipe without a writer, 100,000 nested brackets.

Everybody who reads JSON of a stranger does it here.
"""

import json
import stat
import zlib
from collections.abc import Callable
from json.decoder import JSONArray, JSONObject  # type: ignore[attr-defined]  # both are as old as the module
from json.scanner import py_make_scanner  # type: ignore[attr-defined]
from pathlib import Path
from typing import Any

from engine.bounds import DEEPEST, LONGEST_NAME, MOST_JSON_BYTES, MOST_VALUES
from engine.errors import ModelError
from engine.whole_files import make_folder, write_whole


def read_json(path: Path, most_bytes: int = MOST_JSON_BYTES) -> Any:
    """Return the values in a JSON file. Raises OSError, and ValueError in a few words for what is no such file."""
    return parse_json(_content(path, most_bytes))


def unpacked(path: Path, most_bytes: int = MOST_JSON_BYTES) -> bytes:
    """Return the content of a JSON file that gzip has packed. Raises OSError, and ValueError in a few words."""
    reader = zlib.decompressobj(zlib.MAX_WBITS | 16)  # 16: with gzip's header
    try:
        content = reader.decompress(_content(path, most_bytes), most_bytes)
    except zlib.error:
        raise ValueError("it is damaged") from None
    if not reader.eof:
        raise ValueError(f"it is cut short, or has more than {most_bytes} bytes")
    return content


def _content(path: Path, most_bytes: int) -> bytes:
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        raise ValueError("it is not a file")  # to read it might take for ever
    if status.st_size > most_bytes:
        raise ValueError(f"it has more than {most_bytes} bytes")
    return path.read_bytes()


def parse_json(text: bytes | str) -> Any:
    """Return the values of a JSON text. Raises ValueError, also for one that is nested too deeply."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


_Scan = Callable[[str, int], tuple[Any, int]]


class _Counting(json.JSONDecoder):
    """Counts the values that it reads, and ends at the first one too many.

    The parser in C holds the interpreter until it has read all of a text, and 4 MB can be a million lists. This one
    runs in Python between the strings, so other threads go on.
    """

    def __init__(self, most_values: int) -> None:
        super().__init__()
        self._left, self._depth = most_values, 0
        self.parse_int, self.parse_float = _short(int), _short(float)
        self.parse_array = self._array
        self.parse_object = self._object
        self.scan_once = py_make_scanner(self)

    def _array(self, begin: tuple[str, int], scan: _Scan) -> Any:
        return self._inside(lambda: JSONArray(begin, self._counted(scan)))

    def _object(self, begin: tuple[str, int], strict: bool, scan: _Scan, *more: Any) -> Any:
        return self._inside(lambda: JSONObject(begin, strict, self._counted(scan), *more))

    def _inside(self, read: Callable[[], Any]) -> Any:
        self._depth += 1
        if self._depth > DEEPEST:
            raise ValueError("it is nested too deeply")
        value = read()
        self._depth -= 1
        return value

    def _counted(self, scan: _Scan) -> _Scan:
        def counted(text: str, at: int) -> tuple[Any, int]:
            self._left -= 1
            if self._left < 0:
                raise ValueError("it has too many values")
            return scan(text, at)

        return counted


def _short(number: Callable[[str], float]) -> Callable[[str], float]:
    """Return a reader of numbers that have as many digits as numbers have."""

    def read(digits: str) -> float:
        if len(digits) > LONGEST_NAME:
            raise ValueError("it has a number of too many digits")
        return number(digits)

    return read


def parse_small_json(text: bytes, most_values: int = MOST_VALUES) -> Any:
    """Return the values of a JSON text that a stranger sent. Raises ValueError in a few words."""
    try:
        return _Counting(most_values).decode(text.decode(json.detect_encoding(text)))
    except json.JSONDecodeError:
        raise ValueError("it is not JSON") from None
    except UnicodeDecodeError:
        raise ValueError("it is not UTF-8") from None


def write_config(path: Path, values: object) -> None:
    """Write a JSON file of the configuration folder, whole or not at all. Raises ModelError in one line."""
    try:
        make_folder(path.parent)
        write_whole(path, f"{json.dumps(values)}\n".encode())
    except OSError as error:
        raise ModelError(
            f"cannot write {path}: {error.strerror}; set MIDSPAN_CONFIG_DIR to a folder that you can write"
        ) from None
