"""textDocument/codeAction: the actions that a selection is offered, and all features that follow the user's edits."""

import asyncio
import logging
from collections.abc import Mapping, Sequence

from lsprotocol import types
from pygls.lsp.server import LanguageServer

from engine.errors import describe
from lsp_server.bulk.action import Action, MenuItem, Selection
from lsp_server.bulk.fill_slots import FillSlots, Refill
from lsp_server.bulk.paste import Paste
from lsp_server.bulk.recent_rule import RecentRule
from lsp_server.bulk.repeat import Repeat
from lsp_server.protocol import MidspanProtocol
from lsp_server.refactor.worker import Worker
from lsp_server.requests.bulk_edits import BulkEdits, BulkWork, selection_of
from lsp_server.requests.next_edit import NextEdits
from lsp_server.requests.registration import EditorReports
from lsp_server.session import SHORT_PATIENCE_S, Session
from lsp_server.wire import PREVIEW, RUN_ACTION, BulkAction

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
