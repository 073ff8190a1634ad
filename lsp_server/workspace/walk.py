"""The files of a folder that git does not know: a walk that leaves out what .gitignore files name."""

import itertools
import os
import re
import time
from collections import deque
from collections.abc import Sequence
from fnmatch import translate

import attrs

from lsp_server.workspace.reading import read_text

MOST_PATTERNS = 1_000
"""The lines of a .gitignore that are read."""
_LONGEST_PATTERN = 400
_END = re.compile("(?!)")
"""Fits no name: git takes nothing for a set of characters that does not end."""
_ESCAPED = re.compile(r"\\(.)")
_SET = re.compile(r"\[[!^]?\]?[^\]]{0,255}+\]")
MAX_ENTRIES = 200_000
MAX_SECONDS = 20.0
_NEVER_WALKED = frozenset({"node_modules", "__pycache__", "site-packages"})
"""Installed and generated files. Folders whose name begins with a dot are not walked either."""


@attrs.frozen
class _Pattern:
    """A line of a .gitignore. None in `parts` is "**": any number of folders. Without `anchored` a name decides."""

    parts: tuple[re.Pattern[str] | None, ...]
    ignores: bool
    only_folders: bool
    anchored: bool

    def fits(self, parts: Sequence[str]) -> bool:
        """Return whether a path fits, given its parts. It takes at most as many steps as their product."""
        wanted = self.parts
        if not self.anchored:
            return wanted[0] is None or wanted[0].match(parts[-1]) is not None
        # The last "**" takes one folder more whenever what follows it does not fit.
        at = part = 0
        again: tuple[int, int] | None = None
        while part < len(parts):
            one = wanted[at] if at < len(wanted) else _END
            if one is None:
                again = at, part
                at += 1
                continue
            if one.match(parts[part]) is not None:
                at, part = at + 1, part + 1
                continue
            if again is None:
                return False
            again = again[0], again[1] + 1
            at, part = again[0] + 1, again[1]
        # "a/**" fits what is in a, and not a.
        return at == len(wanted)


@attrs.frozen
class IgnoreFile:
    """The patterns of a .gitignore, read as git does. The last one that fits a path decides.

    A stranger may have written it, so no pattern goes back and forth in a name: "*a" twenty times over, and a name of a
    hundred "a", kept pathspec's expressions busy for longer than anybody waits.
    """

    patterns: tuple[_Pattern, ...]

    @classmethod
    def of(cls, text: str) -> "IgnoreFile":
        """Read a .gitignore, as far as its first MOST_PATTERNS lines of usual length go."""
        lines = text.split("\n", MOST_PATTERNS)[:MOST_PATTERNS]
        patterns = (_pattern(line.removesuffix("\r")) for line in lines if len(line) <= _LONGEST_PATTERN)
        return cls(tuple(pattern for pattern in patterns if pattern is not None))

    def ignores(self, path: str, is_folder: bool) -> bool | None:
        """Return what the patterns say of a path below the file's folder; None if they say nothing."""
        parts = path.split("/")
        for pattern in reversed(self.patterns):
            if (is_folder or not pattern.only_folders) and pattern.fits(parts):
                return pattern.ignores
        return None


def _pattern(line: str) -> _Pattern | None:
    while line.endswith(" ") and not line.endswith("\\ "):
        line = line[:-1]
    ignores = not line.startswith("!")
    glob = line.removeprefix("!")
    if line.startswith("#") or not glob.strip("/"):
        return None
    only_folders = glob.endswith("/")
    glob = glob.removesuffix("/")
    parts = glob.removeprefix("/").split("/")
    return _Pattern(
        tuple(None if part == "**" else _name_pattern(part) for part in parts), ignores, only_folders, "/" in glob
    )


def _name_pattern(glob: str) -> re.Pattern[str]:
    """Return a pattern for one name. fnmatch's never goes back before a "*" once what follows it was found."""
    plain = _ESCAPED.sub(lambda found: f"[{found[1]}]" if found[1] in "*?[" else found[1], glob)
    closed = _SET.sub("", plain)
    return _END if "[" in closed else re.compile(translate(plain.replace("[^", "[!")))


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
