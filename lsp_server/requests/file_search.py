"""The files of a workspace in which the rule of the last edit fits too. The nearest are found first."""

import asyncio
import logging
import time
from collections.abc import Callable

from engine.errors import MidspanError, describe
from lsp_server.bulk.project_files import ProjectFiles
from lsp_server.documents.store import Snapshot
from lsp_server.refactor.pending import PendingFile
from lsp_server.refactor.recent import places_of_files
from lsp_server.refactor.rivals import has_renames, with_rivals
from lsp_server.refactor.rules.rule import RuleSet
from lsp_server.refactor.search import Target
from lsp_server.refactor.worker import Worker
from lsp_server.session import Session

_logger = logging.getLogger(__name__)
_CHUNK = 16
_MOST_FILES = 5_000
_MOST_FOUND = 50
"""So many files with places are known at a time."""
_MOST_SECONDS = 30.0


class FileSearch:
    """Finds the files of a workspace in which rules fit, the nearest first, and adds them to `files` by URI."""

    def __init__(self, session: Session, worker: Worker, rules: RuleSet, files: dict[str, PendingFile]) -> None:
        self._session, self._worker, self._rules, self._files = session, worker, rules, files
        self._task: asyncio.Task[None] | None = None
        self._settling: asyncio.Task[RuleSet] | None = None
        self._news = asyncio.Event()

    def begin(self, snapshot: Snapshot) -> None:
        """Begin the search, unless it has begun. Files near the document come first."""
        if self._task is None:
            self._task = asyncio.create_task(self._run(snapshot))
            self._task.add_done_callback(lambda _: self._news.set())

    def stop(self) -> None:
        """End the search."""
        for task in (self._task, self._settling):
            if task is not None:
                task.cancel()

    async def rules(self, snapshot: Snapshot) -> RuleSet:
        """Return the rules for other files: of a renamed member, who else has it is looked for first."""
        if self._settling is None:
            self._settling = asyncio.create_task(self._settled(snapshot))
        return await asyncio.shield(self._settling)

    async def _settled(self, snapshot: Snapshot) -> RuleSet:
        if not has_renames([self._rules]):
            return self._rules
        targets, _ = await asyncio.to_thread(self._targets, snapshot)
        return (await self._worker.run(with_rivals, [self._rules], targets[:_MOST_FILES], _MOST_SECONDS / 2))[0]

    async def first(self, is_wanted: Callable[[str], bool]) -> str | None:
        """Return the first wanted file that has places left, waiting until one is found or all are searched."""
        while True:
            self._news.clear()
            found = next((uri for uri, file in self._files.items() if file.count and is_wanted(uri)), None)
            if found is not None or self._task is None or self._task.done():
                return found
            await self._news.wait()

    async def _run(self, snapshot: Snapshot) -> None:
        try:
            await self._search(snapshot)
        except (MidspanError, OSError) as error:
            _logger.warning("the search for the next edit ended: %s", describe(error))

    async def _search(self, snapshot: Snapshot) -> None:
        rules = await self.rules(snapshot)
        targets, files = await asyncio.to_thread(self._targets, snapshot)
        deadline, known = time.monotonic() + _MOST_SECONDS, len(self._files)
        for start in range(0, min(len(targets), _MOST_FILES), _CHUNK):
            chunk = [one for one in targets[start : start + _CHUNK] if files.uri(one) not in self._files]
            if time.monotonic() > deadline or len(self._files) - known >= _MOST_FOUND:
                return
            for number, text, places in await self._worker.run(places_of_files, rules, chunk):
                uri = files.uri(chunk[number])
                self._files[uri] = PendingFile.of(text, places)
                self._news.set()

    def _targets(self, snapshot: Snapshot) -> tuple[list[Target], ProjectFiles]:
        """Return the files to search, with what names them. Reads the disk."""
        files = ProjectFiles.of(self._session)
        return files.targets(snapshot), files
