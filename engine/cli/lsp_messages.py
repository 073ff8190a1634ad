"""What of the Language Server Protocol the command line and the benchmarks send and read.

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
