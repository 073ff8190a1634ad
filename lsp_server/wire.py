"""The language server's own messages besides standard LSP. Those of `midspan fill`: engine/protocol/editor_messages.py.

Fields are snake_case here and camelCase on the wire (protocol.py).

An editor that shows the places itself says so in initialize: `{"midspanPreview": true}` in
capabilities.experimental. Then a code action has the client's command midspan.preview, with its BulkAction as argument.
The client sends it back in midspan/bulkEdit, shows the places, and sends the chosen ones in midspan/applyBulkEdit. The
server applies them by workspace/applyEdit. Any other editor gets the edit by codeAction/resolve, or has the server
apply it by the command midspan.runAction.

The next edit is asked for as Copilot's clients do it: textDocument/copilotInlineEdit.
"""

from collections.abc import Mapping
from typing import Literal, get_args

import attrs
from lsprotocol import types

from engine.protocol.editor_messages import ModelOffer, State
from engine.protocol.messages import SourceName

CURSOR_MOVED = "midspan/cursorMoved"
# No editor sends it: it takes the place of a message with text that cannot be read.
LOST = "$/lost"
WHY = "midspan/whyThisSuggestion"
WHY_NOTHING = "midspan/whyNoSuggestion"
ACCEPTED = "midspan.accepted"
# Clients of Copilot's language server send these two.
SHOWN = "textDocument/didShowCompletion"
PARTLY_ACCEPTED = "textDocument/didPartiallyAcceptCompletion"
BULK_EDIT = "midspan/bulkEdit"
RUN_ACTION = "midspan.runAction"
APPLY_BULK_EDIT = "midspan/applyBulkEdit"
PREVIEW = "midspan.preview"
NEXT_EDIT = "textDocument/copilotInlineEdit"
NEXT_EDIT_SHOWN = "textDocument/didShowInlineEdit"
NEXT_EDIT_ACCEPTED = "midspan.nextEditAccepted"
NEXT_EDIT_DISMISSED = "midspan.nextEditDismissed"
# The server asks the editor for a document's errors and warnings, if capabilities.experimental has midspanDiagnostics.
DIAGNOSTICS = "midspan/diagnostics"

ActionName = Literal["repeat", "stubs", "annotations", "docstrings", "refill", "paste"]
ScopeName = Literal["selection", "file", "workspace"]


@attrs.frozen
class CursorParams:
    """The cursor rests at `position`, in the document that the user looks at."""

    text_document: types.TextDocumentIdentifier
    position: types.Position


@attrs.frozen
class LostParams:
    """The text of these documents is no longer what the editor has."""

    uris: list[str]


@attrs.frozen
class StatusParams:
    """What an editor's status item shows. `median_ms` is the median time of recent fills, from request to answer.

    `memory` is a line about what is known of the workspace. Until `snoozed_until`, in seconds since the epoch, nothing
    is suggested unasked. `offer` is a larger model that this machine could carry. `is_server`: a server is in the
    model's place, and each request costs something.
    """

    state: State
    message: str
    model: str | None = None
    median_ms: float | None = None
    memory: str | None = None
    snoozed_until: float | None = None
    offer: ModelOffer | None = None
    is_server: bool = False


@attrs.frozen
class InstallResult:
    """The result of the command midspan.installModel: the model whose installation has begun."""

    model: str


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
class OfferTag:
    """The argument of the command midspan.accepted, which each item carries. It names the offer, and has no text.

    Editors send it back with what they report about the item.

    `start` is how many characters of the offer the user typed before the item; `characters` is the item's length.
    `source` is where most of its text came from. `confidence`, for an editor that shows it, is how likely the item is
    right, between 0 and 1; None for a text that is typed along.
    """

    offer: int
    language: str
    start: int
    characters: int
    source: SourceName = "model"
    confidence: float | None = None

    def command(self) -> types.Command:
        """Return the command that an editor runs when the user takes the item."""
        return types.Command("Count an accepted suggestion", ACCEPTED, arguments=[attrs.asdict(self)])


