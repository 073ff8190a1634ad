"""What of the Language Server Protocol the command line, the page and the benchmarks send and read.

Midspan's own messages are in engine/protocol/editor_messages.py, for this client and the server.
"""

from typing import Any, Literal

import attrs

from engine.protocol.editor_messages import Document, Position, Range
from engine.protocol.messages import RuleName, changed_part


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
class Command:
    """A command that the language server runs: the params of workspace/executeCommand."""

    command: str
    arguments: list[Any] = attrs.field(factory=list)


@attrs.frozen
class InlineItem:
    insert_text: str
    range: Range
    command: Command | None = None


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


def position_of(text: str, offset: int) -> Position:
    """Return the position of an offset, with columns in code points."""
    return Position(text.count("\n", 0, offset), offset - (text.rfind("\n", 0, offset) + 1))


def offset_of(text: str, position: Position) -> int:
    """Return the offset of a position of this text, with columns in code points."""
    start = 0
    for _ in range(position.line):
        start = text.find("\n", start) + 1
    return start + position.character


def change_of(old: str, new: str) -> ContentChange:
    """Return the change that turns one text into another: all between their common start and end."""
    start, end, new_end = changed_part(old, new)
    return ContentChange(new[start:new_end], Range(position_of(old, start), position_of(old, end)))
