"""Parsing: the syntax tree of a document, which follows each of its edits, a piece at a time between other events."""

import asyncio
import logging
import time
from collections.abc import Callable

import attrs
import tree_sitter

from lsp_server.documents.source import Source
from lsp_server.languages.language import Language, Parse

log = logging.getLogger("midspan.documents")

_PARSE_SECONDS = 1.0
"""Processor time. 2 MB of a program take 0.6 s; the end of what took longer keeps the event loop too long."""
_EDIT_SECONDS = 0.5
_PATIENCE = 10
"""A text that took too long to parse is parsed again after this many times that time."""
_MOST_NOTED = 200
"""With more edits since the last parse, to parse all of the text again is simpler."""
KEY_PARSE_S = 0.008
"""A key may wait so long for its parse, without which other code would have to do."""
_SLICE_S = 0.003
"""So long an event may have to wait for a parse, at most several times: a message comes in as several events."""
_GAP_S = 0.001


@attrs.frozen
class SourceEdit:
    """An edit as tree-sitter notes it in a tree: where the text differs, in bytes, and in rows and columns."""

    start: int
    old_end: int
    new_end: int
    start_point: tree_sitter.Point
    old_end_point: tree_sitter.Point
    new_end_point: tree_sitter.Point

    @classmethod
    def between(cls, old: Source, new: Source, start: int, old_end: int, new_end: int) -> "SourceEdit":
        """Return the edit of the characters `old[start:old_end]` to `new[start:new_end]`."""
        return cls(
            old.byte_at(start),
            old.byte_at(old_end),
            new.byte_at(new_end),
            old.point_at(start),
            old.point_at(old_end),
            new.point_at(new_end),
        )

    def note_in(self, tree: tree_sitter.Tree) -> None:
        """Note the edit in a tree, which changes it; nothing is parsed."""
        points = self.start_point, self.old_end_point, self.new_end_point
        tree.edit(self.start, self.old_end, self.new_end, *points)


@attrs.define
class SyntaxTree:
    """The tree of a document's current `source`, or the way to it.

    A parse that is under way when the text changes goes on to its end: the edits after it are noted in its tree, and
    the next parse is short.
    """

    language: Language
    _source: Source
    _tree: tree_sitter.Tree | None = None
    """The last tree. Since then there were `_edits`."""
    _edits: list[SourceEdit] = attrs.field(factory=list)
    _running: Parse | None = None
    """A parse of the text before `_edits`."""
    _resting_until: float = 0.0
    _refused: bool = False
    """Whether the current text must not be parsed."""

    def edit(self, source: Source, edit: SourceEdit) -> None:
        """Note an edit of the text, which is now `source`."""
        self._source, self._refused = source, False
        self._edits.append(edit)
        if len(self._edits) > _MOST_NOTED:
            self.replace(source)

    def replace(self, source: Source) -> None:
        """Note that the whole text was replaced by `source`."""
        self._source, self._tree, self._running, self._refused = source, None, None, False
        self._edits.clear()

    @property
    def may_go_on(self) -> bool:
        """Whether parsing on may lead to a tree that is not there yet."""
        if self.language.grammar is None or self._refused or time.monotonic() < self._resting_until:
            return False
        return self._tree is None or bool(self._edits) or self._running is not None

    def parse(self, seconds: float) -> tree_sitter.Tree | None:
        """Return the tree of the current text if `seconds` are enough, which may be its last ones; else None.

        Without a grammar, and for a while after a parse that took too long in all, the answer is None at once.
        """
        deadline = time.perf_counter() + seconds
        while self.may_go_on:
            left = deadline - time.perf_counter()
            if left <= 0 or not self._run(left):
                return None
        return self._tree if not self._edits else None

    def _run(self, seconds: float) -> bool:
        """Go on with the parse, or begin one. Return whether it has ended with a tree."""
        if self._running is None:
            if self._tree is not None:
                self._tree = self._tree.copy()
                for edit in self._edits:
                    edit.note_in(self._tree)
            self._edits.clear()
            self._running = self.language.begin_parse(self._source.data, self._tree)
        if self._running is None:  # its grammar cannot be loaded, or must not get this text
            self._tree, self._refused = None, True
            return False
        most = _PARSE_SECONDS if self._tree is None else _EDIT_SECONDS
        tree = self._running.run(min(seconds, max(most - self._running.seconds, 0.0)))
        if tree is not None:
            self._tree, self._running = tree, None
        elif self._running.ended or self._running.seconds >= most:
            self._resting_until = time.monotonic() + _PATIENCE * self._running.seconds
            self.replace(self._source)
            log.warning("a %s document took too long to parse; its suggestions go by lines for now", self.language.id)
        return tree is not None


class BackgroundParse:
    """Calls `go_on(uri, seconds)` for each document that waits, in turn, until it returns False."""

    def __init__(self, go_on: Callable[[str, float], bool]) -> None:
        self._go_on = go_on
        self._waiting: dict[str, asyncio.Event] = {}
        self._task: asyncio.Task[None] | None = None

    def begin(self, uri: str) -> None:
        """Parse this document as soon as there is time."""
        self._waiting.setdefault(uri, asyncio.Event())
        if self._task is None:
            self._task = asyncio.create_task(self._run())

    async def wait(self, uri: str, seconds: float) -> None:
        """Return when the document is parsed, or nothing more can be done for it; after `seconds` at the latest."""
        if (done := self._waiting.get(uri)) is not None:
            try:
                async with asyncio.timeout(seconds):
                    await done.wait()
            except TimeoutError:
                return

    def close(self) -> None:
        """Leave the rest unparsed."""
        if self._task is not None:
            self._task.cancel()

    async def _run(self) -> None:
        try:
            while self._waiting:
                for uri, done in list(self._waiting.items()):
                    if not self._go_on(uri, _SLICE_S):
                        del self._waiting[uri]
                        done.set()
                    await asyncio.sleep(_GAP_S)
        finally:
            self._task = None