def read_tag(argument: object) -> OfferTag | None:
    """Return the tag in a command's argument, or None when the command is not ours."""
    if not isinstance(argument, Mapping) or not isinstance(argument.get("language"), str):
        return None
    numbers = [argument.get(name) for name in ("offer", "start", "characters")]
    if not all(isinstance(number, int) and number >= 0 for number in numbers):
        return None
    source: SourceName = next((name for name in get_args(SourceName) if name == argument.get("source")), "model")
    return OfferTag(argument["offer"], argument["language"], argument["start"], argument["characters"], source)


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
class PartParams:
    """The user took the start of an item: `accepted_length` UTF-16 units of its text, earlier parts included."""

    item: ItemShown
    accepted_length: int


@attrs.frozen
class Dismissal:
    """The argument of the command midspan.dismissed: the cursor, its column in the editor's encoding."""

    uri: str
    position: types.Position


@attrs.frozen
class WhyParams:
    """Asks about the last suggestion in a document, or with WHY_NOTHING why its last request showed none.

    If nothing was shown since, and the user did not just take the last suggestion, WHY is answered as WHY_NOTHING is.
    """

    text_document: types.TextDocumentIdentifier


@attrs.frozen
class WhyOrigin:
    """A part of the suggestion that is elsewhere too. `text` is a line to show, `line` counts from 0."""

    text: str
    uri: str
    line: int


@attrs.frozen
class WhyAnswer:
    """`summary` is one line about the whole suggestion. `places` are in the order of its text.

    `is_held_back`: nothing is shown because of the gate, and something would be if the user asked.
    """

    summary: str
    places: list[WhyOrigin] = attrs.field(factory=list)
    is_held_back: bool = False


@attrs.frozen
class BulkAction:
    """What a code action does: an action on the selection, the file or the workspace, for one version of a document."""

    action: ActionName
    scope: ScopeName
    uri: str
    version: int
    range: types.Range


@attrs.frozen
class BulkEditParams:
    """Ask what an action would change. The request can be cancelled; its progress is reported with the token."""

    action: BulkAction
    work_done_token: str | int | None = None


@attrs.frozen
class BulkPlace:
    """One place that changes. `before` and `after` are its whole lines, without the last line end.

    `range` is the place in the text before the edit. `reason` is a phrase such as "as in app.py:12". A `doubtful` place
    is to be asked about, and not ticked. The `wide` ones, which only the widest form of the rule fits, are a group that
    the user takes or leaves.
    """

    id: int
    uri: str
    path: str
    range: types.Range
    before: str
    after: str
    reason: str = ""
    doubtful: bool = False
    wide: bool = False


@attrs.frozen
class BulkOmission:
    """A place that was left out, with the reason as a phrase. `line` counts from 0."""

    uri: str
    path: str
    line: int
    reason: str


@attrs.frozen
class BulkEdit:
    """What an action would change, the places of a file together and in their order.

    `rule` is the edit as code, "" if a model wrote it. `reached` has a line for each cap that ended the search. With
    `exclusive` the places are answers to choose one of. `following` has what follows the chosen places of its file,
    such as imports: it is shown, and cannot be chosen.
    """

    id: int
    title: str
    rule: str
    places: list[BulkPlace]
    left_out: list[BulkOmission]
    reached: list[str]
    exclusive: bool = False
    following: list[BulkPlace] = attrs.field(factory=list)


@attrs.frozen
class ApplyParams:
    """Apply the places of a bulk edit by their ids."""

    id: int
    places: list[int]


@attrs.frozen
class ApplyResult:
    """Whether the edit was applied, and one line for the user: what was changed, or why nothing was."""

    applied: bool
    message: str


@attrs.frozen
class EditorReport:
    """What a compiler or linter says in the editor of a line, which counts from 0."""

    line: int
    message: str


@attrs.frozen
class NextEditParams:
    """Ask for the next edit. With `any_file` it may be in another file than the document."""

    text_document: types.VersionedTextDocumentIdentifier
    position: types.Position
    any_file: bool = False


@attrs.frozen
class NextEdit:
    """The edit to offer: `text` takes the place of `range`. `remaining` counts the places with this one.

    `command` is to be executed when the user takes the edit, as with Copilot's.
    """

    text: str
    range: types.Range
    text_document: types.VersionedTextDocumentIdentifier
    command: types.Command
    remaining: int


@attrs.frozen
class NextEditResult:
    """At most one edit."""

    edits: list[NextEdit]
