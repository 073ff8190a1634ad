"""The other open files of a session, as the model is shown them."""

from collections.abc import Callable

import attrs

from engine.protocol.messages import Snippet
from lsp_server.documents.store import Documents, Opened, Snapshot
from lsp_server.hole.recent_edits import RecentEdits
from lsp_server.hole.related import OtherFile, snippets
from lsp_server.hole.window import normalize_newlines


@attrs.frozen
class _Shown:
    """What was shown while the other documents had these versions."""

    versions: tuple[tuple[str, int], ...]
    room: int
    snippets: list[Snippet]


class RelatedFiles:
    """What it returns for a document stays the same until another document changes: the engine has read it by then, and
    reads it again only if it differs."""

    def __init__(self, documents: Documents) -> None:
        self.recent = RecentEdits()
        self._documents = documents
        self._shown: dict[str, _Shown] = {}

    def forget(self, uri: str) -> None:
        """Let go of a closed document."""
        self.recent.forget(uri)
        self._shown.pop(uri, None)

    def forget_shown(self) -> None:
        """Choose anew: what may be shown has changed."""
        self._shown.clear()

    def around(self, snapshot: Snapshot, room: int, shown_path: Callable[[Opened], str | None]) -> list[Snippet]:
        """Return snippets of `room` characters at the most for a hole in `snapshot`.

        `shown_path` returns the path by which the model is to know a document, None for one that it must not see.
        """
        others = {other.uri: other for other in self._documents.all() if other.uri != snapshot.uri}
        versions = tuple(sorted((uri, other.version) for uri, other in others.items()))
        shown = self._shown.get(snapshot.uri)
        if shown is None or (shown.versions, shown.room) != (versions, room):
            newest = [others[uri] for uri in self.recent.newest_first() if uri in others]
            files = [
                OtherFile(path, other.language.id, normalize_newlines(other.text), self.recent.places(other.uri))
                for other in newest
                if (path := shown_path(other)) is not None
            ]
            found = snippets(snapshot.text, snapshot.language.id, files, room)
            shown = self._shown[snapshot.uri] = _Shown(versions, room, found)
        return shown.snippets
