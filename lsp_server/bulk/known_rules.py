"""The rule of each document's recent edits, found in the background after each change."""

import asyncio
import logging

import attrs

from engine.errors import MidspanError
from lsp_server.bulk.action import Project
from lsp_server.bulk.found_file import FoundFile, recent_places
from lsp_server.documents.store import Snapshot
from lsp_server.refactor.pattern import RuleSet
from lsp_server.refactor.worker import Worker

_logger = logging.getLogger(__name__)

_PAUSE_S = 0.1
"""A rule is looked for when there was no key for so long."""


@attrs.frozen
class KnownRule:
    """The rule of the newest edits of a version, its `name` as code, and the places that it has in the document.

    `example` is where the newest edit is: characters of the version.
    """

    version: int
    rules: RuleSet
    name: str
    file: FoundFile
    example: tuple[int, int]


class KnownRules:
    """Keeps the rule of the current version of each document, where there is one."""

    def __init__(self, project: Project, worker: Worker) -> None:
        self._project = project
        self._worker = worker
        self._known: dict[str, KnownRule] = {}
        self._delays: dict[str, asyncio.TimerHandle] = {}
        self._running: dict[str, asyncio.Task[None]] = {}

    def changed(self, uri: str) -> None:
        """Look for a rule when the document has not changed for a moment."""
        self.forget(uri)
        self._delays[uri] = asyncio.get_running_loop().call_later(_PAUSE_S, self._start, uri)

    def forget(self, uri: str) -> None:
        """Drop what is known of a document."""
        self._known.pop(uri, None)
        if (delay := self._delays.pop(uri, None)) is not None:
            delay.cancel()
        if (running := self._running.pop(uri, None)) is not None:
            running.cancel()

    async def find(self, snapshot: Snapshot, patience_s: float | None = None) -> KnownRule | None:
        """Return the rule of this version, waiting until it is found, or for so many seconds."""
        if snapshot.uri in self._delays:
            self._start(snapshot.uri)
        running = self._running.get(snapshot.uri)
        if running is not None:
            await asyncio.wait({running}, timeout=patience_s)
        known = self._known.get(snapshot.uri)
        return known if known is not None and known.version == snapshot.version else None

    def _start(self, uri: str) -> None:
        if (delay := self._delays.pop(uri, None)) is not None:
            delay.cancel()
        snapshot = self._project.documents.snapshot(uri)
        if snapshot is None or snapshot.language.grammar is None or self._project.why_excluded(snapshot) is not None:
            return
        edits = snapshot.edits.all
        if not edits or edits[-1].after != snapshot.text:
            return
        task = asyncio.create_task(self._find(snapshot))
        self._running[uri] = task
        task.add_done_callback(lambda done: self._running.pop(uri) if self._running.get(uri) is done else None)

    async def _find(self, snapshot: Snapshot) -> None:
        edits = snapshot.edits.all
        try:
            found = await self._worker.run(recent_places, edits, snapshot.language.id, snapshot.path)
        except MidspanError as error:
            _logger.warning("no rule of the recent edits: %s", error)
            return
        if found is not None:
            recent, example = found.recent, (edits[-1].start, edits[-1].end)
            self._known[snapshot.uri] = KnownRule(snapshot.version, recent.rules, recent.name, found.file, example)
