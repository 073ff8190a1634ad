"""What a code action of Midspan is: offered at once, computed when the user chooses it. And the draft of its edits.

A new action is a class with the members of `Action`, a line in requests/code_actions.py, and a name in `ActionName`.
The editors' types of the message have that name too (ARCHITECTURE.md).
"""

import asyncio
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from typing import Protocol

import attrs
from lsprotocol import types

from engine.errors import MidspanError
from lsp_server.documents.source import Source
from lsp_server.documents.store import Snapshot, position_in
from lsp_server.documents.text_edit import TextEdit
from lsp_server.engine_link.progress_bar import ProgressBar
from lsp_server.refactor.edit.blocks import Block, blocks_of
from lsp_server.refactor.edit.file_edit import FileEdit, Omission, Span
from lsp_server.refactor.search import Found
from lsp_server.wire import ActionName, BulkEdit, BulkOmission, BulkPlace, ScopeName

_KEPT = 2


class NotApplied(MidspanError):
    """A bulk edit was not made, and nothing is changed. The message is one line for the user."""

    code = "not-applied"


@attrs.frozen
class DraftFile:
    """The edits of one file. `path` is what the user sees; `full` is the real path, "" for what is no file.

    `blocks` are the places to choose from, or those that were chosen; `following` change with them.
    """

    uri: str
    path: str
    full: str
    edit: FileEdit
    blocks: tuple[Block, ...]
    following: tuple[Block, ...] = ()

    @classmethod
    def of(cls, snapshot: Snapshot, path: str, edit: FileEdit, reason: str) -> "DraftFile":
        """Return the draft of an edit of this version of a document, none of whose places is doubtful."""
        blocks, following = (_explained(some, reason) for some in blocks_of(snapshot.text, edit))
        return cls(snapshot.uri, path, snapshot.full, edit, blocks, following)

    @classmethod
    def found(cls, uri: str, path: str, found: Found, reason: str) -> "DraftFile":
        """Return the draft of what a search found. In a file with syntax errors every place is doubtful."""
        doubts = {one.span: one for one in found.edit.doubtful}
        if found.edit.has_errors:
            reason += "; this file has syntax errors"
        elif found.edit.unknown:
            reason += f"; nothing here defines {', '.join(f'`{name}`' for name in found.edit.unknown)}"
        is_doubtful = found.edit.has_errors or bool(found.edit.unknown)
        full = found.target.full if found.target.folder else ""
        blocks = tuple(_doubted(block, doubts) for block in _explained(found.blocks, reason, is_doubtful))
        return cls(uri, path, full, found.edit, blocks, _explained(found.following, reason))

    @property
    def confirmed(self) -> "DraftFile":
        """The same file where the user ticked its places: the editor need not ask again."""
        return attrs.evolve(self, blocks=tuple(attrs.evolve(block, doubtful=False) for block in self.blocks))

    @property
    def edits_chosen(self) -> set[TextEdit]:
        """The edits of the blocks, and of what follows them."""
        return {edit for block in (*self.blocks, *self.following) for edit in block.edits}


Narrow = Callable[[DraftFile, str], FileEdit]


def only_chosen(file: DraftFile, text: str) -> FileEdit:
    """Return the edit of the blocks of a file, where each stands alone, and what follows them."""
    edits = sorted(file.edits_chosen, key=lambda one: (one.start, one.end))
    places = tuple(span for block in file.blocks for span in block.spans)
    return attrs.evolve(file.edit, edits=tuple(edits), places=places)


@attrs.frozen
class Draft:
    """What an action would change. `rule` is the edit as code, "" if a model wrote it. Places have ids, counted from 0.

    `reached` has a line for each cap that ended the search. With `exclusive` the places are answers to choose one of,
    each in a DraftFile of its own. `narrow` returns the edit of the blocks of a file, given its text.
    """

    title: str
    rule: str
    files: tuple[DraftFile, ...]
    reached: tuple[str, ...] = ()
    exclusive: bool = False
    narrow: Narrow = only_chosen

    @property
    def places(self) -> int:
        """The number of places that can be chosen, without the wide ones."""
        return len(self.fitting)

    @property
    def wide(self) -> int:
        """The number of places that only the widest form of the rule fits."""
        return len(self._blocks) - self.places

    @property
    def left_out(self) -> int:
        """The number of places that were left out."""
        return sum(len(file.edit.left_out) for file in self.files)

    @property
    def sure(self) -> set[int]:
        """The ids of the places that nobody needs to be asked about."""
        return {number for number, block in enumerate(self._blocks) if not block.doubtful}

    @property
    def fitting(self) -> set[int]:
        """The ids of the places that are not wide."""
        return {number for number, block in enumerate(self._blocks) if not block.wide}

    @property
    def _blocks(self) -> list[Block]:
        return [block for file in self.files for block in file.blocks]

    def chosen(self, ids: Collection[int]) -> list[DraftFile]:
        """Return the files with the places of these ids only. An id that there is not is ignored."""
        chosen: list[DraftFile] = []
        first = 0
        for file in self.files:
            blocks = tuple(block for number, block in enumerate(file.blocks, first) if number in ids)
            first += len(file.blocks)
            if blocks and not (chosen and self.exclusive):
                chosen.append(attrs.evolve(file, blocks=blocks))
        return chosen

    def shown(self, number: int, encoding: types.PositionEncodingKind | str, newline_only: bool) -> BulkEdit:
        """Return what a client shows of the draft with this number. It counts lines as `Documents` says."""
        owned = [(file, block) for file in self.files for block in file.blocks]
        places = [_place(index, *one, encoding, newline_only) for index, one in enumerate(owned)]
        followers = [(file, block) for file in self.files for block in file.following]
        following = [_place(-1, *one, encoding, newline_only) for one in followers]
        left_out = [
            BulkOmission(file.uri, file.path, one.line(newline_only), one.phrase)
            for file in self.files
            for one in file.edit.left_out
        ]
        return BulkEdit(number, self.title, self.rule, places, left_out, list(self.reached), self.exclusive, following)


