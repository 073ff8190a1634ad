"""What an engine knows of the workspaces that it serves, for the fills of one model."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from engine.fill.interface import Committed, Layout, MemoryUse, Vocabulary
from engine.fill.predictions import continues_word
from engine.memory.fill_memory import GatedMemory
from engine.memory.gate import MemoryGate
from engine.memory.origins import Origins
from engine.memory.related_windows import RelatedWindows
from engine.memory.row_memory import RowMemory
from engine.memory.windows import LineTexts
from engine.memory.workspace import Status, WorkspaceMemories
from engine.protocol.messages import Fill, Origin, Snippet

_LONGEST = 24
"""Bytes of what follows the cursor in which its first token is looked for."""


class EngineMemories:
    """Implements schedule.job.Memories, and schedule.file_queue.FileMemory for what is learned.

    use: whether fills get a mixture, windows of other files, or both.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        tokenizer: Tokenizer,
        gate: MemoryGate,
        max_bytes: int,
        use: MemoryUse = "mixture",
    ) -> None:
        self._vocabulary = vocabulary
        self._workspaces, self._gate, self._end = WorkspaceMemories(max_bytes), gate, vocabulary.end
        self._tokenizer = tokenizer
        special = tokenizer.get_added_tokens_decoder()
        text = [token for token in tokenizer.get_vocab().values() if token not in special]
        size = 1 + max(tokenizer.get_vocab().values())
        self._line_breaks = np.zeros(size, np.bool_)
        self._line_breaks[[token for token in text if vocabulary.breaks_line(token)]] = True
        self._token_of = {vocabulary.bytes_of(token): token for token in text}
        self._mixes = use != "windows"
        self._continuing = np.zeros(size, np.float32)
        if self._mixes:
            self._continuing[:] = [continues_word(vocabulary.bytes_of(token)) for token in range(size)]
        self._related: RelatedWindows | None = None
        if use != "mixture":
            lines = LineTexts(self._line_breaks, vocabulary.bytes_of)
            self._related = RelatedWindows(self._workspaces, self.tokenize, lines)

    def tokenize(self, text: str) -> list[int]:
        """Return the tokens of a file, whatever its line ends."""
        return self._tokenizer.encode(text.replace("\r\n", "\n"), add_special_tokens=False).ids

    def learn(self, workspace: str, path: str, tokens: NDArray[np.int32]) -> None:
        self._workspaces.learn(workspace, path, tokens)
        if self._related is not None:
            self._related.drop(workspace, [path])

    def forget(self, workspace: str, paths: Sequence[str] | None) -> None:
        self._workspaces.forget(workspace, paths)
        if self._related is not None:
            self._related.drop(workspace, paths)

    def paths(self, workspace: str) -> list[str]:
        return self._workspaces.paths(workspace)

    def status(self, workspace: str) -> Status:
        return self._workspaces.status(workspace)

    def settle(self) -> bool:
        return self._workspaces.settle()

    def related(self, fill: Fill) -> list[Snippet]:
        return [] if self._related is None else self._related.snippets(fill)

    def for_fill(self, fill: Fill, layout: Layout) -> GatedMemory | None:
        if fill.memory == "off" or not self._mixes:
            return None
        ends = self._ends(fill) if fill.extent == "line" else None
        return GatedMemory(self._rows(fill, layout), self._gate, ends, self._end, self._continuing)

    def _ends(self, fill: Fill) -> NDArray[np.bool_]:
        """Return the tokens that end a fill in one line, bool [vocabulary]: those that break the line, and those that
        what follows the cursor in it begins with, if they end where a word does.
        """
        follows = fill.suffix.partition("\n")[0].rstrip("\r").encode()
        ends = self._line_breaks.copy()
        for length in range(1, min(len(follows), _LONGEST) + 1):
            start, rest = follows[:length], follows[length:]
            is_cut = continues_word(start[-1:]) and continues_word(rest)
            if start in self._token_of and start.strip() and not is_cut:
                ends[self._token_of[start]] = True
        return ends

    def explain(self, fill: Fill, layout: Layout, committed: Committed) -> list[Origin]:
        if not committed.sources:
            return []
        return Origins(self._rows(fill, layout), self._vocabulary, fill, layout).of(committed)

    def _rows(self, fill: Fill, layout: Layout) -> RowMemory:
        workspace = fill.workspace if fill.memory == "workspace" else ""
        return self._workspaces.rows(workspace, fill.path, layout.above, layout.below)
