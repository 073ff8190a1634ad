"""Midspan's actions: offered by textDocument/codeAction, their edits computed, shown and applied.

midspan/bulkEdit shows the places of an edit, midspan/applyBulkEdit applies the chosen ones, codeAction/resolve is for
other editors.
"""

import asyncio
import logging
from collections.abc import Mapping, Sequence

from lsprotocol import types
from pygls.exceptions import JsonRpcException, JsonRpcRequestCancelled
from pygls.lsp.server import LanguageServer

from engine.errors import MidspanError, describe
from lsp_server.bulk.action import Action, Cancelled, Draft, DraftFile, Drafts, MenuItem, NotApplied, Selection, Work
from lsp_server.bulk.fill_slots import FillSlots, Refill
from lsp_server.bulk.repeat import Paste, RecentRule, Repeat
from lsp_server.bulk.workspace_edit import EditForm, Ready, ready
from lsp_server.documents.store import Snapshot, offset_in
from lsp_server.engine_link.progress_bar import ProgressBar
from lsp_server.protocol import MidspanProtocol, refusal
from lsp_server.refactor.edit.file_edit import counted
from lsp_server.refactor.worker import Worker
from lsp_server.requests.next_edit import NextEdits
from lsp_server.requests.registration import EditorReports
from lsp_server.session import PARSE_PATIENCE_S, SHORT_PATIENCE_S, Session
from lsp_server.wire import PREVIEW, RUN_ACTION, ApplyParams, ApplyResult, BulkAction, BulkEdit, BulkEditParams


class BulkWork:
    """Has the actions compute their drafts."""

    def __init__(self, server: LanguageServer, session: Session, actions: Sequence[Action]) -> None:
        self._server = server
        self._session = session
        self._actions = {action.name: action for action in actions}
        self._running: set[Work] = set()

    def cancel_all(self) -> None:
        """Cancel all work: the session ends."""
        for work in self._running:
            work.cancel()

    async def draft(self, asked: BulkAction, token: str | int | None = None) -> Draft:
        """Return what an action would change. `token` is the editor's for its progress bar.

        Raises JsonRpcException with one line: the document changed or is closed, the user cancelled, or there is
        nothing to do.
        """
        action = self._actions.get(asked.action)
        if action is None:
            raise refusal(f"there is no action {asked.action!r}")
        await self._session.settle(asked.uri, PARSE_PATIENCE_S)
        selection = self._selection(asked)
        with ProgressBar(self._server, "Midspan: finding places", cancellable=True, token=token) as bar:
            work = Work(bar)
            self._running.add(work)
            task = work.task = asyncio.create_task(action.draft(selection, asked.scope, work))
            try:
                await asyncio.wait({task})
                if task.cancelled():
                    raise JsonRpcRequestCancelled("cancelled")
                return task.result()
            except Cancelled:
                raise JsonRpcRequestCancelled("cancelled") from None
            except MidspanError as error:
                raise refusal(str(error)) from None
            finally:
                work.cancel()
                self._running.discard(work)
                task.add_done_callback(_forget)

    def _selection(self, asked: BulkAction) -> Selection:
        snapshot = self._session.documents.snapshot(asked.uri)
        reason = self._session.why_unfit(asked.uri) if snapshot is None else self._session.why_excluded(snapshot)
        if reason is not None:
            raise refusal(f"this file is left alone: it {reason}")
        if snapshot is None:
            raise refusal("the file was closed; open it and run the action again")
        if snapshot.version != asked.version:
            # Not ContentModified: editors show nothing of that.
            raise refusal("the file has changed since the action was offered; run the action again")
        return selection_of(snapshot, asked.range, self._session)


def selection_of(snapshot: Snapshot, selected: types.Range, session: Session) -> Selection:
    """Return a range of a document as a selection."""
    start = offset_in(snapshot.source, selected.start, session.encoding)
    end = offset_in(snapshot.source, selected.end, session.encoding)
    return Selection(snapshot, min(start, end), max(start, end))


def _forget(task: "asyncio.Task[Draft]") -> None:
    # A cancelled request leaves its thread to end by itself; nobody else looks at what that raises.
    if not task.cancelled():
        task.exception()