class Drafts:
    """The last drafts that clients were shown, by number."""

    def __init__(self) -> None:
        self._drafts: dict[int, Draft] = {}
        self._last = 0

    def keep(self, draft: Draft) -> int:
        """Return the number of a draft, and forget the oldest one."""
        self._last += 1
        self._drafts[self._last] = draft
        self._drafts.pop(self._last - _KEPT, None)
        return self._last

    def get(self, number: int) -> Draft | None:
        """Return a draft; None if it is forgotten."""
        return self._drafts.get(number)


def _explained(blocks: Sequence[Block], reason: str, is_doubtful: bool = False) -> tuple[Block, ...]:
    return tuple(attrs.evolve(block, reason=reason, doubtful=is_doubtful) for block in blocks)


def _doubted(block: Block, doubts: Mapping[Span, Omission]) -> Block:
    """Return a block that says why the first doubtful place in it is one."""
    doubt = next((doubts[span] for span in block.spans if span in doubts), None)
    if doubt is None:
        return block
    return attrs.evolve(block, doubtful=True, wide=doubt.doubt == "wide", reason=doubt.reason)


def _place(
    number: int, file: DraftFile, block: Block, encoding: types.PositionEncodingKind | str, newline_only: bool
) -> BulkPlace:
    first, lead = (block.row, block.lead) if newline_only else (block.line, "")
    source, top = Source.of(lead + block.before, newline_only), block.line_start - len(lead)
    corners = [position_in(source, offset - top, encoding) for offset in (block.start, block.end)]
    start, end = (types.Position(first + one.line, one.character) for one in corners)
    selected, reason = types.Range(start, end), block.reason
    return BulkPlace(
        number, file.uri, file.path, selected, block.before, block.after, reason, block.doubtful, block.wide
    )


class Cancelled(Exception):
    """The user cancelled the work. Work.report raises it in the work's threads; its task is cancelled."""


class Work:
    """The work on a request, with its progress bar. `report` may be called in any thread."""

    def __init__(self, bar: ProgressBar) -> None:
        self._bar = bar
        self._loop = asyncio.get_running_loop()
        self._cancelled = threading.Event()
        self.task: asyncio.Task[Draft] | None = None
        bar.on_cancel = self.cancel

    def cancel(self) -> None:
        """Cancel the task of the work, and have the next `report` of its threads raise Cancelled."""
        # A second time would cut off what the task ends.
        if self.task is not None and not self._cancelled.is_set():
            self.task.cancel()
        self._cancelled.set()

    def report(self, message: str, percentage: int | None = None) -> None:
        """Show how far the work is. Raises Cancelled once it is cancelled."""
        if self._cancelled.is_set():
            raise Cancelled
        # The loop is closed when the editor left meanwhile.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._bar.report, message, percentage)


@attrs.frozen
class Selection:
    """A version of a document, and the characters from `start` to `end` of it that are selected."""

    snapshot: Snapshot
    start: int
    end: int

    @property
    def lines(self) -> range:
        """The lines that the selection touches."""
        lines = self.snapshot.source.lines
        return range(lines.at(self.start), lines.at(self.end) + 1)

    def touches(self, *parts: range) -> bool:
        """Return whether the selection touches a line of one of these parts."""
        own = self.lines
        return any(lines and lines[0] <= own[-1] and own[0] <= lines[-1] for lines in parts)


@attrs.frozen
class MenuItem:
    """An action in a menu: what it would work on, and its title."""

    scope: ScopeName
    title: str


class Action(Protocol):
    """A code action. `kind` is its LSP kind; `by_model` says that a model writes the text.

    An action that fits nearly everywhere is `only_invoked`: it is offered to a user who opens the menu. Else the light
    that editors show beside a line with actions would always be on.
    """

    @property
    def name(self) -> ActionName: ...

    @property
    def kind(self) -> str: ...

    @property
    def by_model(self) -> bool: ...

    @property
    def only_invoked(self) -> bool: ...

    async def offers(self, selection: Selection) -> Sequence[MenuItem]:
        """Return what is offered there. It takes milliseconds and searches nothing."""
        ...

    async def draft(self, selection: Selection, scope: ScopeName, work: Work) -> Draft:
        """Return what the action would change there.

        Raises NotApplied with one line if it cannot be done. Its task is cancelled when the user cancels the work.
        """
        ...
