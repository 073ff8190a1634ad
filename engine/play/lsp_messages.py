"""The messages that the page's server and its language server exchange. Fields are camelCase on the wire."""

from typing import Any, Literal, Protocol, TypeVar

import attrs

from engine.protocol.cells import Cell
from engine.protocol.messages import Extent, Finish, Origin, RuleName, SourceName, Status, Timings

Answer = TypeVar("Answer")


class LanguageServer(Protocol):
    """A connection to a running `midspan-lsp` that counts columns in code points. engine/cli/json_rpc.py is one."""

    @property
    def has_ended(self) -> bool:
        """Whether the server is gone."""
        ...

    async def request(self, method: str, params: object, answer_class: type[Answer]) -> Answer:
        """Send a request, return its result. Raises MidspanError with one line."""
        ...

    async def notify(self, method: str, params: object) -> None:
        """Send a notification. Raises MidspanError with one line."""


@attrs.frozen
class Position:
    """0-based. `character` counts code points."""

    line: int
    character: int


@attrs.frozen
class Range:
    start: Position
    end: Position


@attrs.frozen
class Document:
    uri: str


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
class InlineContext:
    """`trigger_kind` 2 is Automatic."""

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
class FillRequest:
    """The params of midspan/fill with a trace."""

    text_document: Document
    position: Position
    rule: RuleName | None
    budget_ms: float
    progress_token: str
    trace: bool = False


@attrs.frozen
class FillProgress:
    """The canvas after a pass. `ms` is the time since the fill was submitted."""

    token: str
    step: int
    canvas: list[str | None]
    cells: list[Cell] = attrs.field(factory=list)
    ms: float = 0.0


@attrs.frozen
class HoleCut:
    """engine/protocol/editor_messages.py explains the fields."""

    read: Range
    hidden: int
    extent: Extent
    cursor_context: str


@attrs.frozen
class Verdict:
    """engine/protocol/editor_messages.py explains the fields."""

    written: str
    shaped: str
    shown: str
    is_start: bool
    confidence: float
    needed: float
    worth: float


@attrs.frozen
class FillTrace:
    hole: HoleCut
    verdict: Verdict


@attrs.frozen
class FillAnswer:
    """The result of midspan/fill."""

    text: str
    tokens: list[str]
    steps: int
    finish: Finish
    confidence: float
    rule: RuleName
    context_tokens: int
    cached_tokens: int
    ms: Timings
    model: str
    trace: FillTrace
    source: SourceName = "model"
    origins: list[Origin] = attrs.field(factory=list)


@attrs.frozen
class StatusReport:
    """The result of midspan.status. `engine` is None while none runs."""

    state: Literal["idle", "starting", "ready", "busy", "off", "error"]
    message: str
    engine: Status | None
    memory: str | None = None
    median_ms: float | None = None
