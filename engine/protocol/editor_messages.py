"""The messages between an editor and the language server that the command line sends too, and their names on the wire.

Midspan's own come first, for this client and the server, then what of the Language Server Protocol the command line,
the page and the benchmarks send and read. They are here because `midspan fill` must not load lsprotocol and pygls,
which takes most of a second. Fields are snake_case here and camelCase on the wire.
"""

from typing import Any, Literal

import attrs
from cattrs.gen import override

from engine.protocol.messages import Cell, Extent, Finish, Origin, RuleName, SourceName, Status, Timings
from engine.protocol.rewrite import changed_part

FILL = "midspan/fill"
FILL_PROGRESS = "midspan/fillProgress"
SHOW_STATUS = "midspan.status"
STATUS = "midspan/status"

State = Literal["idle", "starting", "ready", "busy", "off", "error"]
"""idle: no engine runs, and the next request starts one. off: nothing is suggested, because the user said so."""
_UINTEGER = [attrs.validators.ge(0), attrs.validators.le(2**31 - 1)]


@attrs.frozen
class Stage:
    """What the command line reads of the server's status: what it does now, as a sentence."""

    state: State
    message: str


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
class FillParams:
    """Fill the hole at `position`. None means the value of the settings. Progress is sent only with a token.

    `explain` asks for the origins of the text, and waits until the workspace is read. `trace` asks for the origins too,
    for the cells of each step, and for a FillTrace; it waits for nothing.
    """

    text_document: Document
    position: Position
    rule: str | None = None
    steps: int | None = None
    budget_ms: float | None = None
    progress_token: str | int | None = None
    explain: bool = False
    trace: bool = False


@attrs.frozen
class HoleCut:
    """How the hole was cut out of the document.

    `read` is what the model was given of it, at most. `hidden` are the characters after the cursor that it was not
    given, because they only close what is open before the cursor. `cursor_context` is the kind of code at the cursor.
    """

    read: Range
    hidden: int
    extent: Extent
    cursor_context: Literal["rest of line", "statement", "body", "string", "comment"]


@attrs.frozen
class Verdict:
    """What an editor would have shown of a fill, and the number that decided.

    `written` is the model's own text, `shaped` what is left after shaping, and `shown` what the gate shows of that, ""
    for nothing. `confidence` is how likely the first line of `shown` is right, or of `shaped` where nothing is shown.
    It is shown if it is worth more than it costs: `worth`, in keys, is above 0. That is so from a confidence of
    `needed` on, for a text of this length; a short text may need more than 1.
    """

    written: str
    shaped: str
    shown: str
    is_start: bool
    confidence: float
    needed: float
    worth: float


@attrs.frozen
class FillTrace:
    """The trace of a fill."""

    hole: HoleCut
    verdict: Verdict


@attrs.frozen
class FillResult:
    """`text` is shaped and replaces `range`. `tokens` are the model's own, before shaping. `ms` are milliseconds.

    `source` gave the largest share of the tokens. `origins` are the other places of its parts, if asked for. It is
    the best of `chosen_from` texts, and `steps` are those of all. `silence` is why an editor would show none of it to a
    user who types, "" if it would show some; it is asked for by `explain`.
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
    range: Range
    source: SourceName = "model"
    origins: list[Origin] = attrs.field(factory=list)
    trace: FillTrace | None = None
    chosen_from: int = 1
    silence: str = ""


@attrs.frozen
class FillProgress:
    """The canvas after a denoising step, one token a position; None is a mask. `cells` and `ms` as in Progress."""

    token: str | int
    step: int
    canvas: list[str | None]
    cells: list[Cell] = attrs.field(factory=list)
    ms: float = 0.0


@attrs.frozen
class ModelOffer:
    """A larger model that this machine could carry: a sentence for the user, and what it says.

    `model` is its name, `size_bytes` what is to be pulled, `ms` the time of a suggestion, and `path` the file of
    another program that is the model already, or "".
    """

    text: str
    model: str
    size_bytes: int
    licence: str
    ms: float
    path: str = ""


@attrs.frozen
class StatusReport:
    """The result of the command midspan.status. The counts are this session's; `engine` is None while none runs.

    `asked` requests went to the engine, and `reused` ones did not need it. `offer` is None until a larger model is
    known to be worth it.
    """

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
    offer: ModelOffer | None = None


def camel_case(name: str) -> str:
    """Return a snake_case name as JSON has it: budget_ms becomes budgetMs."""
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def wire_names(cls: type[Any]) -> dict[str, Any]:
    """Return what cattrs' generated functions take to have the fields of an attrs class in camelCase."""
    return {field.name: override(rename=camel_case(field.name)) for field in attrs.fields(cls)}


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


_MOST = 60
"""Characters of a quoted text."""
_NAMES: dict[SourceName, str] = {"file": "this file", "workspace": "the workspace"}


def origin_line(origin: Origin) -> str:
    """Return one line, such as `"Loader(path)" as in engine/loader.py:120, 7 of 7 times; the model alone: 12 %`."""
    seen = f"{quoted(origin.text)} as in {origin.path}:{origin.line}, {origin.count} of {origin.total} times"
    return f"{seen}; the model alone: {_percent(origin.alone)}"


def source_line(text: str, source: SourceName, origins: list[Origin]) -> str:
    """Return one line about the whole text, to be shown above the lines of its origins."""
    if not text.strip():
        return "nothing is suggested here"
    if not origins:
        return f"{quoted(text)} comes from the model; no known file gave more to any part of it"
    if source == "model":
        return f"{quoted(text)} comes from the model and from known files"
    return f"{quoted(text)} comes mostly from {_NAMES[source]}"


def quoted(text: str) -> str:
    """Return the first line of a text in quotes, cut to a readable length."""
    first, newline, _ = text.strip().partition("\n")
    shown = first if len(first) <= _MOST else first[: _MOST - 1]
    return f'"{shown}{"…" if newline or shown != first else ""}"'


def _percent(probability: float) -> str:
    return "under 1 %" if probability < 0.005 else f"{100 * probability:.0f} %"
