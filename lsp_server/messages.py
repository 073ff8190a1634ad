"""What Midspan says beside standard LSP: the request midspan/fill, its progress, the status notification, commands.

Fields are snake_case here and camelCase on the wire.
"""

from collections.abc import Callable, Mapping
from typing import Any, Literal

import attrs
import cattrs
from cattrs.gen import make_dict_structure_fn, make_dict_unstructure_fn, override
from lsprotocol import types
from pygls.protocol import default_converter

from engine.protocol.messages import Finish, ModelInfo, RuleName, Status, Timings

FILL = "midspan/fill"
FILL_PROGRESS = "midspan/fillProgress"
STATUS = "midspan/status"
# Copilot's language server made these two what such clients send.
SHOWN = "textDocument/didShowCompletion"
PARTLY_ACCEPTED = "textDocument/didPartiallyAcceptCompletion"
ACCEPTED = "midspan.accepted"

State = Literal["starting", "ready", "busy", "off", "error"]


@attrs.frozen
class FillParams:
    """Fill the hole at `position`. What is None is taken from the settings; progress is sent only with a token."""

    text_document: types.TextDocumentIdentifier
    position: types.Position
    rule: str | None = None
    steps: int | None = None
    budget_ms: float | None = None
    progress_token: str | int | None = None


@attrs.frozen
class FillRequest:
    """The JSON-RPC request around FillParams."""

    id: int | str
    params: FillParams
    method: str = FILL
    jsonrpc: str = "2.0"


@attrs.frozen
class FillResult:
    """`text` is shaped and goes into `range`; `tokens` are the model's own, before shaping; `ms` are milliseconds."""

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


@attrs.frozen
class FillProgress:
    """The canvas after a denoising step: None where it is still masked."""

    token: str | int
    step: int
    canvas: list[str | None]


@attrs.frozen
class StatusParams:
    """What an editor's status item shows. `median_ms` is the median of the recent fills, request to answer."""

    state: State
    message: str
    model: str | None = None
    median_ms: float | None = None


@attrs.frozen
class StatusReport:
    """The answer of the command midspan.status. The counts are this session's; `engine` is None while none runs."""

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
    engine: Status | None


@attrs.frozen
class ToggleResult:
    """The answer of the command midspan.toggle; `language` is None for the switch of all languages."""

    enabled: bool
    language: str | None


@attrs.frozen
class OfferTag:
    """The argument of the command midspan.accepted, which each item carries: whose item it is, and never its text.

    `start` is how many characters of the offer were typed before the item, `characters` how many the item brings.
    """

    offer: int
    language: str
    start: int
    characters: int

    def command(self) -> types.Command:
        """Return the command that an editor runs when the user takes the item."""
        return types.Command("Count an accepted suggestion", ACCEPTED, arguments=[attrs.asdict(self)])


def read_mark(argument: object) -> OfferTag | None:
    """Return the mark in a command's argument; None where it is none of ours."""
    if not isinstance(argument, Mapping) or not isinstance(argument.get("language"), str):
        return None
    numbers = [argument.get(name) for name in ("offer", "start", "characters")]
    if not all(isinstance(number, int) and number >= 0 for number in numbers):
        return None
    return OfferTag(argument["offer"], argument["language"], argument["start"], argument["characters"])


@attrs.frozen
class ItemShown:
    """An item of ours, as far as an editor sends it back."""

    command: types.Command | None = None
    insert_text: str | None = None

    @property
    def mark(self) -> OfferTag | None:
        """Whose it is; None where it is none of ours."""
        if self.command is None or self.command.command != ACCEPTED or not self.command.arguments:
            return None
        return read_mark(self.command.arguments[0])


@attrs.frozen
class ShownParams:
    """The editor shows an item."""

    item: ItemShown


@attrs.frozen
class ShownNotification:
    """The JSON-RPC notification around ShownParams."""

    params: ShownParams
    method: str = SHOWN
    jsonrpc: str = "2.0"


@attrs.frozen
class PartParams:
    """The user took the beginning of an item: `accepted_length` UTF-16 units of its text, parts before included."""

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
    """The argument of the command midspan.dismissed: where the cursor is, its column counted as the editor does."""

    uri: str
    position: types.Position


_OURS: tuple[type[Any], ...] = (
    FillParams,
    FillResult,
    FillProgress,
    StatusParams,
    StatusReport,
    ToggleResult,
    ItemShown,
    PartParams,
    Status,
    Timings,
    ModelInfo,
)


def converter() -> cattrs.Converter:
    """Return pygls' converter, taught the messages of this file."""
    ours: cattrs.Converter = default_converter()  # type: ignore[no-untyped-call]
    ours.register_structure_hook(str | int, lambda value, _: value)
    ours.register_structure_hook(str | int | None, lambda value, _: value)
    # By factories, so that each hook is made when its first message comes and not while the editor waits for us.
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
    """Return a snake_case name the way it is written in JSON: budget_ms is budgetMs."""
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)
