"""Applies rules to the files of a workspace, in other processes if there are many, so that typing never waits."""

import functools
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Protocol, TypeVar

import attrs

from lsp_server.languages.registry import language_for
from lsp_server.refactor.crew import side_by_side
from lsp_server.refactor.file_edit import FileEdit, Omission, Span
from lsp_server.refactor.generated import is_generated
from lsp_server.refactor.pattern import RuleSet
from lsp_server.refactor.rewrite import fits_language, may_fit, rewrite
from lsp_server.workspace.reading import decode, is_foreign, read_bytes

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


class HasEdit(Protocol):
    """What is found in a file."""

    @property
    def edit(self) -> FileEdit: ...


_Found = TypeVar("_Found", bound=HasEdit)


@attrs.define
class Progress:
    """How far a search is. `reached` says which caps ended it, one line each."""

    files: int
    searched: int = 0
    places: int = 0
    reached: list[str] = attrs.field(factory=list)


def search(
    rules: Sequence[RuleSet], targets: Sequence[Target], caps: Caps, report: Callable[[Progress], None]
) -> Iterator[Found]:
    """Yield the files that the rules change or leave places out in, as they are found.

    `report` is called after each group of files. A search that reaches a cap ends there, and its progress says so.
    """
    examine = functools.partial(search_files, rules)
    chunks = _chunks(targets[: caps.files])
    few = min(len(targets), caps.files) <= _FEW
    return _capped(_here(examine, chunks) if few else _elsewhere(examine, chunks), len(targets), caps, report)


def search_elsewhere(
    examine: "Callable[[Sequence[Target]], list[_Found]]",
    targets: Sequence[Target],
    caps: Caps,
    report: Callable[[Progress], None],
) -> Iterator[_Found]:
    """Yield what `examine` finds in the targets, as `search` does, always in other processes.

    `examine` must be fit for pickle. `report` is called ten times a second too; what it raises ends the search and its
    processes at once.
    """
    return _capped(_elsewhere(examine, _chunks(targets[: caps.files])), len(targets), caps, report)


_Results = Generator[tuple[int, list[_Found]], None, None]


def _capped(
    results: "_Results[_Found]", targets: int, caps: Caps, report: Callable[[Progress], None]
) -> Iterator[_Found]:
    progress = Progress(min(targets, caps.files))
    if targets > caps.files:
        progress.reached.append(f"only the first {caps.files} of {targets} files were searched")
    deadline = time.monotonic() + caps.seconds
    try:
        for searched, found in results:
            progress.searched += searched
            for one in found:
                progress.places += len(one.edit.places)
                yield one
            is_end = progress.searched >= progress.files
            ended = ""
            if progress.places >= caps.places and not is_end:
                ended = f"the search ended at {progress.places} places"
            elif time.monotonic() > deadline and not is_end:
                ended = f"the search ended after {caps.seconds:g} seconds"
            if ended:
                progress.reached.append(ended)
            report(progress)
            if ended:
                return
    finally:
        results.close()


def _chunks(targets: Sequence[Target]) -> list[Sequence[Target]]:
    # The first group is small: its places are shown while the others are searched.
    starts = [0, *range(8, len(targets), _CHUNK)] if len(targets) > 8 else [0]
    ends = [*starts[1:], len(targets)]
    return [targets[start:end] for start, end in zip(starts, ends, strict=True) if end > start]


def _here(
    examine: "Callable[[Sequence[Target]], list[_Found]]", chunks: Sequence[Sequence[Target]]
) -> "_Results[_Found]":
    for chunk in chunks:
        yield len(chunk), examine(chunk)


def _elsewhere(
    examine: "Callable[[Sequence[Target]], list[_Found]]", chunks: Sequence[Sequence[Target]]
) -> "_Results[_Found]":
    results = side_by_side(examine, chunks)
    try:
        for done in results:
            yield (len(chunks[done.part]), done.result) if done is not None else (0, [])
    finally:
        results.close()


@attrs.frozen
class Searched:
    """A file with the text that was searched, and its edits."""

    target: Target
    text: str
    edit: FileEdit


def search_files(rules: Sequence[RuleSet], targets: Sequence[Target]) -> list[Found]:
    """Return the files that the rules change or leave places out in."""
    return [Found(one.target, one.edit) for one in searched(rules, targets)]


def searched(rules: Sequence[RuleSet], targets: Sequence[Target]) -> Iterator[Searched]:
    """Yield the files that the rules change or leave places out in.

    All places of a file are left out that says that it is generated, or is not UTF-8.
    """
    for target in targets:
        language = language_for("", target.path)
        fitting = [one for one in rules if any(fits_language(rule, language) for rule in one.rules)]
        if language.grammar is None or not fitting:
            continue
        data = read_bytes(target.folder, target.path) if target.text is None else None
        text = target.text if data is None else decode(data)
        if text is None:
            if data is not None and is_foreign(data) and any(may_fit(one, data) for one in fitting):
                reason = Omission(Span(0, 0, 0), "this file is not UTF-8, and may have such places")
                yield Searched(target, "", FileEdit(target.path, left_out=(reason,)))
            continue
        for one in fitting:
            edit = rewrite(one, target.path, text, language)
            if edit.edits or edit.left_out:
                if edit.places and is_generated(text):
                    reason = Omission(edit.places[0], "the file says that it is generated")
                    edit = FileEdit(edit.path, edit.digest, left_out=(reason,))
                yield Searched(target, text, edit)
                break
