"""The folders that the user named to `midspan serve`, and which of them a request's file is in.

A request may look up the memory of a workspace only if the user named its folder when they started the server. If a
request has no path, its own lines tell which of several folders it is from. Only hashes of lines are kept. They choose
the memory; no model reads them, and what that memory has learned followed the user's settings. git is not asked: a
folder may be a stranger's, and its settings can name programs.
"""

import itertools
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path, PurePath

import attrs
import numpy as np
from numpy.typing import NDArray

from engine.bounds import LONGEST_PATH
from engine.http.connection import Problem
from engine.reading import is_generated, read_bytes, walk

_SHORTEST = 12
"""Characters of a line that says where it is from."""
_MOST_FILES = 20_000
_LINES_ABOVE, _LINES_BELOW = 80, 40
_NEAR = 20_000
"""Characters on each side of the cursor in which these lines are looked for."""
_ENOUGH = 4
"""Lines of one folder that a request has, and twice as many as of any other one."""


@attrs.frozen
class Place:
    """A file as the engine's memory names it: the workspace's real path, and the path in it. Both can be ""."""

    workspace: str
    path: str


class Workspaces:
    """The folders that the user named."""

    def __init__(self, folders: Iterable[Path] = ()) -> None:
        self.folders = tuple(dict.fromkeys(os.path.realpath(folder) for folder in folders))
        self._lines = FolderLines(self.folders if len(self.folders) > 1 else ())

    def read(self) -> None:
        """Read the lines of several folders, which takes a while. Call it in a thread."""
        self._lines.read()

    def place_of(self, path: str, above: str = "", below: str = "") -> Place:
        """Return the place of a request's file; the path can be absolute, relative to a folder, or "".

        A request without a path, and one whose path is relative, belongs to the only folder. Where several folders are
        served, it belongs to the one that has its lines. Raises Problem for a path that no system has.
        """
        if len(path) > LONGEST_PATH:
            raise Problem(400, f"the path has {len(path)} characters; send one of at most {LONGEST_PATH}")
        if not self.folders:
            return Place("", path)
        if not path or "\0" in path or not PurePath(path).is_absolute():
            only = self.folders[0] if len(self.folders) == 1 else self._lines.folder_of(above, below)
            return Place(only, path)
        real = os.path.realpath(path)
        inside = [folder for folder in self.folders if real.startswith(folder.rstrip(os.sep) + os.sep)]
        if not inside:
            return Place("", path)
        folder = max(inside, key=len)
        return Place(folder, os.path.relpath(real, folder).replace(os.sep, "/"))


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
        above, below = above[-_NEAR:], below[:_NEAR]
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
    for path in itertools.islice(walk(folder, is_generated), _MOST_FILES):
        if (content := read_bytes(folder, path)) is not None and b"\0" not in content:
            yield content.decode(errors="replace")
