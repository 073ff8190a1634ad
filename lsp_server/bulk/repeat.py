"""The actions that follow from the newest edit: repeat it wherever its rule fits, or adapt what it pasted.

The rule of each document's recent edits is found in the background after each change.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from pathlib import PurePath
from typing import Any, TypeVar, TypeVarTuple

import attrs

from engine.errors import MidspanError
from lsp_server.bulk.action import Draft, DraftFile, MenuItem, NotApplied, Selection, Work
from lsp_server.bulk.project_files import ProjectFiles
from lsp_server.documents.edits import RecentEdit
from lsp_server.documents.store import Snapshot
from lsp_server.languages.language import Language
from lsp_server.languages.registry import language_for
from lsp_server.refactor.edit.blocks import Block
from lsp_server.refactor.edit.file_edit import FileEdit, counted
from lsp_server.refactor.edit.rewrite import fits_language, rewrite
from lsp_server.refactor.paste import adapted, is_paste
from lsp_server.refactor.places.doubts import TO_CHOOSE
from lsp_server.refactor.recent import RecentPlaces, RecentRules, former_places, found_in, recent_places
from lsp_server.refactor.rivals import found_rivals
from lsp_server.refactor.rules.rule import RuleSet
from lsp_server.refactor.search import Caps, Found, Progress, search
from lsp_server.refactor.worker import Worker, WorkerFailed
from lsp_server.session import Session
from lsp_server.wire import ActionName, ScopeName

_logger = logging.getLogger(__name__)
_Arguments = TypeVarTuple("_Arguments")
_Result = TypeVar("_Result")

_PAUSE_S = 0.1
"""A rule is looked for when there was no key for so long."""


@attrs.frozen
class KnownRule:
    """The rules of recent edits, and the places that they have in a version of a document.

    `lines` are those of the newest edit, empty if it is in another document. `reason` says where it is.
    """

    version: int
    places: RecentPlaces
    lines: range
    reason: str

    @property
    def recent(self) -> RecentRules:
        """The rules."""
        return self.places.recent

    @property
    def found(self) -> Found:
        """The places, as blocks."""
        return self.places.found


@attrs.define
class _RuleSearch:
    """The search for a document's rule. It begins after `delay`; `has_failed`: because the worker process ended."""

    delay: asyncio.TimerHandle | None = None
    running: asyncio.Task[None] | None = None
    known: KnownRule | None = None
    has_failed: bool = False

    def stop(self) -> None:
        for part in (self.delay, self.running):
            if part is not None:
                part.cancel()


