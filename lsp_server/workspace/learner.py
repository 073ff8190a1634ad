"""Has the engine learn one workspace folder: all of its files at first, then what changes."""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Coroutine, Iterable
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import Any

import attrs

from engine.client.connection import EngineClient
from engine.errors import EngineUnavailable, MidspanError, describe
from engine.protocol.memory_messages import Forget, Learn
from engine.reading import is_learnable, read_text
from lsp_server.documents.credentials import context_text
from lsp_server.engine_link.progress_bar import ProgressBar
from lsp_server.workspace.files import Rules, examine, learnable_files

TYPING_S = 2.0
"""The user types until this long after a change."""
_SHARE = 0.1
"""The share of the time that reading takes while the user types."""
_logger = logging.getLogger(__name__)
_BATCH = 8
"""Files that the engine has to learn at the same time."""
_PATHS_A_FRAME = 500
_KEPT_CHARACTERS = 1_000_000
"""Characters of paths; more might not fit into a frame."""
_GATHER_S = 0.1
"""A branch switch reports thousands of changes in many notifications. They are gathered for this long."""
_MANY_CHANGES = 100
"""So many changed files get a progress bar of their own."""
_REPORT_S = 0.2
_CHECK_FILES = 64
"""After so many files the engine is asked whether it still has room."""
_CHECK_SLACK = 8
"""So many files may be missing: open documents are learned at the same time."""


@attrs.define
class Pace:
    """How fast a workspace is read: gently while the user types, else as fast as the engine takes the files.

    `typed_at`: when the user typed last, by time.monotonic.
    """

    typed_at: float = -TYPING_S

    @property
    def is_gentle(self) -> bool:
        return time.monotonic() - self.typed_at < TYPING_S

    async def rest(self, worked_s: float) -> None:
        """After `worked_s` seconds of work, wait as long as the share demands; not at all when nobody types."""
        if self.is_gentle:
            await asyncio.sleep(worked_s * (1 / _SHARE - 1))


@attrs.frozen
class WorkspaceFile:
    """A file in a workspace. `workspace` is the folder's real path, `path` the path in it, with slashes.

    The engine knows workspaces and their files by these names, in Learn as in Fill.
    """

    workspace: str
    path: str


@attrs.frozen
class Surroundings:
    """What all folders of an editor share. `buffer` returns the text of an open document, or None.

    `learned` is called whenever all that waited is learned.
    """

    pace: Pace
    buffer: Callable[[WorkspaceFile], str | None]
    bar: Callable[[], AbstractContextManager[ProgressBar]]
    learned: Callable[[], None]


