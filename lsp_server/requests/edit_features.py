"""Bulk edits and the next edit of one session. Their modules take a tenth of a second to load (see late_edits.py)."""

from pygls.lsp.server import LanguageServer

from lsp_server.bulk.action import Action
from lsp_server.bulk.fill_slots import FillSlots
from lsp_server.bulk.paste import Paste
from lsp_server.bulk.recent_rule import RecentRule
from lsp_server.bulk.refill import Refill
from lsp_server.bulk.repeat import Repeat
from lsp_server.protocol import MidspanProtocol
from lsp_server.refactor.worker import Worker
from lsp_server.requests.code_actions import BulkEdits, BulkWork, CodeActions
from lsp_server.requests.next_edit import NextEdits
from lsp_server.session import Session


class EditFeatures:
    """What follows the user's edits: code actions with their previews, and the next edit."""

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
        self.next_edits = NextEdits(session, self._worker, self._rules)
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
