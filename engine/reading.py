"""What a path in a folder is, how files there are found, and how one is opened: without a way out of the folder.

Everybody who lists, reads or writes files of a workspace asks here. The names may come from an index, a tree or an
archive that a stranger made. Processes that search start with this module, so it imports little.
"""

import errno
import itertools
import os
import re
import stat
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from engine.bounds import LONGEST_PATH, MAX_FILE_BYTES, MOST_ENTRIES, WALK_S

_BINARY_CHECK = 8192
# O_NONBLOCK: to open a pipe must not wait for its writer. Windows has neither pipes among files nor these flags.
_FLAGS = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
_FOLDER_FLAGS = getattr(os, "O_PATH", os.O_RDONLY) | getattr(os, "O_DIRECTORY", 0)
_HAS_FOLDERS = os.open in os.supports_dir_fd
_SKIPPED = dict.fromkeys((0x200C, 0x200D, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x206A, 0x2070), 0xFEFF))
"""Characters in names that some file systems skip."""
_UNNAMEABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
"""Control characters would be commands of a terminal; surrogates are bytes of a name that is not UTF-8."""


_GENERATED = frozenset({"node_modules", "__pycache__", "build", "dist", "target", "venv"})


def is_inside(path: str) -> bool:
    """Return whether a path with slashes can name a file in a folder, and none of git's own. The disk is not read.

    False for an absolute path, one with "." or "..", and one that no system or message can name.
    """
    if not path or len(path) > LONGEST_PATH or _UNNAMEABLE.search(path):
        return False
    if sys.platform == "win32" and ("\\" in path or ":" in path):
        return False
    return all(part not in ("", ".", "..") and not _is_git(part) for part in path.split("/"))


def _is_git(part: str) -> bool:
    """Return whether a name is ".git" for any file system: Windows drops what is at its end, macOS characters in it."""
    if ".g" not in part.lower() and "git~" not in part.lower() and part.isascii():
        return False
    name = part.translate(_SKIPPED).lower().partition(":")[0].rstrip(" .")
    return name in (".git", "git~1")


def walk(folder: str, skips: Callable[[str], bool]) -> Iterator[str]:
    """Yield the paths of the files below a folder, those nearest to it first, and no link.

    `skips` says of a folder's path whether it is left out. The walk ends after MOST_ENTRIES and WALK_S: the folder
    may be a whole disk. A folder that cannot be read has no files.
    """
    waiting = deque([""])
    deadline, entries = time.monotonic() + WALK_S, 0
    while waiting:
        parent = waiting.popleft()
        for entry in _entries(f"{folder}/{parent}"):
            entries += 1
            if entries > MOST_ENTRIES or time.monotonic() > deadline:
                return
            path = f"{parent}/{entry.name}" if parent else entry.name
            if _is_folder(entry):
                if not skips(path):
                    waiting.append(path)
            elif _is_file(entry):
                yield path


def is_generated(path: str) -> bool:
    """Return whether a folder is hidden or has what tools wrote, by its name: for a walk where git is not asked."""
    name = path.rpartition("/")[2]
    return name.startswith(".") or name in _GENERATED


def _entries(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return sorted(itertools.islice(entries, MOST_ENTRIES), key=lambda entry: entry.name)
    except OSError:
        return []


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir(follow_symlinks=False)
    except OSError:
        return False


def _is_file(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_file(follow_symlinks=False)
    except OSError:
        return False


@contextmanager
def folder_of(folder: str, path: str) -> Iterator[tuple[int | None, str]]:
    """Open the folder that a file is in, without following a link: its descriptor, and the file's name in it.

    On Windows the descriptor is None and the name a full path. Raises OSError, also for a path that is not inside.
    """
    if not is_inside(path):
        raise OSError(errno.EPERM, "it is outside the folder")
    with _parent(folder, path) as found:
        yield found


def read_text(folder: str, path: str) -> str | None:
    """Return the text of a file; None for one that cannot be read, is a symlink or below one, too large or binary.

    `folder` is a real path, `path` a path in it.
    """
    data = read_bytes(folder, path)
    return decode(data) if data is not None else None


def read_bytes(folder: str, path: str) -> bytes | None:
    """Return the bytes of a file; None for one that cannot be read, is too large, or is a symlink or below one."""
    try:
        with folder_of(folder, path) as (parent, name):
            return _read(parent, name, MAX_FILE_BYTES)
    except OSError:
        return None


def read_real(full: str, most_bytes: int) -> bytes:
    """Return the bytes of a file by its real path. Raises OSError if it is large, no file, or below a link by now."""
    drive, path = os.path.splitdrive(full)
    try:
        with _parent(drive + os.sep, path.replace(os.sep, "/").lstrip("/")) as (parent, name):
            return _read(parent, name, most_bytes)
    except ValueError:  # a NUL
        raise OSError(errno.EINVAL, "no system has such a name") from None


@contextmanager
def _parent(folder: str, path: str) -> Iterator[tuple[int | None, str]]:
    *parents, name = path.split("/")
    if not _HAS_FOLDERS:
        full = str(Path(folder, path))
        if os.path.normcase(os.path.realpath(full)) != os.path.normcase(full):
            raise OSError(errno.ELOOP, "it is a link")
        yield None, full
        return
    descriptor = os.open(folder, _FOLDER_FLAGS)
    try:
        for parent in parents:
            inner = os.open(parent, _FOLDER_FLAGS | os.O_NOFOLLOW, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = inner
        yield descriptor, name
    finally:
        os.close(descriptor)


def open_file(parent: int | None, name: str) -> int:
    """Open a regular file of an open folder (`folder_of`). Raises OSError for all else; a pipe is not waited for."""
    descriptor = os.open(name, _FLAGS, dir_fd=parent)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "it is no regular file")
    return descriptor


def read_open(descriptor: int, most_bytes: int) -> bytes:
    """Return the bytes of an open file. Raises OSError if there are more than `most_bytes`."""
    size = os.fstat(descriptor).st_size
    with os.fdopen(descriptor, "rb", closefd=False) as file:
        data = file.read(most_bytes + 1) if size <= most_bytes else b""
    if max(size, len(data)) > most_bytes:
        raise OSError(errno.EFBIG, f"it has more than {most_bytes:,} bytes")
    return data


def _read(parent: int | None, name: str, most_bytes: int) -> bytes:
    descriptor = open_file(parent, name)
    try:
        return read_open(descriptor, most_bytes)
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
