"""What of the Language Server Protocol the command line, the page and the benchmarks send and read.

Midspan's own messages are in engine/protocol/editor_messages.py, for this client and the server.
"""

from typing import Literal

import attrs

from engine.protocol.editor_messages import Document, Position, Range
from engine.protocol.messages import RuleName


@attrs.frozen
class VersionedDocument:
    uri: str
    version: int


@attrs.frozen
class DocumentItem:
    uri: str
    language_id: str
    version: int
    text: str


@attrs.frozen
class DidOpen:
    text_document: DocumentItem


@attrs.frozen
class DidClose:
    text_document: Document


@attrs.frozen
class ContentChange:
    text: str
    range: Range


@attrs.frozen
class DidChange:
    text_document: VersionedDocument
    content_changes: list[ContentChange]


@attrs.frozen
class GeneralCapabilities:
    position_encodings: list[str]


@attrs.frozen
class ClientCapabilities:
    general: GeneralCapabilities


@attrs.frozen
class InitializationOptions:
    """The settings that the command line sets. None keeps the language server's default."""

    model: str | None = None
    precision: str | None = None


@attrs.frozen
class Initialize:
    process_id: int
    capabilities: ClientCapabilities
    root_uri: str
    initialization_options: InitializationOptions


@attrs.frozen
class Initialized:
    """The params of `initialized`: an empty object, which is not the same as no params."""


@attrs.frozen
class ServerCapabilities:
    position_encoding: Literal["utf-8", "utf-16", "utf-32"] = "utf-16"


@attrs.frozen
class InitializeResult:
    capabilities: ServerCapabilities


@attrs.frozen
class InlineContext:
    """`trigger_kind` 1 is Invoked, 2 is Automatic."""

    trigger_kind: int


@attrs.frozen
class InlineCompletion:
    text_document: Document
    position: Position
    context: InlineContext


@attrs.frozen
class InlineItem:
    insert_text: str
    range: Range | None = None


@attrs.frozen
class InlineList:
    items: list[InlineItem]


@attrs.frozen
class FillOptions:
    """How to fill a hole. None uses the server's setting. `explain` asks for the origins of the text."""

    rule: RuleName | None = None
    steps: int | None = None
    budget_ms: float | None = None
    explain: bool = False


@attrs.frozen
class Command:
    """The params of workspace/executeCommand for a command without arguments."""

    command: str


def position_of(text: str, offset: int) -> Position:
    """Return the position of an offset, with columns in code points."""
    return Position(text.count("\n", 0, offset), offset - (text.rfind("\n", 0, offset) + 1))


def change_of(old: str, new: str) -> ContentChange:
    """Return the change that turns one text into another: all between their common start and end."""
    most = min(len(old), len(new))
    start = _common(old, new, most)
    end = _common(old[::-1], new[::-1], most - start)
    span = Range(position_of(old, start), position_of(old, len(old) - end))
    return ContentChange(new[start : len(new) - end], span)


def _common(one: str, other: str, most: int) -> int:
    """Return the length of the common start of two texts, at most `most`: by halves, so that long texts are quick."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
