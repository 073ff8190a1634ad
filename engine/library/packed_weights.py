"""Weights that the kernel packed, kept on the disk: the next engine maps them, and packs nothing.

A file is plain data, in the order of the machine. Its first HEAD bytes are MAGIC, a sha256 of all that follows it, the
key, which is a sha256 of all that the content depends on, how many matrices there are, and their sizes. Then come the
matrices, each from a multiple of PAGE on. All are in one folder of ours: that of a source may be another program's.
"""

import hashlib
import logging
import mmap
import os
import secrets
import shutil
import struct
import threading
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from engine.bounds import MOST_PACKED_FILES
from engine.errors import MidspanError
from engine.folders import data_folder
from engine.whole_files import make_folder, try_lock

MAGIC = b"midspan packed 1"
HEAD, PAGE = 16384, 4096
_SUM_ENDS = len(MAGIC) + 32
_FIELDS = struct.Struct("=32sQ")
_SIZES_AT = _SUM_ENDS + _FIELDS.size
_PIECE = 1 << 23
"""Bytes that are read and summed at once. Between two pieces a busy main thread may keep the interpreter for 5 ms."""
_MOST_MATRICES = (HEAD - _SIZES_AT) // 8
_SUFFIX, _NEW = ".packed", ".new"
_log = logging.getLogger(__name__)
Matrices = tuple[memoryview, ...]


def folder() -> Path:
    """Return the folder of all packed weights, which need not exist. Raises MidspanError without a home."""
    return data_folder() / "packed"


class PackedWeights:
    """The packed weights of one model in one precision, which may be there or not. No method raises."""

    def __init__(self, source: Path, precision: str) -> None:
        """Begin to read what is there, in a thread: meanwhile a tokenizer can be made. source: a file or a folder."""
        self._source, self._precision = source, precision
        self._found: tuple[str, Matrices] = "", ()
        self._reading = threading.Thread(target=self._read, daemon=True)
        self._reading.start()

    def matrices(self, key: str) -> Matrices | None:
        """Return the matrices of a whole file of this key, mapped; None without one."""
        self._reading.join()
        found, matrices = self._found
        return matrices if found == key else None

    def keep(self, key: str, matrices: Iterable[Iterable[memoryview]], size: int) -> None:
        """Write a file in place of the one that is there. The log says in a line why it cannot be.

        matrices: each in pieces, which are used before the next one is asked for. size: about that of the file.
        """
        try:
            path = self._path()
            make_folder(path.parent)
            _remove_unfinished(path.parent)
            if shutil.disk_usage(path.parent).free < 2 * size:
                raise OSError(None, "the disk is nearly full")
            _write(path, key, matrices)
            _remove_oldest(path.parent)
        except (OSError, MidspanError) as error:
            problem = error.strerror if isinstance(error, OSError) else error
            _log.warning("the packed weights of %s cannot be kept: %s; each start packs them", self._source, problem)

    def _path(self) -> Path:
        return folder() / f"{_name_of(self._source)}-{self._precision}{_SUFFIX}"

    def _read(self) -> None:
        try:
            self._found = _checked(self._path())
        except (OSError, MidspanError):  # `keep` says why, if that is no file.
            pass
        except ValueError as error:
            _log.warning("the packed weights of %s are not used: %s; they are packed again", self._source, error)


def packed_files(*sources: Path) -> list[Path]:
    """Return the files of packed weights of these files or folders."""
    names = {_name_of(source) for source in sources}
    with suppress(OSError, MidspanError):
        return [path for path in folder().iterdir() if path.name.partition("-")[0] in names]
    return []


def _name_of(source: Path) -> str:
    return hashlib.sha256(os.fsencode(os.path.realpath(source))).hexdigest()[:32]


def _checked(path: Path) -> tuple[str, Matrices]:
    """Map a file that is whole, and return its key too. Raises OSError, and ValueError in a few words for any other."""
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
    with os.fdopen(descriptor, "rb", buffering=0) as file:
        status = os.fstat(descriptor)
        if hasattr(os, "getuid") and (status.st_uid != os.getuid() or status.st_mode & 0o022):
            raise ValueError("others may have written them")
        head = file.read(HEAD)
        if len(head) < HEAD or not head.startswith(MAGIC):
            raise ValueError("of another version")
        key, count = _FIELDS.unpack_from(head, _SUM_ENDS)
        places = list(_places(struct.unpack_from(f"={min(count, _MOST_MATRICES)}Q", head, _SIZES_AT)))
        if status.st_size != max((stop for _, stop in places), default=HEAD):
            raise ValueError("cut short")
        # Not through the map: what is only read for the sum, such as most of the embedding, stays out of the process.
        sums, buffer = hashlib.sha256(), bytearray(_PIECE)
        while read := file.readinto(buffer):
            sums.update(memoryview(buffer)[:read])
        sums.update(head[_SUM_ENDS:])
        if sums.digest() != head[len(MAGIC) : _SUM_ENDS]:
            raise ValueError("damaged")
        with suppress(OSError):
            os.utime(path)  # The files that were used last stay.
        mapped = memoryview(mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ))
    return key.hex(), tuple(mapped[start:stop] for start, stop in places)


def _places(sizes: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Yield where each matrix begins and ends in the file."""
    start = HEAD
    for size in sizes:
        yield start, start + size
        start += -(-size // PAGE) * PAGE


def _write(path: Path, key: str, matrices: Iterable[Iterable[memoryview]]) -> None:
    """Write a file, whole or not at all. Raises OSError."""
    new = path.with_name(f"{secrets.token_hex(8)}{_NEW}")
    descriptor = os.open(new, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            with suppress(OSError):
                try_lock(descriptor)  # A lock that nobody holds tells that its writer has ended.
            sums, sizes = hashlib.sha256(), list[int]()
            file.write(bytes(HEAD))
            for pieces in matrices:
                gap = bytes(-file.tell() % PAGE)
                file.write(gap)
                sums.update(gap)
                begun = file.tell()
                for piece in pieces:
                    file.write(piece)
                    sums.update(piece)
                sizes.append(file.tell() - begun)
            if len(sizes) > _MOST_MATRICES:
                raise OSError(None, "it has too many matrices")
            fields = _FIELDS.pack(bytes.fromhex(key), len(sizes)) + struct.pack(f"={len(sizes)}Q", *sizes)
            fields = fields.ljust(HEAD - _SUM_ENDS, b"\0")
            sums.update(fields)
            file.seek(0)
            file.write(MAGIC + sums.digest() + fields)
            file.flush()
            os.fsync(descriptor)
            new.replace(path)
    except BaseException:
        new.unlink(missing_ok=True)
        raise


def _remove_unfinished(folder: Path) -> None:
    """Remove what engines left that were ended while they wrote."""
    for path in folder.glob(f"*{_NEW}"):
        with suppress(OSError), path.open("rb+") as file:
            if try_lock(file.fileno()):
                path.unlink()


def _remove_oldest(folder: Path) -> None:
    """Leave MOST_PACKED_FILES, those that were used last."""
    used = sorted(folder.glob(f"*{_SUFFIX}"), key=lambda path: path.stat().st_mtime_ns, reverse=True)
    for path in used[MOST_PACKED_FILES:]:
        path.unlink(missing_ok=True)
