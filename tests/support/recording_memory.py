"""A memory of workspaces that keeps what it is given, and a tokenizer whose tokens can be read back."""

import threading
import time
from collections.abc import Sequence

import attrs
import numpy as np
from numpy.typing import NDArray

from engine.protocol.memory_messages import MemoryStatus


def characters(text: str) -> list[int]:
    """Return one token a character."""
    return [ord(character) for character in text]


@attrs.define
class RecordingMemory:
    """Implements file_queue.FileMemory. `texts` has the text of each file of each workspace.

    `learned` has each file that ever entered. A file takes `file_s` seconds to enter. A workspace with more than
    `max_files` loses the oldest. It takes `to_settle` calls until it is settled.
    """

    file_s: float = 0.0
    max_files: int = 100_000
    texts: dict[str, dict[str, str]] = attrs.field(factory=dict)
    learned: list[tuple[str, str]] = attrs.field(factory=list)
    threads: set[str] = attrs.field(factory=set)
    to_settle: int = 0

    def begin(self, workspace: str, path: str, tokens: NDArray[np.int32]) -> bool:
        time.sleep(self.file_s)
        self.threads.add(threading.current_thread().name)
        self.learned.append((workspace, path))
        files = self.texts.setdefault(workspace, {})
        files[path] = "".join(chr(token) for token in tokens.tolist())
        if len(files) > self.max_files:
            del files[next(iter(files))]
        return False

    def go_on(self) -> bool:
        return False

    def forget(self, workspace: str, paths: Sequence[str] | None) -> None:
        files = self.texts.get(workspace, {})
        for path in list(files) if paths is None else paths:
            files.pop(path, None)

    def paths(self, workspace: str) -> list[str]:
        return list(self.texts.get(workspace, {}))

    def settle(self) -> bool:
        self.threads.add(threading.current_thread().name)
        self.to_settle = max(self.to_settle - 1, 0)
        return self.to_settle > 0

    def status(self, workspace: str) -> MemoryStatus:
        files = self.texts.get(workspace, {})
        tokens = sum(map(len, files.values()))
        return MemoryStatus(workspace, len(files), tokens, tokens * 4)
