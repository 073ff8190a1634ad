"""The workspace folders of an editor, and the files in them."""

import os
from collections.abc import Iterable, Sequence
from pathlib import PurePath

import attrs


@attrs.frozen
class WorkspaceFile:
    """A file in a workspace. `workspace` is the folder's real path, `path` the path in it, with slashes.

    The engine knows workspaces and their files by these names, in Learn as in Fill.
    """

    workspace: str
    path: str


class Folders:
    """The workspace folders. Paths are compared with all symlinks resolved."""

    def __init__(self) -> None:
        self._names: list[str] = []
        self._real: list[str] = []

    @property
    def names(self) -> Sequence[str]:
        """The folders as the editor names them."""
        return self._names

    @property
    def workspaces(self) -> Sequence[str]:
        """The real paths of the folders."""
        return self._real

    def use(self, names: Iterable[str]) -> None:
        """Use these folders instead of the ones before."""
        self._names = list(names)
        self._real = [name for name in dict.fromkeys(map(os.path.realpath, self._names)) if _is_utf8(name)]

    def place_of(self, path: str) -> WorkspaceFile | None:
        """Return a file as one of the innermost folder that has it; None for a file outside all folders."""
        return next(iter(self.places_of(path)), None)

    def places_of(self, path: str) -> list[WorkspaceFile]:
        """Return a file as one of each folder that has it, the innermost first."""
        if not self._real or not PurePath(path).is_absolute():
            return []
        real = os.path.realpath(path)
        if not _is_utf8(real):
            return []
        folders = [folder for folder in self._real if real.startswith(folder.rstrip(os.sep) + os.sep)]
        return [
            WorkspaceFile(folder, os.path.relpath(real, folder).replace(os.sep, "/"))
            for folder in sorted(folders, key=len, reverse=True)
        ]


def _is_utf8(path: str) -> bool:
    """Return whether a message can have a real path: a link may lead to a name that is not UTF-8."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True
