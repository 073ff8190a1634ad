"""What an engine knows of the workspaces that it serves, within a bound, and for the fills of one model."""

import sys
from collections import OrderedDict
from collections.abc import Sequence

import attrs
import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from engine.fill.interface import Committed, Layout, MemoryUse, Vocabulary
from engine.fill.sampler import continues_word, continuing
from engine.memory.index import BYTES_A_TOKEN
from engine.memory.mixing_network import MixingNetwork
from engine.memory.mixture import MixedMemory
from engine.memory.row_memory import FileScan, KnownFiles, Origins, RowMemory
from engine.memory.windows import MOST_WINDOWS, LineTexts, RelatedWindows
from engine.protocol.memory_messages import MemoryCount, MemoryStatus
from engine.protocol.messages import HoleRequest, Origin, Snippet

FILE_BYTES = 1_000
"""What a file costs besides its tokens and its path: entries of dictionaries, and its place in the index."""
WORKSPACE_BYTES = 30_000
"""What a workspace costs besides its files and its name: the shortest arrays of an index."""
_COUNT_BYTES = 8
"""A workspace counts the tokens of its vocabulary, up to the highest one it has."""
STEP_TOKENS = 4096
"""Tokens of a file that are learned in one step, at most: some milliseconds, in which no hole can begin."""
_LONGEST = 24
"""Characters of what follows the cursor in which its first token is looked for."""


@attrs.frozen(eq=False)
class _Begun:
    """A file of which only the first tokens are learned. `rest`: int32 [n], the others."""

    workspace: str
    path: str
    rest: NDArray[np.int32]


