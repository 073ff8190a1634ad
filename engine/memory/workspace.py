"""The memories of all workspaces that an engine serves, within a bound."""

from collections import OrderedDict
from collections.abc import Sequence

import attrs
import numpy as np
from numpy.typing import NDArray

from engine.memory.file_scan import FileScan
from engine.memory.index import BYTES_A_TOKEN, RunIndex
from engine.memory.row_memory import KnownFiles, RowMemory
from engine.memory.windows import LineTexts, Window, best_windows


@attrs.frozen
class Status:
    """What is known of a workspace. `bytes` is the memory that it holds."""

    files: int
    tokens: int
    bytes: int


class _Workspace:
    """The index of one workspace, with the numbers of its files."""

    def __init__(self) -> None:
        self.index = RunIndex()
        self.numbers: dict[str, int] = {}
        self.paths: dict[int, str] = {}
        self._next = 0

    def add(self, path: str, tokens: NDArray[np.int32]) -> None:
        number = self.numbers.get(path)
        if number is None:
            number = self.numbers[path] = self._next
            self.paths[number] = path
            self._next += 1
        self.index.add(number, tokens)

    def remove(self, path: str) -> None:
        number = self.numbers.pop(path, None)
        if number is not None:
            del self.paths[number]
            self.index.remove(number)


class WorkspaceMemories:
    """What is known of each workspace. No workspace answers for another one. All methods belong on one thread.

    Over `max_bytes`, the files that were used least recently are forgotten, whatever their workspace. A file is used
    when it is learned and when it is edited.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_tokens = max_bytes // BYTES_A_TOKEN
        self._workspaces: dict[str, _Workspace] = {}
        self._sizes: OrderedDict[tuple[str, str], int] = OrderedDict()
        self._tokens = 0

    @property
    def bytes(self) -> int:
        """Memory held for all workspaces."""
        return sum(each.index.bytes for each in self._workspaces.values())

    def learn(self, workspace: str, path: str, tokens: Sequence[int] | NDArray[np.int32]) -> None:
        """Learn a file, or learn it again. A file that is too large for the bound is forgotten instead."""
        array = np.asarray(tokens, np.int32)
        self._forget_file(workspace, path)
        if len(array) > self._max_tokens:
            return
        while self._tokens + len(array) > self._max_tokens:
            self._forget_file(*next(iter(self._sizes)))
        self._workspaces.setdefault(workspace, _Workspace()).add(path, array)
        self._sizes[workspace, path] = len(array)
        self._tokens += len(array)

    def forget(self, workspace: str, paths: Sequence[str] | None = None) -> None:
        """Forget files of a workspace, by default all. Unknown ones are ignored."""
        known = self._workspaces.get(workspace)
        if known is None:
            return
        for path in list(known.numbers) if paths is None else paths:
            self._forget_file(workspace, path)

    def paths(self, workspace: str) -> list[str]:
        """Return the files that are known of a workspace."""
        known = self._workspaces.get(workspace)
        return [] if known is None else list(known.numbers)

    def status(self, workspace: str) -> Status:
        """Return what is known of a workspace; of all together for ""."""
        if not workspace:
            return Status(len(self._sizes), self._tokens, self.bytes)
        known = self._workspaces.get(workspace)
        if known is None:
            return Status(0, 0, 0)
        return Status(len(known.index), known.index.tokens, known.index.bytes)

    def settle(self) -> bool:
        """Work for a few milliseconds to make lookups faster. Return whether there is more to do."""
        return any(known.index.settle() for known in self._workspaces.values())

    def rows(self, workspace: str, path: str, above: Sequence[int], below: Sequence[int]) -> RowMemory:
        """Return the memory for one fill.

        above, below: tokens of the edited file around the cursor, as the editor has them now. They count instead of
        what was learned of `path`. Use the answer before any file is learned or forgotten.
        """
        scan = FileScan(above, below)
        known = self._workspaces.get(workspace)
        if known is None:
            return RowMemory(scan, None, None)
        if (workspace, path) in self._sizes:
            self._sizes.move_to_end((workspace, path))
        return RowMemory(scan, KnownFiles(known.index, known.paths.__getitem__), known.numbers.get(path))

    def windows(self, workspace: str, path: str, query: Sequence[Sequence[int]], lines: LineTexts) -> list[Window]:
        """Return the parts of the other files of a workspace that are most like a query (windows.py)."""
        known = self._workspaces.get(workspace)
        if known is None:
            return []
        files = KnownFiles(known.index, known.paths.__getitem__)
        return best_windows(files, known.numbers.get(path), query, lines)

    def _forget_file(self, workspace: str, path: str) -> None:
        size = self._sizes.pop((workspace, path), None)
        if size is None:
            return
        self._tokens -= size
        known = self._workspaces[workspace]
        known.remove(path)
        if not known.numbers:
            del self._workspaces[workspace]
