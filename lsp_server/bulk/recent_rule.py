"""The rule of each document's recent edits, which is looked for in the background after each change."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from pathlib import PurePath
from typing import Any, TypeVar, TypeVarTuple

import attrs

from engine.errors import MidspanError
from lsp_server.documents.store import Snapshot
from lsp_server.refactor.edit.rewrite import fits_language
from lsp_server.refactor.recent import RecentPlaces, RecentRules, former_places, found_in, recent_places
from lsp_server.refactor.search import Found
from lsp_server.refactor.worker import Worker
from lsp_server.session import Session

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