class BulkEdits:
    """Answers the requests about bulk edits. A stale edit is reported and never applied."""

    def __init__(self, server: LanguageServer, session: Session, work: BulkWork) -> None:
        self._server = server
        self._session = session
        self._work = work
        self._drafts = Drafts()

    async def show(self, params: BulkEditParams) -> BulkEdit:
        """Return the places that an action would change, for the user to choose. Raises JsonRpcException."""
        draft = await self._work.draft(params.action, params.work_done_token)
        newline_only = self._session.documents.newline_only
        return await asyncio.to_thread(draft.shown, self._drafts.keep(draft), self._session.encoding, newline_only)

    async def apply(self, params: ApplyParams) -> ApplyResult:
        """Apply the chosen places, all or none."""
        draft = self._drafts.get(params.id)
        if draft is None:
            return ApplyResult(False, "these places are forgotten by now; run the action again")
        return await self._apply(draft, [file.confirmed for file in draft.chosen(set(params.places))])

    async def run(self, asked: BulkAction) -> ApplyResult:
        """Compute and apply an action, for editors without previews: all places that are sure."""
        draft = await self._work.draft(asked)
        result = await self._apply(draft, draft.chosen(draft.sure))
        kind = types.MessageType.Info if result.applied else types.MessageType.Warning
        self._server.window_show_message(types.ShowMessageParams(kind, f"Midspan: {result.message}"))
        return result

    async def workspace_edit(self, asked: BulkAction) -> types.WorkspaceEdit:
        """Return the edit of an action, for codeAction/resolve. Raises JsonRpcException."""
        draft = await self._work.draft(asked)
        form = self._form
        ids = draft.fitting if form.annotations else draft.sure
        chosen = draft.chosen(ids)
        try:
            if not chosen:
                raise NotApplied("no other place fits" + _left_out(draft))
            edit = form.workspace_edit(await self._ready(draft, chosen), draft.title)
        except MidspanError as error:
            raise refusal(str(error)) from None
        if notes := _left_out(draft, places=sum(len(one.blocks) for one in chosen)):
            self._server.window_show_message(
                types.ShowMessageParams(types.MessageType.Info, f"Midspan: {draft.title}{notes}")
            )
        return edit

    async def _apply(self, draft: Draft, chosen: Sequence[DraftFile]) -> ApplyResult:
        if not chosen:
            return ApplyResult(False, "no place is chosen")
        try:
            edit = self._form.workspace_edit(await self._ready(draft, chosen), draft.title)
        except MidspanError as error:
            return ApplyResult(False, str(error))
        metadata = types.WorkspaceEditMetadata(is_refactoring=True)
        params = types.ApplyWorkspaceEditParams(edit, draft.title, metadata if self._form.metadata else None)
        try:
            answer = await self._server.workspace_apply_edit_async(params)
        except JsonRpcException as error:
            return ApplyResult(False, f"the editor answered with an error ({error.code}); see whether it made the edit")
        if not answer.applied:
            said = f": {answer.failure_reason}" if answer.failure_reason else ""
            return ApplyResult(False, f"the editor did not apply the edit{said}")
        places = counted(sum(len(one.blocks) for one in chosen), "place")
        return ApplyResult(True, f"{places} in {counted(len({one.uri for one in chosen}), 'file')} changed")

    async def _ready(self, draft: Draft, chosen: Sequence[DraftFile]) -> list[Ready]:
        """Return the edits for the texts as they are now. Raises NotApplied if one is not what it was."""
        files = await asyncio.to_thread(ready, chosen, draft.narrow, self._session.documents)
        versions = {document.uri: document.version for document in self._session.documents.all()}
        for one in files:
            if versions.get(one.uri) != one.version:
                raise NotApplied("a file changed while the edit was made; run the action again")
        return files

    @property
    def _form(self) -> EditForm:
        return EditForm.of(self._server.client_capabilities, self._session.encoding)


def _left_out(draft: Draft, places: int | None = None) -> str:
    """Return what the user should know besides the edit, as the end of a line."""
    notes = [*draft.reached]
    doubtful = draft.places - places if places is not None and not draft.exclusive else 0
    if draft.left_out:
        notes.append(f"{counted(draft.left_out, 'place')} left out")
    if doubtful:
        notes.append(f"{counted(doubtful, 'doubtful place')} not changed")
    if draft.wide and places is not None:
        notes.append(f"{counted(draft.wide, 'wide place')} not changed")
    return "".join(f"; {note}" for note in notes)


_logger = logging.getLogger(__name__)


