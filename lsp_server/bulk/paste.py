"""The action that adapts what the newest edit pasted."""

import asyncio
from collections.abc import Sequence
from pathlib import PurePath

import attrs

from lsp_server.bulk.action import Draft, DraftFile, MenuItem, NotApplied, Selection, Work
from lsp_server.documents.edits import RecentEdit
from lsp_server.documents.store import Snapshot
from lsp_server.refactor.edit.file_edit import FileEdit
from lsp_server.refactor.paste import adapted, is_paste
from lsp_server.refactor.worker import Worker, WorkerFailed
from lsp_server.session import Session
from lsp_server.wire import ActionName, ScopeName

_PATIENCE_S = 0.1


@attrs.define
class Paste:
    """Adapts the lines that the newest edit of a document pasted."""

    _session: Session
    _worker: Worker
    name: ActionName = "paste"
    kind: str = "refactor.rewrite.midspan.paste"
    by_model: bool = False
    only_invoked: bool = False
    _known: tuple[Snapshot, asyncio.Task[FileEdit]] | None = None

    async def offers(self, selection: Selection) -> Sequence[MenuItem]:
        """Offer it on the pasted lines, if there is anything to change."""
        snapshot = selection.snapshot
        pasted = _pasted(snapshot)
        if pasted is None or self._session.why_excluded(snapshot) is not None:
            return []
        lines = snapshot.source.lines
        if not selection.touches(range(lines.at(pasted.start), lines.at(pasted.end) + 1)):
            return []
        finding = self._find(snapshot, pasted)
        await asyncio.wait({finding}, timeout=_PATIENCE_S)
        has_edits = finding.done() and finding.exception() is None and bool(finding.result().edits)
        return [MenuItem("selection", "Adapt the pasted code to this file")] if has_edits else []

    async def draft(self, selection: Selection, scope: ScopeName, work: Work) -> Draft:
        """Return the pasted lines as they would be."""
        snapshot = selection.snapshot
        pasted = _pasted(snapshot)
        if pasted is None:
            raise NotApplied("the newest edit pasted nothing; paste some lines and run the action on them")
        try:
            # The menu looks at the same task, so that must not be cancelled with this one.
            edit = await asyncio.shield(self._find(snapshot, pasted))
        except WorkerFailed as error:
            raise NotApplied(f"{error}") from None
        if not edit.edits:
            raise NotApplied("nothing in the pasted code can be adapted without a doubt; it stays as it is")
        path = self._session.memory.folders.place_of(snapshot.path)
        shown = path.path if path is not None else PurePath(snapshot.path).name
        file = DraftFile.of(snapshot, shown, edit, "as the code around it")
        return Draft("Adapt the pasted code", "", (file,))

    def _find(self, snapshot: Snapshot, pasted: RecentEdit) -> "asyncio.Task[FileEdit]":
        known = self._known
        if known is None or known[0] is not snapshot or (known[1].done() and known[1].exception() is not None):
            finding = asyncio.ensure_future(self._worker.run(adapted, pasted, snapshot.language.id, snapshot.path))
            known = self._known = snapshot, finding
        return known[1]


def _pasted(snapshot: Snapshot) -> RecentEdit | None:
    newest = snapshot.edits.newest
    is_newest = newest is not None and newest.after == snapshot.text and snapshot.language.grammar is not None
    return newest if newest is not None and is_newest and is_paste(newest) else None
