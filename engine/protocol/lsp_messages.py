"""What the command line, the page and the benchmarks send and read of the Language Server Protocol.

It is here because `midspan fill` must not load lsprotocol and pygls, which takes most of a second. Fields are
snake_case here and camelCase on the wire.
"""

from typing import Any, Literal

import attrs

from engine.protocol.rewrite import changed_part

_UINTEGER = [attrs.validators.ge(0), attrs.validators.le(2**31 - 1)]


@attrs.frozen
class Document:
    """An open document."""

    uri: str


@attrs.frozen
class Position:
    """A position in a text, from 0. `character` counts in the agreed position encoding."""

    line: int = attrs.field(validator=_UINTEGER)
    character: int = attrs.field(validator=_UINTEGER)


@attrs.frozen
class Range:
    """The text from `start` up to `end`."""

    start: Position
    end: Position


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
    pause_ms: int | None = None
    edits_model: str | None = None


@attrs.frozen
class ClientInfo:
    name: str


@attrs.frozen
class Initialize:
    process_id: int
    client_info: ClientInfo
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
class CursorAt:
    text_document: Document
    position: Position


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
