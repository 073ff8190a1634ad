"""The workspace folders of an editor, and what the engine's memory knows of them: which are learned, from when on."""

import asyncio
import os
import time
from collections.abc import Callable, Coroutine, Iterable, Sequence
from contextlib import AbstractContextManager, suppress
from pathlib import PurePath
from typing import Any

from engine.client.connection import EngineClient
from engine.errors import MidspanError
from engine.protocol.memory_messages import MemoryStatus
from engine.protocol.messages import ModelInfo
from lsp_server.documents.store import Documents, is_file, path_of
from lsp_server.engine_link.link import EngineLink
from lsp_server.engine_link.progress_bar import ProgressBar
from lsp_server.hole.hole import context_budget_of
from lsp_server.settings import Configuration
from lsp_server.workspace.files import Rules
from lsp_server.workspace.learner import FolderLearner, Pace, Surroundings, WorkspaceFile

BUFFER_DELAY_S = 1.0
"""An open document is learned again when it has not changed for this long."""


class Folders:
    """The workspace folders. Paths are compared with all symlinks resolved."""

    def __init__(self) -> None:
        self._names: list[str] = []
        self._real: list[str] = []
        self._opened: dict[str, str] = {}
        """The real paths of open documents: each key asks for one, and a slow mount would keep the event loop."""

    def opened(self, path: str) -> None:
        """Look where the links in an opened document's path lead; that holds until it is opened again."""
        if PurePath(path).is_absolute():
            self._opened[path] = os.path.realpath(path)

    def closed(self, path: str) -> None:
        """Forget a closed document."""
        self._opened.pop(path, None)

    @property
    def names(self) -> Sequence[str]:
        """The folders as the editor names them."""
        return self._names

    @property
    def workspaces(self) -> Sequence[str]:
        """The real paths of the folders."""
        return self._real

    def use(self, names: Iterable[str]) -> None:
        """Use these folders instead of the ones before."""
        self._names = list(names)
        self._real = [name for name in dict.fromkeys(map(os.path.realpath, self._names)) if _is_utf8(name)]

    def place_of(self, path: str) -> WorkspaceFile | None:
        """Return a file as one of the innermost folder that has it; None for a file outside all folders."""
        return next(iter(self.places_of(path)), None)

    def places_of(self, path: str) -> list[WorkspaceFile]:
        """Return a file as one of each folder that has it, the innermost first."""
        if not self._real or not PurePath(path).is_absolute():
            return []
        real = self._opened.get(path) or os.path.realpath(path)
        if not _is_utf8(real):
            return []
        folders = [folder for folder in self._real if real.startswith(folder.rstrip(os.sep) + os.sep)]
        return [
            WorkspaceFile(folder, os.path.relpath(real, folder).replace(os.sep, "/"))
            for folder in sorted(folders, key=len, reverse=True)
        ]


