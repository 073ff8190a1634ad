"""The action "Refill": the selection, or the hole at the cursor, is filled again, with a few answers to choose from."""

import asyncio
from collections.abc import Sequence
from pathlib import PurePath

import attrs

from engine.client.connection import EngineClient
from engine.protocol.messages import Fill, Filled
from lsp_server.bulk.action import MenuItem, Selection, Work
from lsp_server.bulk.draft import Draft, DraftFile, NotApplied
from lsp_server.documents.store import Snapshot
from lsp_server.refactor.file_edit import counted
from lsp_server.session import Session
from lsp_server.settings import Settings
from lsp_server.slots.fill import BESIDE_TYPING, Filler, refill
from lsp_server.suggest.pipeline import Plan
from lsp_server.wire import ActionName, ScopeName

_CLOSING = " \t)]}>;,:\"'`"


@attrs.frozen
class Refill:
    """Offers other text for the selection."""

    _session: Session
    name: ActionName = "refill"
    kind: str = "refactor.rewrite.midspan.refill"
    by_model: bool = True
    only_invoked: bool = True

    async def offers(self, selection: Selection) -> Sequence[MenuItem]:
        """Offer it for a selection with text, and at a cursor in a blank line or before closing brackets.

        In some editors the character under the cursor is always selected.
        """
        snapshot = selection.snapshot
        if not self._session.configuration.is_on(snapshot.language.id):
            return []
        if selection.end - selection.start > 1 and snapshot.text[selection.start : selection.end].strip():
            return [MenuItem("selection", "Refill the selection")]
        source = snapshot.source
        line = source.lines.at(selection.start)
        after = source.text[selection.start : source.line_end(line)].strip()
        is_hole = not source.line_text(line).strip() or (after and not after.strip(_CLOSING))
        return [MenuItem("selection", "Fill this hole")] if is_hole else []

    async def draft(self, selection: Selection, scope: ScopeName, work: Work) -> Draft:
        """Return the answers. Raises NotApplied, and MidspanError if the engine fails."""
        snapshot = selection.snapshot
        client = await self._session.link.client()
        work.report("asking the model")
        filler = filler_of(self._session, client)
        edits = await refill(snapshot, selection.start, selection.end, filler)
        if not edits:
            raise NotApplied("nothing was changed: the model is not sure enough of any answer here")
        name = PurePath(snapshot.path).name
        files = [
            DraftFile.of(snapshot, name, edit.file_edit(with_doubtful=True), edit.places[0].reason) for edit in edits
        ]
        return Draft(f"Refill: {counted(len(files), 'answer')}", "", tuple(files), exclusive=True)


def filler_of(session: Session, client: EngineClient) -> Filler:
    """Return what fills holes with the session's engine, and with all that the session knows."""
    model = client.welcome.model

    def plan(snapshot: Snapshot, offset: int, settings: Settings, candidates: int) -> Plan:
        return session.plan(snapshot, offset, model, settings, candidates)

    async def ask(fill: Fill) -> Filled:
        return await session.link.fill(client, fill)

    return Filler(plan, ask, session.configuration.settings, asyncio.Semaphore(BESIDE_TYPING))
