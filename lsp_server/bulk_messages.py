"""The messages of bulk edits: what a code action would change, place by place, and which of it the user wants.

An editor that shows the places itself says so in initialize: `{"midspanPreview": true}` in
capabilities.experimental. Then a code action has the client's command midspan.preview, with its BulkAction as argument.
The client sends it back in midspan/bulkEdit, shows the places, and sends the chosen ones in midspan/applyBulkEdit. The
server applies them by workspace/applyEdit. Any other editor gets the edit by codeAction/resolve, or has the server
apply it by the command midspan.runAction.

The next edit is asked for as Copilot's clients do it: textDocument/copilotInlineEdit.
"""

from typing import Literal

import attrs
from lsprotocol import types

BULK_EDIT = "midspan/bulkEdit"
RUN_ACTION = "midspan.runAction"
APPLY_BULK_EDIT = "midspan/applyBulkEdit"
PREVIEW = "midspan.preview"
NEXT_EDIT = "textDocument/copilotInlineEdit"
NEXT_EDIT_SHOWN = "textDocument/didShowInlineEdit"
NEXT_EDIT_ACCEPTED = "midspan.nextEditAccepted"
NEXT_EDIT_DISMISSED = "midspan.nextEditDismissed"

ActionName = Literal["repeat", "stubs", "annotations", "docstrings", "refill", "paste"]
ScopeName = Literal["selection", "file", "workspace"]


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
class BulkEditRequest:
    """The JSON-RPC request around BulkEditParams."""

    id: int | str
    params: BulkEditParams
    method: str = BULK_EDIT
    jsonrpc: str = "2.0"


@attrs.frozen
class BulkPlace:
    """One place that changes. `before` and `after` are its whole lines, without the last line end.

    `range` is the place in the text before the edit. `reason` is a phrase such as "as in app.py:12". A `doubtful` place
    is to be asked about, and not ticked.
    """

    id: int
    uri: str
    path: str
    range: types.Range
    before: str
    after: str
    reason: str = ""
    doubtful: bool = False


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
class ApplyRequest:
    """The JSON-RPC request around ApplyParams."""

    id: int | str
    params: ApplyParams
    method: str = APPLY_BULK_EDIT
    jsonrpc: str = "2.0"


@attrs.frozen
class ApplyResult:
    """Whether the edit was applied, and one line for the user: what was changed, or why nothing was."""

    applied: bool
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


@attrs.frozen
class NextEditRequest:
    """The JSON-RPC request around NextEditParams."""

    id: int | str
    params: NextEditParams
    method: str = NEXT_EDIT
    jsonrpc: str = "2.0"