class WorkspaceMemories:
    """What is known of each workspace. No workspace answers for another one. All methods belong on one thread.

    Over `max_bytes`, the files that were used least recently are forgotten, whatever their workspace. A file is used
    when it is learned and when it is edited. Paths count too, and what an empty file and a workspace of one file cost:
    a stranger's folder may have many of them.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._workspaces: dict[str, KnownFiles] = {}
        self._sizes: OrderedDict[tuple[str, str], int] = OrderedDict()
        self._begun: _Begun | None = None
        self._tokens = 0
        self._cost = 0
        """The bytes that all files and workspaces may take, counted so that they take less."""

    @property
    def bytes(self) -> int:
        """Memory held for all workspaces."""
        return sum(each.index.bytes for each in self._workspaces.values())

    def learn(self, workspace: str, path: str, tokens: Sequence[int] | NDArray[np.int32]) -> None:
        """Learn a file, or learn it again. A file that is too large for the bound is forgotten instead."""
        self.begin(workspace, path, tokens)
        self._end()

    def begin(self, workspace: str, path: str, tokens: Sequence[int] | NDArray[np.int32]) -> bool:
        """Learn at most STEP_TOKENS of a file as `learn` does. Return whether `go_on` has more to learn of it."""
        array = np.asarray(tokens, np.int32)
        highest = int(array.max(initial=0))
        self._forget_file(workspace, path)
        self._end()
        cost = _file_cost(path, len(array))
        if cost + _workspace_cost(workspace, highest) > self._max_bytes:
            return False
        while self._cost + cost + self._growth(workspace, highest) > self._max_bytes:
            self._forget_file(*next(iter(self._sizes)))
        self._cost += cost + self._growth(workspace, highest)
        known = self._workspaces.get(workspace)
        if known is None:
            known = self._workspaces[workspace] = KnownFiles(workspace)
        known.highest = max(known.highest, highest)
        known.add(path, array[:STEP_TOKENS])
        # One name for all files: each message brings a string of its own.
        self._sizes[known.name, path] = len(array)
        self._tokens += len(array)
        if len(array) <= STEP_TOKENS:
            return False
        self._begun = _Begun(known.name, path, array[STEP_TOKENS:])
        return True

    def go_on(self) -> bool:
        """Learn STEP_TOKENS more of the file that was begun. Return whether there is still more of it."""
        begun = self._begun
        if begun is None:
            return False
        self._workspaces[begun.workspace].extend(begun.path, begun.rest[:STEP_TOKENS])
        rest = begun.rest[STEP_TOKENS:]
        self._begun = attrs.evolve(begun, rest=rest) if len(rest) else None
        return self._begun is not None

    def _end(self) -> None:
        """Learn all that is left of the file that was begun."""
        while self.go_on():
            pass

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

    def status(self, workspace: str) -> MemoryStatus:
        """Return what is known of a workspace; of all together for ""."""
        if not workspace:
            each = [
                MemoryCount(name, len(known.index), known.index.tokens, known.index.bytes)
                for name, known in self._workspaces.items()
            ]
            return MemoryStatus("", len(self._sizes), self._tokens, self.bytes, each=each)
        known = self._workspaces.get(workspace)
        if known is None:
            return MemoryStatus(workspace, 0, 0, 0)
        return MemoryStatus(workspace, len(known.index), known.index.tokens, known.index.bytes)

    def settle(self) -> bool:
        """Work for a few milliseconds to make lookups faster. Return whether there is more to do."""
        return any(known.index.settle() for known in self._workspaces.values())

    def rows(self, workspace: str, path: str, above: Sequence[int], below: Sequence[int]) -> RowMemory:
        """Return the memory for one fill.

        above, below: tokens of the edited file around the cursor, as the editor has them now. They count instead of
        what was learned of `path`. Use the answer before any file is learned or forgotten.
        """
        if (workspace, path) in self._sizes:
            self._sizes.move_to_end((workspace, path))
        return RowMemory(FileScan(above, below), self.files(workspace), path)

    def files(self, workspace: str) -> KnownFiles | None:
        """Return what is known of a workspace; None without any file."""
        return self._workspaces.get(workspace)

    def _growth(self, workspace: str, highest: int) -> int:
        """Return how much more a workspace itself costs once it has a token `highest`."""
        known = self._workspaces.get(workspace)
        if known is None:
            return _workspace_cost(workspace, highest)
        return _COUNT_BYTES * max(highest - known.highest, 0)

    def _forget_file(self, workspace: str, path: str) -> None:
        size = self._sizes.pop((workspace, path), None)
        if size is None:
            return
        if self._begun is not None and (self._begun.workspace, self._begun.path) == (workspace, path):
            self._begun = None
        self._tokens -= size
        self._cost -= _file_cost(path, size)
        known = self._workspaces[workspace]
        known.remove(path)
        if not known.numbers:
            self._cost -= _workspace_cost(workspace, known.highest)
            del self._workspaces[workspace]


class EngineMemories(WorkspaceMemories):
    """What is known of the workspaces, for the fills of one model. Implements schedule.file_queue.FileMemory.

    use: whether fills get a mixture, windows, or both.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        tokenizer: Tokenizer,
        mixing: MixingNetwork,
        max_bytes: int,
        use: MemoryUse = "mixture",
    ) -> None:
        super().__init__(max_bytes)
        self._vocabulary, self._mixing, self._tokenizer = vocabulary, mixing, tokenizer
        size = 1 + max(tokenizer.get_vocab().values())
        texts = [vocabulary.bytes_of(token) for token in range(size)]  # A vocabulary has 150,000.
        self._line_breaks = np.fromiter((b"\n" in text for text in texts), np.bool_, size)
        self._mixes = use != "windows"
        self._continuing = np.zeros(size, np.float32)
        if self._mixes:
            self._continuing[continuing(texts)] = 1
        self._related: RelatedWindows | None = None
        if use != "mixture":
            lines = LineTexts(self._line_breaks, vocabulary.bytes_of)
            most_own = MOST_WINDOWS if use == "all" else 0
            self._related = RelatedWindows(self.files, self.tokenize, lines, most_own)

    def tokenize(self, text: str) -> list[int]:
        """Return the tokens of a file, whatever its line ends."""
        return self._tokenizer.encode(text.replace("\r\n", "\n"), add_special_tokens=False).ids

    def begin(self, workspace: str, path: str, tokens: Sequence[int] | NDArray[np.int32]) -> bool:
        if self._related is not None:
            self._related.drop(workspace, [path])
        return super().begin(workspace, path, tokens)

    def forget(self, workspace: str, paths: Sequence[str] | None = None) -> None:
        super().forget(workspace, paths)
        if self._related is not None:
            self._related.drop(workspace, paths)

    def related(self, request: HoleRequest) -> list[Snippet]:
        return [] if self._related is None else self._related.snippets(request)

    def for_fill(self, request: HoleRequest, layout: Layout) -> MixedMemory | None:
        if request.memory == "off" or not self._mixes:
            return None
        ends = self._ends(request) if request.extent == "line" else None
        return MixedMemory(self._rows(request, layout), self._mixing, ends, self._vocabulary.end, self._continuing)

    def _ends(self, request: HoleRequest) -> NDArray[np.bool_]:
        """Return the tokens that end a fill in one line, bool [vocabulary]: those that break the line, and those that
        what follows the cursor in it begins with, if they end where a word does.
        """
        follows = request.suffix.partition("\n")[0].rstrip("\r")
        ends = self._line_breaks.copy()
        for length in range(1, min(len(follows), _LONGEST) + 1):
            start, rest = follows[:length], follows[length:].encode()
            is_cut = continues_word(start[-1].encode()) and continues_word(rest)
            if start.strip() and not is_cut and len(tokens := self.tokenize(start)) == 1:
                ends[tokens[0]] = True
        return ends

    def explain(self, request: HoleRequest, layout: Layout, committed: Committed) -> list[Origin]:
        if not committed.sources:
            return []
        return Origins(self._rows(request, layout), self._vocabulary, request, layout).of(committed)

    def _rows(self, request: HoleRequest, layout: Layout) -> RowMemory:
        workspace = request.workspace if request.memory == "workspace" else ""
        return self.rows(workspace, request.path, layout.above, layout.below)


def _workspace_cost(name: str, highest: int) -> int:
    """Return what a workspace costs besides its files. `highest`: its highest token."""
    return WORKSPACE_BYTES + sys.getsizeof(name) + _COUNT_BYTES * (highest + 1)


def _file_cost(path: str, tokens: int) -> int:
    return FILE_BYTES + sys.getsizeof(path) + BYTES_A_TOKEN * tokens
