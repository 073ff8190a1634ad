"""Applies rules to the files of a workspace, in other processes if there are many, so that typing never waits."""

import asyncio
import functools
import logging
import pickle
import re
import time
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any, TypeVar, TypeVarTuple

import attrs

from engine.errors import MidspanError
from engine.reading import decode, is_foreign, read_bytes, read_text
from lsp_server.documents.source import Source
from lsp_server.languages.registry import language_for
from lsp_server.refactor.edit.blocks import Block, blocks_of
from lsp_server.refactor.edit.file_edit import FileEdit, Omission, Span
from lsp_server.refactor.edit.rewrite import fits_language, may_fit, rewrite
from lsp_server.refactor.places.doubts import ALL_BUT_WIDE, Beside
from lsp_server.refactor.rules.rule import RuleSet
from lsp_server.refactor.worker_process import COMMAND, LENGTH, framed

_logger = logging.getLogger(__name__)

_Arguments = TypeVarTuple("_Arguments")
_Result = TypeVar("_Result")
_Part = TypeVar("_Part")
_END_SECONDS = 2.0
_SIDE_BY_SIDE = 2
_MOST_SECONDS = 600.0
"""For a part of a list: the user can cancel it."""
NICENESS = 10
"""The niceness of processes that work while the user types."""


class WorkerFailed(MidspanError):
    """The worker process died or took too long, or the function raised."""

    code = "worker"


