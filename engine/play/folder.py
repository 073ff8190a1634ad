"""The folder that the user named: which of its files the page offers, and their texts."""

import os
import stat
import subprocess
from pathlib import Path

import attrs

from engine.http.connection import Problem

MOST_FILES = 5000
MOST_BYTES = 1024 * 1024
"""Of a file that the page opens. A browser's editor is slow with more, and the model reads some kilobytes."""
_GIT_S = 5.0
_SKIPPED = frozenset({"node_modules", "__pycache__", "build", "dist", "target", "venv"})


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
        try:
            found = self._by_git() or self._by_walking()
        except OSError as error:
            raise Problem(403, f"the folder {self.path} cannot be read: {error.strerror}") from None
        return FileList(sorted(found)[:MOST_FILES], len(found) > MOST_FILES)

    def _by_git(self) -> list[str]:
        command = ["git", "-c", "core.fsmonitor=false", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        try:
            done = subprocess.run(command, cwd=self.path, capture_output=True, timeout=_GIT_S, check=True)
        except (OSError, subprocess.SubprocessError):
            return []
        names = done.stdout.decode("utf-8", "replace").split("\0")
        return [name for name in names if name and not name.rpartition("/")[2].startswith(".")]

    def _by_walking(self) -> list[str]:
        next(self.path.iterdir(), None)  # os.walk says nothing of a folder that it may not read
        found: list[str] = []
        for folder, folders, files in os.walk(self.path):
            folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in _SKIPPED)
            inside = Path(folder).relative_to(self.path)
            found += [(inside / name).as_posix() for name in sorted(files) if not name.startswith(".")]
            if len(found) > MOST_FILES:
                break
        return found

    def read(self, name: str) -> str:
        """Return the text of a file. Raises Problem in one line for one that is no text for the page."""
        path = Path(os.path.realpath(self.path / name)) if "\0" not in name else self.path
        if not path.is_relative_to(os.path.realpath(self.path)):
            raise Problem(403, f"{name} is outside of the folder; start midspan play with the folder that it is in")
        try:
            status = path.stat()
            if not stat.S_ISREG(status.st_mode):
                raise Problem(404, f"{name} is not a file; choose another one")
            if status.st_size > MOST_BYTES:
                size = f"{status.st_size / 1024 / 1024:.1f} MB"
                raise Problem(413, f"{name} has {size}; the page opens files of up to {MOST_BYTES // 1024 // 1024} MB")
            data = path.read_bytes()
        except FileNotFoundError:
            raise Problem(404, f"{name} is not there any more; choose another file") from None
        except OSError as error:
            raise Problem(403, f"{name} cannot be read: {error.strerror}") from None
        if b"\0" in data:
            raise Problem(415, f"{name} is binary: it has NUL bytes; choose a text")
        try:
            return data.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
        except UnicodeDecodeError:
            raise Problem(415, f"{name} is not UTF-8 text; save it as UTF-8 first") from None
