"""The folder that the user named: which of its files the page offers, and their texts."""

import errno
import itertools
import os
from collections.abc import Iterable
from pathlib import Path

import attrs

from engine.bounds import MOST_LISTED_FILES, MOST_PAGE_BYTES
from engine.git import GitFailed, Repository
from engine.http.connection import Problem
from engine.reading import is_generated, is_inside, read_real, walk


@attrs.frozen
class FileList:
    """Paths inside the folder, with "/", sorted. `more` says that there are others."""

    paths: list[str]
    more: bool


class Folder:
    """A folder, whose files can be read and never written."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def files(self) -> FileList:
        """List the files as git sees them, without what it ignores; without git all but hidden ones and outputs.

        Raises Problem for a folder that cannot be read.
        """
        folder = os.path.realpath(self.path)
        try:
            next(Path(folder).iterdir(), None)  # a walk says nothing of a folder that it may not read
        except OSError as error:
            raise Problem(403, f"the folder {self.path} cannot be read: {error.strerror}") from None
        found = _by_git(folder) or _first(walk(folder, is_generated))
        return FileList(sorted(found)[:MOST_LISTED_FILES], len(found) > MOST_LISTED_FILES)

    def read(self, name: str) -> str:
        """Return the text of a file. Raises Problem in one line for one that is no text for the page."""
        if not is_inside(name):
            raise Problem(403, f"{name[:80]} is no file of the folder; choose one of the list")
        path, folder = (os.path.realpath(each) for each in (self.path / name, self.path))
        if not Path(path).is_relative_to(folder):
            raise Problem(403, f"{name} is outside of the folder; start midspan play with the folder that it is in")
        try:
            data = read_real(path, MOST_PAGE_BYTES)
        except FileNotFoundError:
            raise Problem(404, f"{name} is not there any more; choose another file") from None
        except OSError as error:
            raise _problem_of(name, path, error) from None
        if b"\0" in data:
            raise Problem(415, f"{name} is binary: it has NUL bytes; choose a text")
        try:
            return data.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
        except UnicodeDecodeError:
            raise Problem(415, f"{name} is not UTF-8 text; save it as UTF-8 first") from None


def _problem_of(name: str, path: str, error: OSError) -> Problem:
    if error.errno == errno.EFBIG:
        size = f"{Path(path).stat().st_size / 1024 / 1024:.1f} MB"
        return Problem(413, f"{name} has {size}; the page opens files of up to {MOST_PAGE_BYTES // 1024 // 1024} MB")
    if error.errno in (errno.EINVAL, errno.ENXIO):
        return Problem(404, f"{name} is not a file; choose another one")
    return Problem(403, f"{name} cannot be read: {error.strerror}")


def _by_git(folder: str) -> list[str]:
    try:
        return _first(Repository.of(folder).files())
    except GitFailed:
        return []


def _first(names: Iterable[str]) -> list[str]:
    """Return the names that the page may show, one more than its list can have."""
    shown = (name for name in names if is_inside(name) and not name.rpartition("/")[2].startswith("."))
    return list(itertools.islice(shown, MOST_LISTED_FILES + 1))