class FolderLearner:
    """Learns one folder with one client of the engine, in a task of its own. A new client needs a new learner.

    `folder` is a real path. `near` is the path of the document that the user works on: files near to it come first.
    """

    def __init__(self, folder: str, near: str, client: EngineClient, rules: Rules, around: Surroundings) -> None:
        self.folder, self.near = folder, near
        self._client, self._rules, self._around = client, rules, around
        self._known: dict[str, int] = {}
        """The files that the engine has, with the hash of the text that it got."""
        self._kept: set[str] = set()
        """The files that the engine may have from an earlier session, and did not get in this one."""
        self._unread: deque[str] = deque()
        self._changed: dict[str, None] = {}
        self._turns: dict[str, object] = {}
        """The latest text of each file that is made ready."""
        self._sending = 0
        """Files that the engine has not yet learned."""
        self._only_changes = False
        """Whether the user has cancelled the reading, or the engine has no room for more."""
        self._wake = asyncio.Event()
        self.first_reading = asyncio.Event()
        """Set once all files are learned, or once there will be no more."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._start(self._run())

    def note_changes(self, paths: Iterable[str]) -> None:
        """Look at these paths of the folder again: on the disk, or in an open document."""
        self._changed.update(dict.fromkeys(paths))
        self._wake.set()

    def note_buffer(self, path: str) -> None:
        """Learn the current text of an open document at once, if the file is one that is learned."""
        if path in self._known:
            self._start(self._send(path, self._around.buffer(WorkspaceFile(self.folder, path))))
        else:
            self.note_changes([path])

    def use(self, rules: Rules) -> None:
        """Use other rules: forget at once what they exclude, then learn what they allow."""
        if rules != self._rules:
            self._rules = rules
            self._start(self._apply_rules())

    async def close(self, forget: bool) -> None:
        """Stop, and have the engine forget the folder if `forget` is set."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if forget:
            with suppress(MidspanError):
                await self._client.forget(Forget(self.folder))

    async def _run(self) -> None:
        try:
            await self._read_first()
        finally:
            self.first_reading.set()
        self._around.learned()
        while True:
            await self._wake.wait()
            await asyncio.sleep(_GATHER_S)
            await self._examine()
            many = len(self._unread) >= _MANY_CHANGES
            await self._read(self._around.bar() if many else nullcontext())
            self._around.learned()

    async def _read_first(self) -> None:
        files = await asyncio.to_thread(learnable_files, self.folder, self._rules, self.near)
        # The engine may have the folder from an earlier session, with files that are gone or excluded now. It answers
        # from the others until they are learned again.
        kept = files if sum(map(len, files)) <= _KEPT_CHARACTERS else []
        await self._client.forget(Forget(self.folder, keep=kept))
        self._kept.update(kept)
        self._unread.extend(files)
        await self._read(self._around.bar())

    async def _read(self, opened: AbstractContextManager[ProgressBar | None]) -> None:
        """Learn all unread files, with changed ones first."""
        done, reported = 0, -_REPORT_S
        with opened as bar:
            while self._unread:
                if bar is not None and bar.cancelled:
                    await self._read_no_more()
                    return
                if bar is not None and time.monotonic() - reported >= _REPORT_S:
                    reported, total = time.monotonic(), done + len(self._unread)
                    bar.report(f"{done:,} of {total:,} files", 100 * done // total)
                count = 1 if self._around.pace.is_gentle else min(_BATCH, len(self._unread))
                started = time.perf_counter()
                await self._learn([self._unread.popleft() for _ in range(count)])
                done += count
                if done % _CHECK_FILES < count and await self._is_full():
                    await self._read_no_more()
                await self._around.pace.rest(time.perf_counter() - started)
                if self._wake.is_set():
                    await self._examine()
            if bar is not None:
                bar.report(f"{done:,} of {done:,} files", 100)

    async def _read_no_more(self) -> None:
        self._only_changes = True
        self._unread.clear()
        await self._forget(list(self._kept))

    async def _examine(self) -> None:
        """Forget the files that are gone, and put the changed ones before all that is unread."""
        self._wake.clear()
        changed, self._changed = self._changed, {}
        known = {*self._known, *self._unread}
        found = await asyncio.to_thread(examine, self.folder, changed, known, self._rules, self.near)
        if self._only_changes:
            found = attrs.evolve(found, present=[path for path in found.present if path in changed])
        gone, first = set(found.gone), set(found.present)
        await self._forget(gone)
        waiting = [path for path in self._unread if path not in gone and path not in first]
        self._unread = deque([*found.present, *waiting])

    async def _is_full(self) -> bool:
        """Return whether the engine forgets files for new ones. The nearest came first, so they would go first."""
        learned = len(self._known) - self._sending
        status = await self._client.memory_status(self.folder)
        is_full = status.files < learned - _CHECK_SLACK
        if is_full:
            _logger.info("the memory is full with %d files; midspan.memoryMegabytes makes room for more", status.files)
        return is_full

    async def _learn(self, paths: list[str]) -> None:
        texts = await asyncio.to_thread(lambda: [read_text(self.folder, path) for path in paths])
        places = [WorkspaceFile(self.folder, path) for path in paths]
        # Open documents count as they are now, also one that was opened while the disk was read.
        buffers = [self._around.buffer(place) for place in places]
        current = [text if buffer is None else buffer for text, buffer in zip(texts, buffers, strict=True)]
        await asyncio.gather(*(self._send(path, text) for path, text in zip(paths, current, strict=True)))

    async def _send(self, path: str, text: str | None) -> None:
        """Have the engine learn a file, or forget it when it has no text to learn any more."""
        language = self._rules.language_of(self.folder, path)
        if text is None or language is None or not is_learnable(text):
            await self._forget([path])
            return
        turn = self._turns[path] = object()
        text = await asyncio.to_thread(context_text, text)
        if self._turns.get(path) is not turn:  # a newer text came meanwhile, or the file is to be forgotten
            return
        del self._turns[path]
        digest = hash(text)
        if self._known.get(path) == digest:
            return
        self._known[path] = digest
        self._kept.discard(path)
        self._sending += 1
        try:
            await self._client.learn(Learn(self.folder, path, text, language))
        except EngineUnavailable:
            raise
        except MidspanError as error:
            self._known.pop(path, None)
            _logger.debug("the engine did not learn a file: %s", error)
        finally:
            self._sending -= 1

    async def _forget(self, paths: Iterable[str]) -> None:
        paths = list(paths)
        for path in paths:
            self._turns.pop(path, None)
        known = [path for path in paths if self._known.pop(path, None) is not None or path in self._kept]
        self._kept.difference_update(known)
        for start in range(0, len(known), _PATHS_A_FRAME):
            await self._client.forget(Forget(self.folder, known[start : start + _PATHS_A_FRAME]))

    async def _apply_rules(self) -> None:
        known, rules = list(self._known), self._rules
        allowed = set(await asyncio.to_thread(rules.allowed, self.folder, known))
        await self._forget([path for path in known if path not in allowed])
        self.note_changes([""])

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(self._guard(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _guard(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except EngineUnavailable:
            pass  # a new client brings a new learner
        except Exception as error:
            _logger.error("the workspace is not read any further: %s; please report this", describe(error))