@attrs.define(eq=False)
class Worker:
    """Runs functions in one process, one after the other. The event loop never waits for it.

    The process is started by the first call, ends after `idle_seconds` without one, and is started again after it died.
    A call that takes more than `most_seconds` ends it. `niceness` is added to that of this process.
    """

    niceness: int = 0
    idle_seconds: float = 600.0
    most_seconds: float = 60.0
    _process: asyncio.subprocess.Process | None = None
    _lock: asyncio.Lock = attrs.field(factory=asyncio.Lock)
    _idle: asyncio.TimerHandle | None = None
    _exchanges: set[asyncio.Task[Any]] = attrs.field(factory=set)

    @property
    def pid(self) -> int | None:
        """The id of the process; None while there is none."""
        return self._process.pid if self._process is not None and self._process.returncode is None else None

    async def run(self, function: Callable[[*_Arguments], _Result], *args: *_Arguments) -> _Result:
        """Return `function(*args)` of the process. All of them, and the result, must be fit for pickle.

        A call that is cancelled while it waits for another one is never sent. One that runs goes on, and its result is
        dropped. Raises WorkerFailed.
        """
        await self._lock.acquire()
        exchange: asyncio.Task[_Result] = asyncio.create_task(self._exchange(function, args))
        self._exchanges.add(exchange)
        exchange.add_done_callback(self._done)
        return await asyncio.shield(exchange)

    async def close(self) -> None:
        """End the process, whatever it does. A later call starts it again."""
        for exchange in list(self._exchanges):
            exchange.cancel()
        await asyncio.gather(*self._exchanges, return_exceptions=True)
        await self._end()

    def _done(self, exchange: asyncio.Task[Any]) -> None:
        self._exchanges.discard(exchange)
        self._lock.release()
        if not exchange.cancelled():
            exchange.exception()  # nobody else asks for it if the call was cancelled

    async def _exchange(self, function: Callable[..., _Result], args: tuple[Any, ...]) -> _Result:
        self._keep()
        call = framed((function, args))
        try:
            process = await self._begin()
            assert process.stdin is not None
            assert process.stdout is not None
            async with asyncio.timeout(self.most_seconds):
                process.stdin.write(call)
                await process.stdin.drain()
                (length,) = LENGTH.unpack(await process.stdout.readexactly(LENGTH.size))
                reply = await process.stdout.readexactly(length)
            # The places of many files take longer to read than a key press may wait.
            result, failure = await asyncio.to_thread(pickle.loads, reply)
        except (OSError, EOFError, asyncio.CancelledError) as error:
            await self._end()  # also a reply without its call would be taken for the next one's
            if isinstance(error, asyncio.CancelledError):
                raise
            late = f" after {self.most_seconds:g} seconds" if isinstance(error, TimeoutError) else ""
            raise WorkerFailed(f"the process that did this ended{late}; try again") from None
        finally:
            self._keep()
        if failure:
            raise WorkerFailed(f"{function.__name__} failed in the worker process with {failure}; please report this")
        return result  # type: ignore[no-any-return]

    async def _begin(self) -> asyncio.subprocess.Process:
        if self._process is None or self._process.returncode is not None:
            pipe = asyncio.subprocess.PIPE
            command = (*COMMAND, str(self.niceness)) if self.niceness else COMMAND
            self._process = await asyncio.create_subprocess_exec(
                *command, stdin=pipe, stdout=pipe, start_new_session=True
            )
        return self._process

    def _keep(self) -> None:
        """Put the end of the process off."""
        if self._idle is not None:
            self._idle.cancel()
        loop = asyncio.get_running_loop()
        self._idle = loop.call_later(self.idle_seconds, lambda: self._exchanges or loop.create_task(self._end()))

    async def _end(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None
        process, self._process = self._process, None
        if process is None or process.returncode is not None:
            return
        process.kill()
        try:
            async with asyncio.timeout(_END_SECONDS):
                await process.wait()
        except TimeoutError:
            _logger.warning("the worker process does not end")


async def side_by_side(
    function: Callable[[_Part], _Result], parts: Sequence[_Part]
) -> AsyncGenerator[tuple[int, _Result], None]:
    """Yield the index and the result of each part as it is done, by two processes that give way to others.

    The parts begin in their order. The processes end with the generator, whatever they do then. Raises WorkerFailed.
    """
    workers = [Worker(NICENESS, most_seconds=_MOST_SECONDS) for _ in range(min(_SIDE_BY_SIDE, len(parts)))]
    left = iter(enumerate(parts))
    running: dict[asyncio.Task[_Result], tuple[Worker, int]] = {}

    def begin(worker: Worker) -> None:
        for index, part in left:
            running[asyncio.create_task(worker.run(function, part))] = worker, index
            return

    try:
        for worker in workers:
            begin(worker)
        while running:
            done, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                worker, index = running.pop(task)
                result = task.result()
                begin(worker)
                yield index, result
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        await asyncio.gather(*(worker.close() for worker in workers))


_FEW = 64
"""So many files are searched in less time than a process takes to start."""
_CHUNK = 32
_HEAD_LINES = 10
_SAYS_SO = re.compile(
    r"@generated\b|\bcode generated\b.*\bdo not edit\b|\bdo not (edit|modify)\b|\bauto-?generated\b", re.I
)
_COMMENT = re.compile(r"\s*(#|//|/\*|\*|--|<!--|;|%|\"\"\"|''')")


@attrs.frozen
class Caps:
    """The most files that are searched, the most places that are found, and the most seconds that it takes."""

    files: int = 20_000
    places: int = 5_000
    seconds: float = 60.0


@attrs.frozen
class Target:
    """A file to search: `folder` is a real path, `path` a path in it with slashes.

    `text` is what an editor shows of it; None reads the disk.
    """

    folder: str
    path: str
    text: str | None = None

    @property
    def full(self) -> str:
        """The real path of the file."""
        return str(Path(self.folder, self.path))


@attrs.frozen
class Found:
    """The edits of one file, its places as blocks, and the blocks that follow them."""

    target: Target
    edit: FileEdit
    blocks: tuple[Block, ...] = ()
    following: tuple[Block, ...] = ()

    @classmethod
    def of(cls, target: Target, text: str, edit: FileEdit) -> "Found":
        """Return an edit of this text."""
        return cls(target, edit, *blocks_of(text, edit))


@attrs.define
class Progress:
    """How far a search is. `reached` says which caps ended it, one line each."""

    files: int
    searched: int = 0
    places: int = 0
    reached: list[str] = attrs.field(factory=list)


async def search(
    rules: Sequence[RuleSet],
    targets: Sequence[Target],
    caps: Caps,
    report: Callable[[Progress], None],
    few: int = _FEW,
    beside: Beside = ALL_BUT_WIDE,
) -> tuple[list[Found], Progress]:
    """Return the files that the rules change or leave places out in, by path.

    `report` is called after each group of files, and what it raises ends the search with its processes. A search that
    reaches a cap ends there, and its progress says so. Up to `few` files are searched in this process. `beside` says
    which places are edited beside the sure ones; the wide ones that a user chooses from do not count.
    """
    uncounted: Callable[[Found], int] = (lambda one: one.edit.wide) if beside.wide == "apart" else (lambda _: 0)
    progress = Progress(min(len(targets), caps.files))
    if len(targets) > caps.files:
        progress.reached.append(f"only the first {caps.files} of {len(targets)} files were searched")
    examine = functools.partial(examined, rules, beside=beside)
    chunks = _chunks(targets[: caps.files])
    found: list[Found] = []
    deadline = time.monotonic() + caps.seconds
    here = progress.files <= few
    async with aclosing(_in_turn(examine, chunks) if here else side_by_side(examine, chunks)) as results:
        async for index, some in results:
            found += some
            progress.searched += len(chunks[index])
            progress.places += sum(len(one.edit.places) - uncounted(one) for one in some)
            ended = ""
            if progress.searched < progress.files and progress.places >= caps.places:
                ended = f"the search ended at {progress.places} places"
            elif progress.searched < progress.files and time.monotonic() > deadline:
                ended = f"the search ended after {caps.seconds:g} seconds"
            progress.reached += [ended] if ended else []
            report(progress)
            if ended:
                break
    return sorted(found, key=lambda one: (one.target.folder, one.target.path)), progress


def texts_of(targets: Sequence[Target]) -> Iterator[tuple[str, str]]:
    """Yield the path and the text of each file that can be read."""
    for one in targets:
        text = one.text if one.text is not None else read_text(one.folder, one.path)
        if text is not None:
            yield one.path, text


def _chunks(targets: Sequence[Target]) -> list[Sequence[Target]]:
    # The first group is small: its places are shown while the others are searched.
    starts = [0, *range(8, len(targets), _CHUNK)]
    ends = [*starts[1:], len(targets)]
    return [targets[start:end] for start, end in zip(starts, ends, strict=True) if end > start]


async def _in_turn(
    examine: Callable[[Sequence[Target]], list[Found]], chunks: Sequence[Sequence[Target]]
) -> AsyncGenerator[tuple[int, list[Found]], None]:
    for index, chunk in enumerate(chunks):
        yield index, examine(chunk)


def examined(rules: Sequence[RuleSet], targets: Sequence[Target], beside: Beside = ALL_BUT_WIDE) -> list[Found]:
    """Return the files that the rules change or leave places out in.

    All places of a file are left out that says that it is generated, or is not UTF-8.
    """
    found: list[Found] = []
    for target in targets:
        language = language_for("", target.path)
        fitting = [one for one in rules if any(fits_language(rule, language) for rule in one.all)]
        if language.grammar is None or not fitting:
            continue
        data = read_bytes(target.folder, target.path) if target.text is None else None
        text = target.text if data is None else decode(data)
        if text is None:
            if data is not None and is_foreign(data) and any(may_fit(one.all, data) for one in fitting):
                reason = Omission(Span(0, 0, 0), "this file is not UTF-8, and may have such places")
                found.append(Found(target, FileEdit(target.path, left_out=(reason,))))
            continue
        for one in fitting:
            edit = rewrite(one, target.path, text, language, beside=beside)
            if edit.edits or edit.left_out:
                if edit.places and is_generated(text):
                    reason = Omission.of(Source.of(text), edit.places[0], "the file says that it is generated")
                    edit = FileEdit(edit.path, edit.digest, left_out=(reason,))
                found.append(Found.of(target, text, edit))
                break
    return found


def is_generated(text: str) -> bool:
    """Return whether a comment at the start of a text says that it is generated, as in Go's convention."""
    lines = text[:2000].split("\n", _HEAD_LINES)[:_HEAD_LINES]
    return any(_COMMENT.match(line) and _SAYS_SO.search(line) for line in lines)
