"""The requests about bulk edits: their places are shown, the chosen ones are applied.

midspan/bulkEdit shows the places of an edit, midspan/applyBulkEdit applies the chosen ones, codeAction/resolve is for
other editors.
"""

import asyncio
from collections.abc import Sequence

from lsprotocol import types
from pygls.exceptions import JsonRpcException, JsonRpcRequestCancelled
from pygls.lsp.server import LanguageServer

from engine.errors import MidspanError
from lsp_server.bulk.action import Action, Cancelled, Draft, DraftFile, Drafts, NotApplied, Selection, Work
from lsp_server.bulk.workspace_edit import EditForm, Ready, ready
from lsp_server.documents.store import Snapshot, offset_in
from lsp_server.engine_link.progress_bar import ProgressBar
from lsp_server.protocol import refusal
from lsp_server.refactor.edit.file_edit import counted
from lsp_server.session import PARSE_PATIENCE_S, Session
from lsp_server.wire import ApplyParams, ApplyResult, BulkAction, BulkEdit, BulkEditParams


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
