"""A draft as a client shows it, and the last ones by number, for when the user has chosen."""

from collections.abc import Collection, Iterator

import attrs
from lsprotocol import types

from lsp_server.bulk.blocks import Block
from lsp_server.bulk.current_files import Choice
from lsp_server.bulk.draft import Draft, DraftFile
from lsp_server.documents.source import Source
from lsp_server.documents.store import position_in
from lsp_server.wire import BulkEdit, BulkOmission, BulkPlace

_KEPT = 2


@attrs.frozen
class _Numbered:
    number: int
    file: DraftFile
    index: int


class Drafts:
    """The last drafts that clients were shown, by number."""

    def __init__(self) -> None:
        self._drafts: dict[int, Draft] = {}
        self._last = 0

    def keep(self, draft: Draft) -> int:
        """Return the number of a draft, and forget the oldest one."""
        self._last += 1
        self._drafts[self._last] = draft
        for number in list(self._drafts)[:-_KEPT]:
            del self._drafts[number]
        return self._last

    def get(self, number: int) -> Draft | None:
        """Return a draft; None if it is forgotten."""
        return self._drafts.get(number)


def shown(number: int, draft: Draft, encoding: types.PositionEncodingKind | str) -> BulkEdit:
    """Return a draft with the ids of its places: they count from 0."""
    places = [
        _place(
            one.number,
            one.file,
            one.file.blocks[one.index],
            one.file.reason_of(one.index),
            one.index in one.file.doubtful,
            encoding,
        )
        for one in _numbered(draft)
    ]
    following = [
        _place(-1, file, block, file.reason, False, encoding) for file in draft.files for block in file.following
    ]
    left_out = [
        BulkOmission(file.uri, file.path, one.span.line, one.reason)
        for file in draft.files
        for one in file.edit.left_out
    ]
    return BulkEdit(number, draft.title, draft.rule, places, left_out, list(draft.reached), draft.exclusive, following)


def choices(draft: Draft, ids: Collection[int]) -> list[Choice]:
    """Return the places of a draft with these ids, file by file. An id that there is not is ignored."""
    chosen = [one for one in _numbered(draft) if one.number in ids]
    if draft.exclusive:
        chosen = chosen[:1]
    blocks: dict[int, list[Block]] = {}
    files: dict[int, DraftFile] = {}
    for one in chosen:
        files[id(one.file)] = one.file
        blocks.setdefault(id(one.file), []).append(one.file.blocks[one.index])
    return [Choice(file, tuple(blocks[key])) for key, file in files.items()]


def sure_ids(draft: Draft) -> set[int]:
    """Return the ids of the places that nobody needs to be asked about."""
    return {one.number for one in _numbered(draft) if one.index not in one.file.doubtful}


def _numbered(draft: Draft) -> Iterator[_Numbered]:
    number = 0
    for file in draft.files:
        for index in range(len(file.blocks)):
            yield _Numbered(number, file, index)
            number += 1


def _place(
    number: int,
    file: DraftFile,
    block: Block,
    reason: str,
    doubtful: bool,
    encoding: types.PositionEncodingKind | str,
) -> BulkPlace:
    source = Source.of(block.before)
    corners = [position_in(source, offset - block.line_start, encoding) for offset in (block.start, block.end)]
    start, end = (types.Position(block.line + one.line, one.character) for one in corners)
    return BulkPlace(number, file.uri, file.path, types.Range(start, end), block.before, block.after, reason, doubtful)