class CodeActions:
    """Offers the actions in the form that the editor understands."""

    def __init__(
        self, protocol: MidspanProtocol, session: Session, actions: Sequence[Action], edits: BulkEdits
    ) -> None:
        self._protocol = protocol
        self._session = session
        self._actions = actions
        self._edits = edits

    async def offer(self, params: types.CodeActionParams) -> list[types.Command | types.CodeAction]:
        """Return the actions for a selection. Nothing is searched for them."""
        await self._session.settle(params.text_document.uri, SHORT_PATIENCE_S)
        snapshot = self._session.documents.snapshot(params.text_document.uri)
        if snapshot is None or self._session.why_excluded(snapshot) is not None:
            return []
        selection = selection_of(snapshot, params.range, self._session)
        automatic = params.context.trigger_kind == types.CodeActionTriggerKind.Automatic
        wanted = [
            action
            for action in self._actions
            if _is_wanted(action.kind, params.context.only) and not (automatic and action.only_invoked)
        ]
        offers = await asyncio.gather(*(_offers(action, selection) for action in wanted))
        return [
            self._item(
                action, offer, BulkAction(action.name, offer.scope, snapshot.uri, snapshot.version, params.range)
            )
            for action, offered in zip(wanted, offers, strict=True)
            for offer in offered
        ]

    async def resolve(self, item: types.CodeAction) -> types.CodeAction:
        """Return an action with its edit."""
        if item.data is not None:
            asked = self._protocol.from_json(item.data, BulkAction)
            item.edit = await self._edits.workspace_edit(asked)
        return item

    def _item(self, action: Action, offer: MenuItem, asked: BulkAction) -> types.Command | types.CodeAction:
        data, capabilities = self._protocol.as_json(asked), self._capabilities
        if capabilities is None or capabilities.code_action_literal_support is None:
            return types.Command(offer.title, RUN_ACTION, arguments=[data])
        item = types.CodeAction(offer.title, action.kind)
        if action.by_model and capabilities.tag_support is not None:
            item.tags = [types.CodeActionTag.LlmGenerated]
        resolve = capabilities.resolve_support
        if self._has_preview:
            item.command = types.Command(offer.title, PREVIEW, arguments=[data])
        elif resolve is not None and "edit" in resolve.properties and capabilities.data_support:
            item.data = data
        else:
            item.command = types.Command(offer.title, RUN_ACTION, arguments=[data])
        return item

    @property
    def _capabilities(self) -> types.CodeActionClientCapabilities | None:
        document = self._protocol.client_capabilities.text_document
        return document.code_action if document is not None else None

    @property
    def _has_preview(self) -> bool:
        experimental = self._protocol.client_capabilities.experimental
        return isinstance(experimental, Mapping) and experimental.get("midspanPreview") is True


async def _offers(action: Action, selection: Selection) -> Sequence[MenuItem]:
    try:
        return await action.offers(selection)
    except Exception as error:
        _logger.error("the action %s is not offered: %s; please report this", action.name, describe(error))
        return []


def _is_wanted(kind: str, only: Sequence[types.CodeActionKind | str] | None) -> bool:
    """Return whether the editor wants actions of a kind: kinds are names with dots, from the general to the special."""
    if only is None:
        return True
    names = [one.value if isinstance(one, types.CodeActionKind) else one for one in only]
    return any(not name or kind == name or kind.startswith(f"{name}.") for name in names)


class EditFeatures:
    """What follows the user's edits in a session: code actions with their previews, and the next edit.

    Its modules take a tenth of a second to load, so LateEdits loads them once the server has started.
    """

    def __init__(self, server: LanguageServer, protocol: MidspanProtocol, session: Session) -> None:
        self._worker = Worker()
        self._rules = RecentRule(session, self._worker)
        # In the order of the menu.
        actions: list[Action] = [
            Repeat(session, self._rules),
            Paste(session, self._worker),
            FillSlots(session, "stubs"),
            FillSlots(session, "annotations"),
            FillSlots(session, "docstrings"),
            Refill(session),
        ]
        self._work = BulkWork(server, session, actions)
        self.next_edits = NextEdits(session, self._worker, self._rules, EditorReports(protocol).of)
        self.bulk_edits = BulkEdits(server, session, self._work)
        self.code_actions = CodeActions(protocol, session, actions, self.bulk_edits)
        session.on_change += self.next_edits.changed, self._rules.changed
        session.on_close += self._rules.forget, self.next_edits.closed
        for document in session.documents.all():
            self.next_edits.changed(document.uri)
            self._rules.changed(document.uri)

    async def close(self) -> None:
        """Cancel all work, and end the worker processes."""
        self._work.cancel_all()
        await self._worker.close()
        await self.next_edits.close()
