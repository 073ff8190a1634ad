"""Applies rules to the files of a workspace, in other processes if there are many, so that typing never waits."""

import multiprocessing
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait

import attrs

from lsp_server.languages.registry import language_for
from lsp_server.refactor.file_edit import FileEdit
from lsp_server.refactor.pattern import RuleSet
from lsp_server.refactor.rewrite import fits_language, rewrite
from lsp_server.workspace.reading import read_text

_WORKERS = 2
_FEW = 64
"""So many files are searched in less time than a process takes to start."""
_CHUNK = 32


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


@attrs.frozen
class Found:
    """The edits of one file."""

    target: Target
    edit: FileEdit


@attrs.define
class Progress:
    """How far a search is. `reached` says which caps ended it, one line each."""

    files: int
    searched: int = 0
    places: int = 0
    reached: list[str] = attrs.field(factory=list)


def search(
    rules: Sequence[RuleSet],
    targets: Sequence[Target],
    caps: Caps,
    report: Callable[[Progress], None],
) -> Iterator[Found]:
    """Yield the files that the rules change or leave places out in, as they are found.

    `report` is called after each group of files. A search that reaches a cap ends there, and its progress says so.
    """
    progress = Progress(min(len(targets), caps.files))
    if len(targets) > caps.files:
        progress.reached.append(f"only the first {caps.files} of {len(targets)} files were searched")
    deadline = time.monotonic() + caps.seconds
    chunks = _chunks(targets[: caps.files])
    results = _here(rules, chunks) if progress.files <= _FEW else _elsewhere(rules, chunks)
    for searched, found in results:
        progress.searched += searched
        for one in found:
            progress.places += len(one.edit.places)
            yield one
        is_end = progress.searched >= progress.files
        if progress.places >= caps.places and not is_end:
            progress.reached.append(f"the search ended at {progress.places} places")
        elif time.monotonic() > deadline and not is_end:
            progress.reached.append(f"the search ended after {caps.seconds:g} seconds")
        report(progress)
        if progress.reached and not is_end and progress.reached[-1].startswith("the search"):
            results.close()
            return


def _chunks(targets: Sequence[Target]) -> list[Sequence[Target]]:
    # The first group is small: its places are shown while the others are searched.
    starts = [0, *range(8, len(targets), _CHUNK)] if len(targets) > 8 else [0]
    ends = [*starts[1:], len(targets)]
    return [targets[start:end] for start, end in zip(starts, ends, strict=True) if end > start]


_Results = Generator[tuple[int, list[Found]], None, None]


def _here(rules: Sequence[RuleSet], chunks: Sequence[Sequence[Target]]) -> _Results:
    for chunk in chunks:
        yield len(chunk), search_files(rules, chunk)


def _elsewhere(rules: Sequence[RuleSet], chunks: Sequence[Sequence[Target]]) -> _Results:
    # A fork of a process with threads can deadlock, so workers are started from nothing.
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(_WORKERS, context)
    waiting = list(chunks)
    running: dict[Future[list[Found]], int] = {}
    try:
        while waiting or running:
            while waiting and len(running) < 2 * _WORKERS:
                chunk = waiting.pop(0)
                running[pool.submit(search_files, rules, chunk)] = len(chunk)
            done, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                yield running.pop(future), future.result()
    finally:
        pool.shutdown(cancel_futures=True)


def search_files(rules: Sequence[RuleSet], targets: Sequence[Target]) -> list[Found]:
    """Return the files that the rules change or leave places out in."""
    found: list[Found] = []
    for target in targets:
        language = language_for("", target.path)
        fitting = [one for one in rules if any(fits_language(rule, language) for rule in one.rules)]
        if language.grammar is None or not fitting:
            continue
        text = target.text if target.text is not None else read_text(target.folder, target.path)
        if text is None:
            continue
        for one in fitting:
            edit = rewrite(one, target.path, text, language)
            if edit.edits or edit.left_out:
                found.append(Found(target, edit))
                break
    return found
