"""The files of a folder that git does not know: a walk that leaves out what .gitignore files name."""

import itertools
import os
import time
from collections import deque

from lsp_server.workspace.ignore_file import IgnoreFile
from lsp_server.workspace.reading import read_text

MAX_ENTRIES = 200_000
MAX_SECONDS = 20.0
_NEVER_WALKED = frozenset({"node_modules", "__pycache__", "site-packages"})
"""Installed and generated files. Folders whose name begins with a dot are not walked either."""


class IgnoreRules:
    """The .gitignore files of a folder, each read when a path below it is checked for the first time."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._specs: dict[str, IgnoreFile | None] = {}

    def ignores(self, path: str) -> bool:
        """Return whether a file, or one of the folders on the way to it, is ignored."""
        parts = path.split("/")
        folders = ("/".join(parts[:count]) for count in range(1, len(parts)))
        return any(self.ignores_folder(folder) for folder in folders) or self._ignores(path, False)

    def ignores_folder(self, path: str) -> bool:
        """Return whether a folder is ignored, apart from the folders on the way to it."""
        name = path.rpartition("/")[2]
        return name.startswith(".") or name in _NEVER_WALKED or self._ignores(path, True)

    def ignores_file(self, path: str) -> bool:
        """Return whether a file is ignored, apart from the folders on the way to it."""
        return self._ignores(path, False)

    def _ignores(self, path: str, is_folder: bool) -> bool:
        # The nearest .gitignore that says anything about the path decides, as in git.
        folder = path
        while folder:
            folder = folder.rpartition("/")[0]
            spec = self._spec(folder)
            if spec is not None:
                inside = path[len(folder) + 1 :] if folder else path
                said = spec.ignores(inside, is_folder)
                if said is not None:
                    return said
        return False

    def _spec(self, folder: str) -> IgnoreFile | None:
        if folder not in self._specs:
            text = read_text(self._folder, f"{folder}/.gitignore" if folder else ".gitignore")
            self._specs[folder] = IgnoreFile.of(text) if text is not None else None
        return self._specs[folder]


def walk(folder: str) -> list[str]:
    """Return the paths of the files below a folder, those nearest to it first. Symlinks are left out.

    The walk ends after MAX_ENTRIES and after MAX_SECONDS: the folder may be a whole disk.
    """
    rules, paths = IgnoreRules(folder), list[str]()
    waiting = deque([""])
    deadline, entries = time.monotonic() + MAX_SECONDS, 0
    while waiting and entries < MAX_ENTRIES and time.monotonic() < deadline:
        parent = waiting.popleft()
        for entry in _entries(f"{folder}/{parent}"):
            entries += 1
            if entries > MAX_ENTRIES or time.monotonic() > deadline:
                break
            path = f"{parent}/{entry.name}" if parent else entry.name
            if _is_folder(entry):
                if not rules.ignores_folder(path):
                    waiting.append(path)
            elif _is_file(entry) and not rules.ignores_file(path):
                paths.append(path)
    return paths


def _entries(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return sorted(itertools.islice(entries, MAX_ENTRIES), key=lambda entry: entry.name)
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