class RecentRule:
    """Keeps the rule of the current version of each document, where there is one.

    In a document without a rule of its own the rule of the document that gave one last is known.
    """

    def __init__(self, session: Session, worker: Worker) -> None:
        self._session = session
        self._worker = worker
        self._searches: dict[str, _RuleSearch] = {}
        self._last: tuple[str, KnownRule] | None = None

    def changed(self, uri: str) -> None:
        """Look for a rule when the document has not changed for a moment."""
        self.forget(uri)
        self._of(uri).delay = asyncio.get_running_loop().call_later(_PAUSE_S, self._start, uri)

    def forget(self, uri: str) -> None:
        """Drop what is known of a document."""
        if self._last is not None and self._last[0] == uri:
            self._last = None
        if (search := self._searches.pop(uri, None)) is not None:
            search.stop()

    async def find(self, snapshot: Snapshot, patience_s: float | None = None) -> KnownRule | None:
        """Return the rule of this version, waiting until it is found, or for so many seconds."""
        self._hurry(snapshot.uri)
        if self._of(snapshot.uri).running is None and self._at(snapshot) is None:
            self._borrow(snapshot)
        return await self._awaited(snapshot, patience_s)

    async def find_own(self, snapshot: Snapshot) -> KnownRule | None:
        """Return the rule that this document's own newest edit gives, waiting until it is found."""
        self._hurry(snapshot.uri)
        known = await self._awaited(snapshot)
        return known if known is not None and known.lines else None

    async def find_former(self, snapshot: Snapshot) -> KnownRule | None:
        """Return the rule of an edit before the newest one, which gives none: the user still means that one."""
        edits = snapshot.edits.all
        if not edits or edits[-1].after != snapshot.text:
            return None
        answer = await self._asked(snapshot, former_places, edits, snapshot.language.id, snapshot.path)
        if answer is None:
            return None
        return KnownRule(snapshot.version, answer, range(0), "as in an earlier edit")

    def _of(self, uri: str) -> _RuleSearch:
        return self._searches.setdefault(uri, _RuleSearch())

    def _hurry(self, uri: str) -> None:
        """Look for a rule now, if that is to come or has failed."""
        search = self._of(uri)
        if search.delay is not None or search.has_failed:
            self._start(uri)

    async def _awaited(self, snapshot: Snapshot, patience_s: float | None = None) -> KnownRule | None:
        if (running := self._of(snapshot.uri).running) is not None:
            await asyncio.wait({running}, timeout=patience_s)
        return self._at(snapshot)

    def _at(self, snapshot: Snapshot) -> KnownRule | None:
        known = self._of(snapshot.uri).known
        if known is None or known.version != snapshot.version:
            return None
        is_borrowed = not known.lines
        return None if is_borrowed and (self._last is None or self._last[1].recent is not known.recent) else known

    def _start(self, uri: str) -> None:
        search = self._of(uri)
        if search.delay is not None:
            search.delay.cancel()
        search.delay, search.has_failed = None, False
        snapshot = self._session.documents.snapshot(uri)
        if snapshot is None or snapshot.language.grammar is None or self._session.why_excluded(snapshot) is not None:
            return
        edits = snapshot.edits.all
        if edits and edits[-1].after == snapshot.text and edits[-1].may_be_example:
            self._run(uri, self._find(snapshot))

    def _borrow(self, snapshot: Snapshot) -> None:
        """Look for places of another document's rule."""
        if self._last is not None and self._last[0] != snapshot.uri and snapshot.language.grammar is not None:
            known = self._last[1]
            if any(fits_language(rule, snapshot.language) for rule in known.recent.rules.rules):
                self._run(snapshot.uri, self._find_borrowed(snapshot, known))

    def _run(self, uri: str, finding: Coroutine[Any, Any, None]) -> None:
        search, task = self._of(uri), asyncio.create_task(finding)

        def ended(_: object) -> None:
            if search.running is task:
                search.running = None

        search.running = task
        task.add_done_callback(ended)

    async def _find(self, snapshot: Snapshot) -> None:
        edits, lines = snapshot.edits.all, snapshot.source.lines
        answer = await self._asked(snapshot, recent_places, edits, snapshot.language.id, snapshot.path)
        if answer is not None:
            touched = range(lines.at(edits[-1].start), lines.at(edits[-1].end) + 1)
            reason = f"as in {PurePath(snapshot.path).name}:{touched[0] + 1}"
            known = self._of(snapshot.uri).known = KnownRule(snapshot.version, answer, touched, reason)
            self._last = snapshot.uri, known

    async def _find_borrowed(self, snapshot: Snapshot, known: KnownRule) -> None:
        rules = known.recent.rules
        found = await self._asked(snapshot, found_in, rules, snapshot.text, snapshot.language.id, snapshot.path)
        if found is not None:
            places = RecentPlaces(known.recent, found)
            self._of(snapshot.uri).known = attrs.evolve(known, version=snapshot.version, places=places, lines=range(0))

    async def _asked(
        self, snapshot: Snapshot, function: Callable[[*_Arguments], _Result | None], *args: *_Arguments
    ) -> _Result | None:
        try:
            return await self._worker.run(function, *args)
        except MidspanError as error:
            self._of(snapshot.uri).has_failed = True
            _logger.warning("no rule of the recent edits: %s", error)
            return None


_PATIENCE_S = 0.25
"""A menu waits so long for the rule of an edit that was just made: its process may have to start."""


