"""Snippets of the other open files, for a model that has room for them."""

import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import PurePath

import attrs

from engine.protocol.messages import Snippet
from lsp_server.documents.store import Documents, OpenDocument, Snapshot
from lsp_server.hole.recent_edits import RecentEdits
from lsp_server.hole.window import normalize_newlines

_AROUND = 15
"""Lines above and below an edited line."""
_HEAD = 40
"""First lines of a file that is too long to send whole: its imports and first definitions."""
_NAMED_BY_FOLDER = frozenset({"__init__", "__main__", "index", "main", "mod", "lib", "init"})
"""Files whose folder's name says more than their own."""


@attrs.frozen
class OtherFile:
    """An open file besides the one that is filled. `edited_lines` come latest first."""

    path: str
    language: str
    text: str
    edited_lines: Sequence[int]


@attrs.frozen
class _Selection:
    """The snippets that were chosen while the other documents had these versions."""

    versions: tuple[tuple[str, int], ...]
    room: int
    snippets: list[Snippet]


class RelatedFiles:
    """Chooses snippets for a document, and keeps the choice until another document changes.

    The engine reuses the snippets that it has read, as long as they stay the same.
    """

    def __init__(self, documents: Documents) -> None:
        self.recent = RecentEdits()
        self._documents = documents
        self._selections: dict[str, _Selection] = {}

    def forget(self, uri: str) -> None:
        """Drop what is known of a closed document."""
        self.recent.forget(uri)
        self._selections.pop(uri, None)

    def forget_selections(self) -> None:
        """Choose again at the next request, as the settings may allow other files now."""
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
                OtherFile(path, other.language.id, normalize_newlines(other.text), self.recent.lines(other.uri))
                for other in newest_first
                if (path := path_of(other)) is not None
            ]
            chosen = snippets(snapshot.text, snapshot.language.id, files, room)
            selection = self._selections[snapshot.uri] = _Selection(versions, room, chosen)
        return selection.snippets


def snippets(text: str, language: str, others: Iterable[OtherFile], room: int) -> list[Snippet]:
    """Return snippets of `others`, at most `room` characters in all, the most useful first.

    `others` come latest first. Files that `text` names (usually by an import) come before files of the same language,
    and those before all others; equals keep their order.
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
    """Return a file's text, or the lines around its edits and its head when it is too long; "" when nothing fits."""
    if len(other.text) <= room:
        return other.text
    lines = other.text.splitlines(keepends=True)
    kept: set[int] = set()
    blocks = (range(edited - _AROUND, edited + _AROUND + 1) for edited in other.edited_lines)
    for block in (*blocks, range(_HEAD)):
        more = kept.union(line for line in block if 0 <= line < len(lines))
        if sum(len(lines[line]) for line in more) + len(more) > room:
            break
        kept = more
    # An empty line marks each gap.
    return "".join(lines[line] + ("" if line + 1 in kept else "\n") for line in sorted(kept))
