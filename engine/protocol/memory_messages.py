"""The messages that change or count the memory of a workspace."""

from collections.abc import Sequence

import attrs

MOST_REQUESTS = 64
"""Open requests of a client about the memory. With the limit of a frame this bounds the bytes that it makes us keep."""


@attrs.frozen
class Learn:
    """Put a file into the memory of its workspace, in place of what the memory had of it.

    `workspace` is the real path of the workspace folder: the engine keeps the memories of workspaces apart by it.
    `path` is the file's path inside that folder. The engine answers with MemoryUpdated or Failed.
    """

    workspace: str
    path: str
    text: str
    language: str = ""
    id: int = 0


@attrs.frozen
class Forget:
    """Remove these paths from the memory of a workspace; no paths mean all but `keep`. Answered as Learn is.

    With neither paths nor `keep` the client leaves the workspace. Its files stay while other clients use it.
    """

    workspace: str
    paths: list[str] = attrs.field(factory=list)
    id: int = 0
    keep: list[str] = attrs.field(factory=list)


@attrs.frozen
class MemoryUpdated:
    """The memory now has what the Learn or Forget `id` said. A fill that begins after it sees the change."""

    id: int


@attrs.frozen
class MemoryStatusRequest:
    """Ask for MemoryStatus. `workspace` "" means all workspaces together."""

    workspace: str
    id: int = 0


@attrs.frozen
class MemoryCount:
    """How many files and tokens the memory of a workspace has, and how many bytes it takes."""

    workspace: str
    files: int
    tokens: int
    bytes: int

    @property
    def readable(self) -> str:
        """A line for a person, such as `1,240 files, 2.9 M tokens, 104 MB`."""
        tokens = f"{self.tokens / 1e6:.1f} M" if self.tokens >= 1e6 else f"{self.tokens:,}"
        megabytes = self.bytes / 1e6
        return f"{self.files:,} files, {tokens} tokens, {megabytes:.{0 if megabytes >= 10 else 1}f} MB"


@attrs.frozen
class MemoryStatus(MemoryCount):
    """The answer to MemoryStatusRequest. `each` has the numbers of each workspace, where all were asked for."""

    id: int = 0
    each: list[MemoryCount] = attrs.field(factory=list)

    @staticmethod
    def sum(parts: Sequence["MemoryStatus"]) -> "MemoryStatus":
        """Return the numbers of several workspaces together."""
        files, tokens = sum(part.files for part in parts), sum(part.tokens for part in parts)
        return MemoryStatus("", files, tokens, sum(part.bytes for part in parts))


MemoryRequest = Learn | Forget | MemoryStatusRequest
