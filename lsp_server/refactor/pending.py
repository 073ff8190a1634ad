"""The places of a file that are left: an editor takes them one by one, in any order."""

from collections import deque
from collections.abc import Sequence
from typing import Literal

import attrs

from lsp_server.documents.text_edit import TextEdit, edited
from lsp_server.refactor.edit.file_edit import FileEdit, Span

Step = Literal["same", "taken", "undone", "other"]


@attrs.frozen
class Places:
    """One edit for each outermost place, and those of imports, each in the order of the file."""

    places: tuple[TextEdit, ...] = ()
    imports: tuple[TextEdit, ...] = ()


def by_place(edit: FileEdit, text: str) -> Places:
    """Return the edits of a file by place. A place inside of another one belongs to it."""
    spans: list[Span] = []
    for span in sorted(edit.places, key=lambda one: (one.start, -one.end)):
        if not spans or span.start >= spans[-1].end:
            spans.append(span)
    places: list[TextEdit] = []
    left: list[TextEdit] = []
    edits = deque(edit.edits)
    for span in spans:
        while edits and edits[0].end < span.start:
            left.append(edits.popleft())
        own: list[TextEdit] = []
        while edits and edits[0].start <= span.end:
            own.append(edits.popleft())
        if own:
            start, end = own[0].start, own[-1].end
            places.append(TextEdit(start, end, edited(text, own, start, end)))
    return Places(tuple(places), (*left, *edits))


@attrs.define
class PendingFile:
    """The places of `text` that are left. `before` is the text before the last one was taken, "" if none was."""

    text: str
    before: str
    _places: list[TextEdit]
    _imports: list[TextEdit]

    @classmethod
    def of(cls, text: str, places: Places) -> "PendingFile":
        return cls(text, "", list(places.places), list(places.imports))

    @property
    def count(self) -> int:
        """How many places are left. Imports follow the last place, and are not counted."""
        return len(self._places)

    def follow(self, text: str) -> Step:
        """Take the place whose edit makes the text that one. "undone": the last place that was taken is there again."""
        if text == self.text:
            return "same"
        for one in (*self._places, *self._imports):
            if len(self.text) + one.growth == len(text) and one.applied(self.text) == text:
                self._places = _without(self._places, one)
                self._imports = _without(self._imports, one)
                self.before, self.text = self.text, text
                return "taken"
        return "undone" if text == self.before else "other"

    def nearest(self, offset: int) -> TextEdit | None:
        """Return the first place at or after an offset, else the first of the file, else an import."""
        below = next((one for one in self._places if one.end >= offset), None)
        return below or next(iter((*self._places, *self._imports)), None)


def _without(replacements: Sequence[TextEdit], taken: TextEdit) -> list[TextEdit]:
    """Return the others as they are after one was taken."""
    return [one.moved(taken.growth) if one.start >= taken.end else one for one in replacements if one is not taken]
