"""Applies rules to the files of a workspace, in other processes if there are many, so that typing never waits."""

import functools
import re
import time
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import aclosing
from pathlib import Path

import attrs

from engine.reading import decode, is_foreign, read_bytes, read_text
from lsp_server.documents.source import Source
from lsp_server.languages.registry import language_for
from lsp_server.refactor.edit.blocks import Block, blocks_of
from lsp_server.refactor.edit.file_edit import FileEdit, Omission, Span
from lsp_server.refactor.edit.rewrite import fits_language, may_fit, rewrite
from lsp_server.refactor.places.doubts import ALL_BUT_WIDE, Beside
from lsp_server.refactor.rules.rule import RuleSet
from lsp_server.refactor.worker import side_by_side

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
