"""Which of the named folders a request is from, if it has no path: by its own lines.

Only hashes of lines are kept. They choose the memory; no model reads them, and what that memory has learned followed
the user's settings. git is not asked: a folder may be a stranger's, and its settings can name programs.
"""

import itertools
import os
import stat
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

_SHORTEST = 12
"""Characters of a line that says where it is from."""
_MOST_FILES, _MOST_BYTES = 20_000, 200_000
_LINES_ABOVE, _LINES_BELOW = 80, 40
_ENOUGH = 4
"""Lines of one folder that a request has, and twice as many as of any other one."""
_GENERATED = frozenset(("node_modules", "__pycache__", "build", "dist", "target", "venv"))


class FolderLines:
    """The lines of some folders. `read` takes a while; a request before its end finds no folder."""

    def __init__(self, folders: Sequence[str]) -> None:
        self._folders = tuple(folders)
        self._lines: dict[str, NDArray[np.int64]] = {}

    def read(self) -> None:
        """Read the files of all folders. Call it in a thread."""
        lines = {}
        for folder in self._folders:
            hashes = {value for text in _texts(folder) for value in _hashes(text.splitlines())}
            lines[folder] = np.array(sorted(hashes), np.int64)
        self._lines = lines

    def folder_of(self, above: str, below: str) -> str:
        """Return the folder that has most of a request's lines near the cursor; "" if none clearly has."""
        lines, counts = self._lines, Counter[str]()
        if not lines:
            return ""
        near = above.splitlines()[-_LINES_ABOVE:-1] + below.splitlines()[1:_LINES_BELOW]
        wanted = np.array(sorted(_hashes(near)), np.int64)
        for folder, known in lines.items():
            counts[folder] = int(np.isin(wanted, known, assume_unique=True).sum())
        (folder, first), *others = counts.most_common(2)
        second = others[0][1] if others else 0
        return folder if first >= _ENOUGH and first >= 2 * second else ""


def _hashes(lines: Sequence[str]) -> set[int]:
    return {hash(bare) for line in lines if len(bare := line.strip()) >= _SHORTEST}


def _texts(folder: str) -> Iterator[str]:
    for path in itertools.islice(_files(folder), _MOST_FILES):
        try:
            status = path.lstat()
            if not stat.S_ISREG(status.st_mode) or status.st_size > _MOST_BYTES:
                continue
            content = path.read_bytes()
        except OSError:
            continue
        if b"\0" not in content:
            yield content.decode(errors="replace")


def _files(folder: str) -> Iterator[Path]:
    for root, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in _GENERATED)
        yield from (Path(root, name) for name in sorted(names))
