"""The edits of a file by the places that they belong to, so that each place can be taken alone."""

from collections import deque

import attrs

from lsp_server.refactor.file_edit import FileEdit, Span, TextEdit, edited


@attrs.frozen
class Replacement:
    """`text` takes the place of the characters from `start` to `end`."""

    start: int
    end: int
    text: str

    def moved(self, characters: int) -> "Replacement":
        """Return the same replacement in a text that grew before it."""
        return attrs.evolve(self, start=self.start + characters, end=self.end + characters)

    @property
    def growth(self) -> int:
        return len(self.text) - (self.end - self.start)

    def applied(self, text: str) -> str:
        """Return the text after it."""
        return text[: self.start] + self.text + text[self.end :]


@attrs.frozen
class Places:
    """One replacement for each outermost place, and those of imports, each in the order of the file."""

    places: tuple[Replacement, ...]
    imports: tuple[Replacement, ...]


def by_place(edit: FileEdit, text: str) -> Places:
    """Return the edits of a file by place. A place inside of another one belongs to it."""
    spans: list[Span] = []
    for span in sorted(edit.places, key=lambda one: (one.start, -one.end)):
        if not spans or span.start >= spans[-1].end:
            spans.append(span)
    places: list[Replacement] = []
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
            places.append(Replacement(start, end, edited(text, own, start, end)))
    return Places(tuple(places), tuple(Replacement(one.start, one.end, one.text) for one in (*left, *edits)))