def _is_utf8(path: str) -> bool:
    """Return whether a message can have a real path: a link may lead to a name that is not UTF-8."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


class WorkspaceMemory:
    """One learner a workspace folder. Learning begins with the first fill of a document in the folder.

    The learned text of an open document is that in the editor. A file outside all folders is not learned.
    """

    def __init__(
        self,
        configuration: Configuration,
        documents: Documents,
        link: EngineLink,
        bar: Callable[[], AbstractContextManager[ProgressBar]],
        know: Callable[[MemoryStatus], None],
    ) -> None:
        self.folders = Folders()
        self._configuration = configuration
        self._documents = documents
        self._link = link
        self._around = Surroundings(Pace(), self._buffer, bar, lambda: self._start(self.count()))
        self._know = know
        self._learners: dict[str, FolderLearner] = {}
        self._uris: dict[WorkspaceFile, str] = {}
        self._delays: dict[str, asyncio.TimerHandle] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        link.on_connect(self._connected)

    def begin(self, path: str, model: ModelInfo) -> str:
        """Return the workspace for a fill in the document with this path, and learn its folder from now on.

        Returns "" when the document is outside all folders, and when the settings allow no memory of the workspace.
        """
        place = self._place(path, model)
        if place is None:
            return ""
        if place.workspace not in self._learners and (client := self._link.connected) is not None:
            self._learn(place, client)
        return place.workspace

    def workspace_of(self, path: str, model: ModelInfo) -> str:
        """Return what `begin` does, and learn nothing."""
        place = self._place(path, model)
        return place.workspace if place is not None else ""

    async def count(self) -> None:
        """Ask the engine how much it knows of the folders, and pass that on. Nothing without learned folders."""
        client, folders = self._link.connected, list(self._learners)
        if client is not None and folders:
            with suppress(MidspanError):
                self._know(MemoryStatus.sum([await client.memory_status(folder) for folder in folders]))

    async def wait_until_read(self, path: str) -> None:
        """Wait until the folder of this document is read for the first time, if it is one that is learned."""
        place = self.folders.place_of(path)
        learner = self._learners.get(place.workspace) if place is not None else None
        if learner is not None:
            await learner.first_reading.wait()

    def use_folders(self, names: Iterable[str]) -> None:
        """Use these workspace folders, and forget those that left."""
        self.folders.use(names)
        left = [folder for folder in self._learners if folder not in self.folders.workspaces]
        self._stop([self._learners.pop(folder) for folder in left], forget=True)
        self._uris = {place: document.uri for document in self._documents.all() for place in self._places(document.uri)}

    def use_settings(self) -> None:
        """Follow changed settings: what is excluded now is forgotten at once."""
        client = self._link.connected
        if client is not None and not self._is_allowed(client.welcome.model):
            learners, self._learners = self._learners, {}
            self._stop(list(learners.values()), forget=True)
        for learner in self._learners.values():
            learner.use(self._rules)

    def opened(self, uri: str) -> None:
        """Take an opened document's text instead of the file on the disk."""
        self.folders.opened(path_of(uri))
        for place in self._places(uri):
            self._uris[place] = uri
        self._learn_buffer(uri)

    def changed(self, uri: str) -> None:
        """Learn a changed document when it has not changed for a while."""
        self._around.pace.typed_at = time.monotonic()
        self._cancel_delay(uri)
        if self._learners:
            self._delays[uri] = asyncio.get_running_loop().call_later(BUFFER_DELAY_S, self._learn_buffer, uri)

    def saved(self, uri: str) -> None:
        """Learn a saved document at once."""
        self._learn_buffer(uri)

    def closed(self, uri: str) -> None:
        """Learn a closed document from the disk again: the editor may have dropped changes."""
        self._cancel_delay(uri)
        if all(other.path != path_of(uri) for other in self._documents.all()):  # as the cells of a notebook
            self.folders.closed(path_of(uri))
        for place in [place for place, other in self._uris.items() if other == uri]:
            del self._uris[place]
            if (learner := self._learners.get(place.workspace)) is not None:
                learner.note_changes([place.path])

    def files_changed(self, uris: Iterable[str]) -> None:
        """Look at files and folders again that the editor saw change on the disk."""
        if self._learners:
            self._start(self._note_changes([path_of(uri) for uri in uris if is_file(uri)]))

    async def close(self) -> None:
        """Stop learning. The engine keeps what it knows for other editors."""
        for uri in list(self._delays):
            self._cancel_delay(uri)
        learners, self._learners = self._learners, {}
        self._stop(list(learners.values()), forget=False)
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @property
    def _rules(self) -> Rules:
        return Rules.of(self._configuration.settings)

    def _place(self, path: str, model: ModelInfo) -> WorkspaceFile | None:
        return self.folders.place_of(path) if self._is_allowed(model) else None

    def _is_allowed(self, model: ModelInfo) -> bool:
        settings = self._configuration.settings
        # A model with room for other files reads parts of them. The others only look up what followed a few tokens.
        reads_files = bool(model.server) or context_budget_of(model).related > 0
        allowed = settings.related_files == "always" or (settings.related_files == "local" and not model.server)
        return settings.memory == "workspace" and (allowed or not reads_files)

    def _connected(self, client: EngineClient) -> None:
        """Learn everything again: this may be a new engine, which knows nothing."""
        learners, self._learners = self._learners, {}
        self._stop(list(learners.values()), forget=False)
        if self._is_allowed(client.welcome.model):
            for learner in learners.values():
                self._learn(WorkspaceFile(learner.folder, learner.near), client)

    def _learn(self, place: WorkspaceFile, client: EngineClient) -> None:
        learner = FolderLearner(place.workspace, place.path, client, self._rules, self._around)
        self._learners[place.workspace] = learner

    def _learn_buffer(self, uri: str) -> None:
        self._cancel_delay(uri)
        for place in self._places(uri) if self._learners else []:
            if (learner := self._learners.get(place.workspace)) is not None:
                learner.note_buffer(place.path)

    async def _note_changes(self, paths: list[str]) -> None:
        places = await asyncio.to_thread(lambda: [place for path in paths for place in self.folders.places_of(path)])
        for folder, learner in self._learners.items():
            if changed := [place.path for place in places if place.workspace == folder]:
                learner.note_changes(changed)

    def _buffer(self, place: WorkspaceFile) -> str | None:
        uri = self._uris.get(place)
        document = self._documents.find(uri) if uri is not None else None
        return document.text if document is not None else None

    def _places(self, uri: str) -> list[WorkspaceFile]:
        return self.folders.places_of(path_of(uri)) if is_file(uri) else []

    def _cancel_delay(self, uri: str) -> None:
        delay = self._delays.pop(uri, None)
        if delay is not None:
            delay.cancel()

    def _stop(self, learners: list[FolderLearner], forget: bool) -> None:
        for learner in learners:
            self._start(learner.close(forget))

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
