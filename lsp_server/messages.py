"""Midspan's own messages besides standard LSP: midspan/fill and its progress, the cursor, the status, the commands.

Fields are snake_case here and camelCase on the wire.
"""

from collections.abc import Callable
from typing import Any, Literal

import attrs
import cattrs
from cattrs.gen import make_dict_structure_fn, make_dict_unstructure_fn, override
from lsprotocol import types
from pygls.protocol import default_converter

from engine.protocol.cells import Cell
from engine.protocol.messages import Finish, ModelInfo, Origin, RuleName, SourceName, Status, Timings
from lsp_server import bulk_messages as bulk
from lsp_server.offer_tag import ACCEPTED, OfferTag, read_tag
from lsp_server.trace_messages import FillTrace, HoleCut, Verdict
from lsp_server.why_messages import WhyAnswer, WhyParams, WhyPlace

FILL = "midspan/fill"
FILL_PROGRESS = "midspan/fillProgress"
STATUS = "midspan/status"
CURSOR_MOVED = "midspan/cursorMoved"
# Clients of Copilot's language server send these two.
SHOWN = "textDocument/didShowCompletion"
PARTLY_ACCEPTED = "textDocument/didPartiallyAcceptCompletion"

State = Literal["idle", "starting", "ready", "busy", "off", "error"]
"""idle: no engine runs, and the next request starts one. off: nothing is suggested, because the user said so."""


@attrs.frozen
class FillParams:
    """Fill the hole at `position`. None means the value of the settings. Progress is sent only with a token.

    `explain` asks for the origins of the text, and waits until the workspace is read. `trace` asks for the origins too,
    for the cells of each step, and for a FillTrace; it waits for nothing.
    """

    text_document: types.TextDocumentIdentifier
    position: types.Position
    rule: str | None = None
    steps: int | None = None
    budget_ms: float | None = None
    progress_token: str | int | None = None
    explain: bool = False
    trace: bool = False


@attrs.frozen
class FillRequest:
    """The JSON-RPC request around FillParams."""

    id: int | str
    params: FillParams
    method: str = FILL
    jsonrpc: str = "2.0"


@attrs.frozen
class FillResult:
    """`text` is shaped and replaces `range`. `tokens` are the model's own, before shaping. `ms` are milliseconds.

    `source` gave the largest share of the tokens. `origins` are where parts of the text stand too, if asked for.
    """

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
    range: types.Range
    source: SourceName = "model"
    origins: list[Origin] = attrs.field(factory=list)
    trace: FillTrace | None = None


@attrs.frozen
class FillProgress:
    """The canvas after a denoising step, one token a position; None is a mask. `cells` and `ms` as in Progress."""

    token: str | int
    step: int
    canvas: list[str | None]
    cells: list[Cell] = attrs.field(factory=list)
    ms: float = 0.0


@attrs.frozen
class CursorParams:
    """The cursor rests at `position`, in the document that the user looks at."""

    text_document: types.TextDocumentIdentifier
    position: types.Position


@attrs.frozen
class CursorNotification:
    """The JSON-RPC notification around CursorParams."""

    params: CursorParams
    method: str = CURSOR_MOVED
    jsonrpc: str = "2.0"


@attrs.frozen
class StatusParams:
    """What an editor's status item shows. `median_ms` is the median time of recent fills, from request to answer.

    `memory` is a line about what is known of the workspace. Until `snoozed_until`, in seconds since the epoch, nothing
    is suggested unasked.
    """

    state: State
    message: str
    model: str | None = None
    median_ms: float | None = None
    memory: str | None = None
    snoozed_until: float | None = None


@attrs.frozen
class StatusReport:
    """The result of the command midspan.status. The counts are this session's; `engine` is None while none runs."""

    state: State
    message: str
    enabled: bool
    model: str
    asked: int
    reused: int
    shown: int
    accepted: int
    partial: int
    dismissed: int
    median_ms: float | None
    memory: str | None
    snoozed_until: float | None
    engine: Status | None


@attrs.frozen
class ToggleResult:
    """The result of the command midspan.toggle. `language` is None for the switch of all languages."""

    enabled: bool
    language: str | None


@attrs.frozen
class SnoozeResult:
    """The result of the command midspan.snooze: when it ends, in seconds since the epoch, or None when it has ended."""

    until: float | None


@attrs.frozen
class ItemShown:
    """The parts of an item that an editor sends back."""

    command: types.Command | None = None
    insert_text: str | None = None

    @property
    def tag(self) -> OfferTag | None:
        """The item's tag, or None when the item is not ours."""
        if self.command is None or self.command.command != ACCEPTED or not self.command.arguments:
            return None
        return read_tag(self.command.arguments[0])


@attrs.frozen
class ShownParams:
    """The editor reports that it shows an item."""

    item: ItemShown


@attrs.frozen
class ShownNotification:
    """The JSON-RPC notification around ShownParams."""

    params: ShownParams
    method: str = SHOWN
    jsonrpc: str = "2.0"


@attrs.frozen
class PartParams:
    """The user took the start of an item: `accepted_length` UTF-16 units of its text, earlier parts included."""

    item: ItemShown
    accepted_length: int


@attrs.frozen
class PartNotification:
    """The JSON-RPC notification around PartParams."""

    params: PartParams
    method: str = PARTLY_ACCEPTED
    jsonrpc: str = "2.0"


@attrs.frozen
class Dismissal:
    """The argument of the command midspan.dismissed: the cursor, its column in the editor's encoding."""

    uri: str
    position: types.Position


_OURS: tuple[type[Any], ...] = (
    FillParams,
    FillResult,
    FillProgress,
    FillTrace,
    HoleCut,
    Verdict,
    CursorParams,
    StatusParams,
    StatusReport,
    ToggleResult,
    SnoozeResult,
    ItemShown,
    PartParams,
    WhyParams,
    WhyAnswer,
    WhyPlace,
    bulk.BulkAction,
    bulk.BulkEditParams,
    bulk.BulkPlace,
    bulk.BulkOmission,
    bulk.BulkEdit,
    bulk.ApplyParams,
    bulk.ApplyResult,
    bulk.NextEditParams,
    bulk.NextEdit,
    bulk.NextEditResult,
    Status,
    Timings,
    ModelInfo,
)


def converter() -> cattrs.Converter:
    """Return pygls' converter, extended by the messages of this file."""
    ours: cattrs.Converter = default_converter()  # type: ignore[no-untyped-call]
    ours.register_structure_hook(str | int, lambda value, _: value)
    ours.register_structure_hook(str | int | None, lambda value, _: value)
    # Factories build each hook when its first message comes, not while the editor waits for the server to start.
    ours.register_structure_hook_factory(_OURS.__contains__, _structure_fn)
    ours.register_unstructure_hook_factory(_OURS.__contains__, _unstructure_fn)
    return ours


def _structure_fn(cls: type[Any], ours: cattrs.Converter) -> Callable[..., Any]:
    return make_dict_structure_fn(cls, ours, **_wire_names(cls))


def _unstructure_fn(cls: type[Any], ours: cattrs.Converter) -> Callable[[Any], dict[str, Any]]:
    return make_dict_unstructure_fn(cls, ours, **_wire_names(cls))


def _wire_names(cls: type[Any]) -> dict[str, Any]:
    return {field.name: override(rename=camel_case(field.name)) for field in attrs.fields(cls)}


def camel_case(name: str) -> str:
    """Return a snake_case name as JSON has it: budget_ms becomes budgetMs."""
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)
