"""Bulk edits and the next edit are loaded once the server has started, so that the editor does not wait for them."""

import asyncio
from typing import TYPE_CHECKING, Any

from lsprotocol import types
from pygls.lsp.server import LanguageServer

from lsp_server import wire
from lsp_server.protocol import MidspanProtocol
from lsp_server.requests.session import Session

if TYPE_CHECKING:
    from lsp_server.requests.edit_features import EditFeatures

ACTION_OPTIONS = types.CodeActionOptions(
    code_action_kinds=[types.CodeActionKind.RefactorRewrite, types.CodeActionKind.QuickFix], resolve_provider=True
)


class LateEdits:
    """Loads EditFeatures in a thread, and hands their requests on."""

    def __init__(self, server: LanguageServer, protocol: MidspanProtocol, session: Session) -> None:
        self._server = server
        self._protocol = protocol
        self._session = session
        self._loaded: EditFeatures | None = None
        self._loading: asyncio.Task[EditFeatures] | None = None

    def begin(self) -> "asyncio.Task[EditFeatures]":
        """Begin to load the features, unless that has begun."""
        if self._loading is None:
            self._loading = asyncio.create_task(self._load())
        return self._loading

    async def features(self) -> "EditFeatures":
        """Return the features once they are loaded."""
        return await asyncio.shield(self.begin())

    def changed(self, uri: str) -> None:
        """Note that a document changed."""
        if self._loaded is not None:
            self._loaded.changed(uri)

    def closed(self, uri: str) -> None:
        """Drop a closed document."""
        if self._loaded is not None:
            self._loaded.closed(uri)

    async def close(self) -> None:
        """End all work."""
        if self._loaded is not None:
            await self._loaded.close()

    async def offer_actions(self, params: types.CodeActionParams) -> list[types.Command | types.CodeAction]:
        """Answer textDocument/codeAction."""
        return await (await self.features()).code_actions.offer(params)

    async def resolve_action(self, item: types.CodeAction) -> types.CodeAction:
        """Answer codeAction/resolve."""
        return await (await self.features()).code_actions.resolve(item)

    async def show_bulk_edit(self, params: wire.BulkEditParams) -> wire.BulkEdit:
        """Answer midspan/bulkEdit."""
        return await (await self.features()).bulk_edits.show(params)

    async def apply_bulk_edit(self, params: wire.ApplyParams) -> wire.ApplyResult:
        """Answer midspan/applyBulkEdit."""
        return await (await self.features()).bulk_edits.apply(params)

    async def find_next_edit(self, params: wire.NextEditParams) -> wire.NextEditResult:
        """Answer textDocument/copilotInlineEdit."""
        return await (await self.features()).next_edits.find(params)

    async def run_action(self, asked: wire.BulkAction) -> wire.ApplyResult:
        """Do what a code action says, for editors that cannot ask for its edit."""
        return await (await self.features()).bulk_edits.run(asked)

    async def next_edit_accepted(self, *_: Any) -> None:
        """Go on to the place after the one that the user took."""
        (await self.features()).next_edits.accepted()

    async def next_edit_dismissed(self, *_: Any) -> None:
        """Offer no place of the rule again that is offered now."""
        (await self.features()).next_edits.dismiss()

    async def _load(self) -> "EditFeatures":
        def imported() -> "type[EditFeatures]":
            from lsp_server.requests.edit_features import EditFeatures

            return EditFeatures

        self._loaded = (await asyncio.to_thread(imported))(self._server, self._protocol, self._session)
        for document in self._session.documents.all():
            self._loaded.changed(document.uri)
        return self._loaded
