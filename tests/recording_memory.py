"""A memory of workspaces that keeps what it is given, and a tokenizer whose tokens can be read back."""

import threading
import time
from collections.abc import Sequence

import attrs
import numpy as np
from numpy.typing import NDArray


def characters(text: str) -> list[int]:
    """Return one token a character."""
    return [ord(character) for character in text]


@attrs.define
class RecordingMemory:
    """Implements file_queue.FileMemory. `texts` has the text of each file of each workspace.

    `learned` has each file that ever entered, and a file takes `file_s` seconds to enter.
    """

    file_s: float = 0.0
    texts: dict[str, dict[str, str]] = attrs.field(factory=dict)
    learned: list[tuple[str, str]] = attrs.field(factory=list)
    threads: set[str] = attrs.field(factory=set)

    def learn(self, workspace: str, path: str, tokens: NDArray[np.int32]) -> None:
        time.sleep(self.file_s)
        self.threads.add(threading.current_thread().name)
        self.learned.append((workspace, path))
        self.texts.setdefault(workspace, {})[path] = "".join(chr(token) for token in tokens.tolist())

    def forget(self, workspace: str, paths: Sequence[str] | None) -> None:
        files = self.texts.get(workspace, {})
        for path in list(files) if paths is None else paths:
            files.pop(path, None)

    def status(self, workspace: str) -> tuple[int, int, int]:
        files = self.texts.get(workspace, {})
        tokens = sum(map(len, files.values()))
        return len(files), tokens, tokens * 4