@attrs.frozen
class Repeat:
    """Repeats the newest edit of a document in the file, or in the workspace."""

    _session: Session
    _rules: RecentRule
    name: ActionName = "repeat"
    kind: str = "refactor.rewrite.midspan.repeat"
    by_model: bool = False
    only_invoked: bool = False

    async def offers(self, selection: Selection) -> Sequence[MenuItem]:
        """Offer it on the lines of the edit, and on those of each place that fits."""
        known = await self._rules.find(selection.snapshot, _PATIENCE_S)
        if known is None or not _is_at(selection, known):
            return []
        places = len(known.found.blocks)
        offers: list[MenuItem] = []
        if places:
            offers.append(MenuItem("file", f"Repeat this edit in this file ({counted(places, 'place')})"))
        if self._session.memory.folders.workspaces and not known.recent.is_of_file:
            offers.append(MenuItem("workspace", "Repeat this edit in the workspace"))
        return offers

    async def draft(self, selection: Selection, scope: ScopeName, work: Work) -> Draft:
        """Return the places of the file, or search the workspace."""
        snapshot = selection.snapshot
        known = await self._rules.find(snapshot) or await self._rules.find_former(snapshot)
        if known is None:
            raise NotApplied("the last edit gives no rule to repeat; change a call, an expression or a statement")
        rules, reached = known.recent.rules, list[str]()
        drafts = [DraftFile.found(snapshot.uri, PurePath(snapshot.path).name, known.found, known.reason)]
        if scope == "workspace":
            files = await asyncio.to_thread(ProjectFiles.of, self._session)
            rules = attrs.evolve(rules, wide=known.recent.wide)
            rules, found, reached = await _search(rules, files, snapshot, work)
            for one in found:
                uri, path = files.uri(one.target), files.shown_path(one.target)
                if uri != snapshot.uri:
                    drafts.append(DraftFile.found(uri, path, one, known.reason))
                else:  # the search does not know what the user did in this document, but who else has a renamed member
                    here = one if known.recent.is_rename else _with_wide(known.found, one)
                    drafts[0] = DraftFile.found(uri, path, here, known.reason)
        fitting = [(file.uri, block) for file in drafts for block in file.blocks if not block.wide]
        doubtful = sum(block.doubtful for _, block in fitting)
        changed = counted(len({uri for uri, _ in fitting}), "file")
        title = f"Repeat this edit: {counted(len(fitting), 'place')} in {changed}"
        title += f", {doubtful:,} of them doubtful" if doubtful else ""
        narrow = Narrowing(rules, snapshot.uri, snapshot.language).narrow
        return Draft(title, known.recent.name, tuple(drafts), tuple(reached), narrow=narrow)


@attrs.frozen
class Narrowing:
    """Makes an edit of some places of a file. `language` is that of the document `uri`; a path says that of others."""

    rules: RuleSet
    uri: str
    language: Language

    def narrow(self, file: DraftFile, text: str) -> FileEdit:
        """Return the edit of the blocks of a file. The imports follow what is chosen."""
        spans = {span for block in file.blocks for span in block.spans}
        language = self.language if file.uri == self.uri else language_for("", file.path)
        edit = rewrite(self.rules, file.edit.path, text, language, spans, TO_CHOOSE)
        if set(edit.places) != spans:
            raise NotApplied(f"{file.path}: the chosen places alone would have a syntax error; choose all of this file")
        return edit


def _with_wide(here: Found, searched: Found) -> Found:
    """Return what is known of a document, with the wide places that a search of it found."""
    wide = [one for one in searched.edit.doubtful if one.doubt == "wide"]
    left_out = [one for one in searched.edit.left_out if one.doubt == "wide"]
    spans, own = {one.span for one in wide}, {row for block in here.blocks for row in _rows(block)}
    more = [block for block in searched.blocks if spans.issuperset(block.spans) and own.isdisjoint(_rows(block))]
    edit = attrs.evolve(
        here.edit,
        digest=searched.edit.digest,
        left_out=(*here.edit.left_out, *left_out),
        doubtful=(*here.edit.doubtful, *wide),
    )
    blocks = tuple(sorted((*here.blocks, *more), key=lambda block: block.line))
    return attrs.evolve(here, target=searched.target, edit=edit, blocks=blocks)


def _rows(block: Block) -> range:
    return range(block.line, block.line + block.before.count("\n") + 1)


def _is_at(selection: Selection, known: KnownRule) -> bool:
    return selection.touches(known.lines, *map(_rows, known.found.blocks))


async def _search(
    rules: RuleSet, files: ProjectFiles, snapshot: Snapshot, work: Work
) -> tuple[RuleSet, list[Found], list[str]]:
    """Return the rules as other files have them, the files in which they fit, and the caps that ended the search."""

    def report(progress: Progress) -> None:
        done = f"{progress.searched:,} of {counted(progress.files, 'file')}"
        percentage = 100 * progress.searched // max(progress.files, 1)
        work.report(f"{done}, {counted(progress.places, 'place')}", percentage)

    work.report("listing the files")
    targets = await asyncio.to_thread(files.targets, snapshot)
    settings = files.settings
    caps = Caps(settings.refactor_max_files, settings.refactor_max_places, settings.refactor_max_seconds)
    settled = await found_rivals([rules], targets[: caps.files], caps.seconds / 2)
    found, progress = await search(settled, targets, caps, report, few=0, beside=TO_CHOOSE)
    return settled[0], found, progress.reached


_PASTE_PATIENCE_S = 0.1


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
        await asyncio.wait({finding}, timeout=_PASTE_PATIENCE_S)
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
