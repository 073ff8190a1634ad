"""Midspan's own messages between an editor and the language server that the command line sends too, and their names.

What it sends and reads of the Language Server Protocol itself: lsp_messages.py. Fields are snake_case here and
camelCase on the wire.
"""

from typing import Any, Literal

import attrs
from cattrs.gen import override

from engine.protocol.lsp_messages import Document, Position, Range
from engine.protocol.messages import Cell, Extent, Finish, Origin, RuleName, SourceName, Status, Timings

FILL = "midspan/fill"
FILL_PROGRESS = "midspan/fillProgress"
SHOW_STATUS = "midspan.status"
STATUS = "midspan/status"
COMMAND_LINE = "midspan"
"""The name by which the command line introduces itself; editors have others."""

State = Literal["idle", "starting", "ready", "busy", "off", "error"]
"""idle: no engine runs, and the next request starts one. off: nothing is suggested, because the user said so."""


@attrs.frozen
class Stage:
    """What the command line reads of the server's status: what it does now, as a sentence."""

    state: State
    message: str


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
class FillOptions:
    """How to fill a hole. None uses the server's setting. `explain` asks for the origins of the text."""

    rule: RuleName | None = None
    steps: int | None = None
    budget_ms: float | None = None
    explain: bool = False
