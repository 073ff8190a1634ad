"""The rule of each document's recent edits, found in the background after each change."""

import asyncio
import logging

import attrs

from lsp_server.bulk.action import Project
from lsp_server.bulk.draft import DraftFile
from lsp_server.documents.recent_edits import RecentEdit
from lsp_server.documents.store import Snapshot
from lsp_server.log import describe
from lsp_server.refactor.example import Example, NoRule
from lsp_server.refactor.learn import learn
from lsp_server.refactor.pattern import RuleSet
from lsp_server.refactor.rewrite import rewrite

_logger = logging.getLogger(__name__)

_PAUSE_S = 0.1
"""A rule is looked for when there was no key for so long."""


@attrs.frozen
class KnownRule:
    """The rule of the newest edit of a version, and the places that it has in the document itself.

    `example` is where that edit is: characters of the version.
    """

    version: int
    rules: RuleSet
    file: DraftFile
    example: tuple[int, int]


class KnownRules:
    """Keeps the rule of the current version of each document, where there is one."""

    def __init__(self, project: Project) -> None:
        self._project = project
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

    def known(self, snapshot: Snapshot) -> KnownRule | None:
        """Return what is known of this version by now."""
        known = self._known.get(snapshot.uri)
        return known if known is not None and known.version == snapshot.version else None

    async def find(self, snapshot: Snapshot, patience_s: float | None = None) -> KnownRule | None:
        """Return the rule of this version, waiting until it is found, or for so many seconds."""
        if snapshot.uri in self._delays:
            self._start(snapshot.uri)
        running = self._running.get(snapshot.uri)
        if running is not None:
            await asyncio.wait({running}, timeout=patience_s)
        return self.known(snapshot)

    def _start(self, uri: str) -> None:
        if (delay := self._delays.pop(uri, None)) is not None:
            delay.cancel()
        snapshot = self._project.documents.snapshot(uri)
        if snapshot is None or not snapshot.edits.all or snapshot.language.grammar is None:
            return
        if self._project.why_excluded(snapshot) is not None:
            return
        task = asyncio.create_task(self._find(snapshot))
        self._running[uri] = task
        task.add_done_callback(lambda done: self._running.pop(uri) if self._running.get(uri) is done else None)

    async def _find(self, snapshot: Snapshot) -> None:
        try:
            found = await asyncio.to_thread(_rule_of, snapshot)
        except Exception as error:
            _logger.error("no rule of the recent edits: %s; please report this", describe(error))
            return
        if found is not None:
            self._known[snapshot.uri] = found


def _rule_of(snapshot: Snapshot) -> KnownRule | None:
    edit: RecentEdit = snapshot.edits.all[-1]
    try:
        rules = learn([Example(edit.before, edit.after)], snapshot.language)
    except NoRule:
        return None
    found = rewrite(rules, snapshot.path, snapshot.text, snapshot.language)
    file = DraftFile.of(snapshot.uri, snapshot.path, "", snapshot.text, found)
    return KnownRule(snapshot.version, rules, file, (edit.start, edit.end))
