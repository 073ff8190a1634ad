"""Reads one file of a workspace, without a way out of its folder.

Processes that search start with this module, so it imports little.
"""

import os
import stat
from pathlib import Path

MAX_FILE_BYTES = 200_000
"""Larger files are data or generated code."""
_BINARY_CHECK = 8192
# O_NONBLOCK: to open a pipe must not wait for its writer. Windows has neither pipes among files nor these flags.
_FLAGS = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


def read_text(folder: str, path: str) -> str | None:
    """Return the text of a file; None for one that cannot be read, is a symlink or below one, too large or binary.

    `folder` is a real path, `path` a path in it.
    """
    data = read_bytes(folder, path)
    return decode(data) if data is not None else None


def read_bytes(folder: str, path: str) -> bytes | None:
    """Return the start of a file, as much as fits; None for one that cannot be read, or is a symlink or below one."""
    full = str(Path(folder, path))
    try:
        if os.path.normcase(os.path.realpath(full)) != os.path.normcase(full):
            return None
        descriptor = os.open(full, _FLAGS)
    except (OSError, ValueError):  # ValueError: a NUL in the name
        return None
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_FILE_BYTES:
            return None
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            return file.read(MAX_FILE_BYTES + 1)
    except OSError:
        return None
    finally:
        os.close(descriptor)


def is_learnable(text: str) -> bool:
    """Return whether a text is small enough and not binary."""
    return len(text) <= MAX_FILE_BYTES and "\0" not in text[:_BINARY_CHECK]


def is_foreign(data: bytes) -> bool:
    """Return whether these are the bytes of a text that is not UTF-8."""
    return len(data) <= MAX_FILE_BYTES and b"\0" not in data[:_BINARY_CHECK] and decode(data) is None


def decode(data: bytes) -> str | None:
    """Return the text of a file; None for one that is too large, binary or not UTF-8."""
    if len(data) > MAX_FILE_BYTES or b"\0" in data[:_BINARY_CHECK]:
        return None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None
