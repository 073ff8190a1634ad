"""The messages that change or count the memory of a workspace."""

import attrs


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
    """Remove these paths from the memory of a workspace; no paths mean all. Answered as Learn is."""

    workspace: str
    paths: list[str] = attrs.field(factory=list)
    id: int = 0


@attrs.frozen
class MemoryUpdated:
    """The memory now has what the Learn or Forget `id` said. A fill that begins after it sees the change."""

    id: int


@attrs.frozen
class MemoryStatusRequest:
    """Ask for MemoryStatus."""

    workspace: str
    id: int = 0


@attrs.frozen
class MemoryStatus:
    """How many files and tokens the memory of a workspace has, and how many bytes it takes."""

    workspace: str
    files: int
    tokens: int
    bytes: int
    id: int = 0


MemoryRequest = Learn | Forget | MemoryStatusRequest
