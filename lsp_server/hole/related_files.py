"""Snippets of the other open files, for a model that has room for them."""

import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import PurePath

import attrs
from lsprotocol import types

from engine.protocol.messages import Snippet
from lsp_server.documents.credentials import context_text
from lsp_server.documents.source import Source
from lsp_server.documents.store import Documents, OpenDocument, Snapshot

_MAX_EDITED_LINES = 6
"""Edited lines that are kept for each document; the oldest are dropped."""
_SAME_PLACE = 12
"""Edits at most this many lines apart count as one."""
_AROUND = 15
"""Lines above and below an edited line."""
_HEAD = 40
"""First lines of a file that is too long to send whole: its imports and first definitions."""
_AFTER_LINE = re.compile(r"(?<=[\r\n])")
"""The line ends of editors: str.splitlines has more of them, as form feeds."""
_MOST_SELECTIONS = 64
"""Holes are also filled in files that nobody opened, and so nobody closes."""
_NAMED_BY_FOLDER = frozenset({"__init__", "__main__", "index", "main", "mod", "lib", "init"})
"""Files whose folder's name says more than their own."""


@attrs.define
class EditedLines:
    """The lines that the user edited last in each document, and which document was edited last.

    Line numbers start at 0, and move when lines are added or removed above them.
    """

    _lines: dict[str, list[int]] = attrs.field(factory=dict)

    def note(self, uri: str, first: int, removed: int, inserted: int) -> None:
        """Note an edit that begins in line `first`. `removed` and `inserted` count its line breaks."""
        last_touched = first + removed
        moved = [
            line + inserted - removed if line > last_touched else min(line, first + inserted)
            for line in self._lines.pop(uri, [])
        ]
        edited = first + inserted
        kept = [line for line in moved if abs(line - edited) > _SAME_PLACE]
        # Now the last key again: the dict keeps the documents in the order of their last edits.
        self._lines[uri] = [*kept, edited][-_MAX_EDITED_LINES:]

    def see(self, uri: str) -> None:
        """Note that a document was opened: the user looks at it but has edited nothing yet."""
        self._lines[uri] = self._lines.pop(uri, [])

    def forget(self, uri: str) -> None:
        """Drop a closed document."""
        self._lines.pop(uri, None)

    def lines(self, uri: str) -> list[int]:
        """Return the edited lines, the latest first."""
        return self._lines.get(uri, [])[::-1]

    def newest_first(self) -> list[str]:
        """Return the documents by their last edit, or by when they were opened, the latest first."""
        return list(self._lines)[::-1]


@attrs.frozen
class OtherFile:
    """An open file other than the one with the hole. `edited_lines` come latest first."""

    path: str
    language: str
    text: str
    edited_lines: Sequence[int]


@attrs.frozen
class _Selection:
    """The snippets chosen for a document while the other documents had these versions."""

    versions: tuple[tuple[str, int], ...]
    room: int
    snippets: list[Snippet]


class RelatedFiles:
    """Chooses snippets for a document, and keeps the choice until another document changes.

    The engine reuses what it has read of the snippets as long as they stay the same.
    """

    def __init__(self, documents: Documents) -> None:
        self.recent = EditedLines()
        for document in documents.all():
            self.recent.see(document.uri)
        self._documents = documents
        self._selections: dict[str, _Selection] = {}
        self._read: dict[str, tuple[Source, str]] = {}
        """What the model may read of each document, and of which version. To look for it takes 0.1 s a megabyte."""

    def changed(self, uri: str, changes: Iterable[types.TextDocumentContentChangeEvent]) -> None:
        """Note which lines of a document changed."""
        for change in changes:
            if isinstance(change, types.TextDocumentContentChangePartial):
                first, last = change.range.start.line, change.range.end.line
                self.recent.note(uri, first, last - first, change.text.count("\n"))

    def forget(self, uri: str) -> None:
        """Drop what is known of a closed document."""
        self.recent.forget(uri)
        self._selections.pop(uri, None)
        self._read.pop(uri, None)

    def forget_selections(self) -> None:
        """Choose again at the next request: the settings may allow different files now."""
        self._selections.clear()

    def around(self, snapshot: Snapshot, room: int, path_of: Callable[[OpenDocument], str | None]) -> list[Snippet]:
        """Return snippets of at most `room` characters for a hole in `snapshot`.

        `path_of` returns the path that the model sees for a document, or None for one that it must not see.
        """
        others = {other.uri: other for other in self._documents.all() if other.uri != snapshot.uri}
        versions = tuple(sorted((uri, other.version) for uri, other in others.items()))
        selection = self._selections.get(snapshot.uri)
        if selection is None or (selection.versions, selection.room) != (versions, room):
            newest_first = [others[uri] for uri in self.recent.newest_first() if uri in others]
            files = [
                OtherFile(path, other.language.id, self._text_of(other), self.recent.lines(other.uri))
                for other in newest_first
                if (path := path_of(other)) is not None
            ]
            chosen = snippets(snapshot.text, snapshot.language.id, files, room)
            selection = self._selections[snapshot.uri] = _Selection(versions, room, chosen)
            if len(self._selections) > _MOST_SELECTIONS:
                del self._selections[next(iter(self._selections))]
        return selection.snippets

    def _text_of(self, other: OpenDocument) -> str:
        source, text = self._read.get(other.uri, (None, ""))
        if source is not other.source:
            text = context_text(other.text)
            self._read[other.uri] = other.source, text
        return text


def snippets(text: str, language: str, others: Iterable[OtherFile], room: int) -> list[Snippet]:
    """Return snippets of `others`, at most `room` characters in all, the most useful first.

    `others` come latest first. Files that `text` names (usually in an import) come first, then files of the same
    language, then the rest. Within each group the order stays.
    """
    words = set(re.findall(r"\w+", text))
    ranked = sorted(others, key=lambda other: (_name_of(other.path) not in words, other.language != language))
    chosen: list[Snippet] = []
    for other in ranked:
        excerpt = _excerpt(other, room)
        if excerpt.strip():
            chosen.append(Snippet(other.path, excerpt))
            room -= len(excerpt)
    return chosen


def _name_of(path: str) -> str:
    file = PurePath(path)
    return file.parent.name if file.stem in _NAMED_BY_FOLDER else file.stem


def _excerpt(other: OtherFile, room: int) -> str:
    """Return a file's text; if it is too long, the lines around its edits and its first lines; "" if nothing fits."""
    if len(other.text) <= room:
        return other.text
    lines = _AFTER_LINE.split(other.text)
    kept: set[int] = set()
    blocks = (range(edited - _AROUND, edited + _AROUND + 1) for edited in other.edited_lines)
    for block in (*blocks, range(_HEAD)):
        more = kept.union(line for line in block if 0 <= line < len(lines))
        if sum(len(lines[line]) for line in more) + len(more) > room:
            break
        kept = more
    # An empty line marks each gap.
    return "".join(lines[line] + ("" if line + 1 in kept else "\n") for line in sorted(kept))
