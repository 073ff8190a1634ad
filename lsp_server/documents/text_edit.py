"""An edit of a text: some of its characters become others."""

from collections.abc import Iterable

import attrs


@attrs.frozen
class TextEdit:
    """`text` takes the place of the characters from `start` to `end`."""

    start: int
    end: int
    text: str

    def moved(self, characters: int) -> "TextEdit":
        """Return the same edit of a text that grew before it."""
        return attrs.evolve(self, start=self.start + characters, end=self.end + characters)

    @property
    def growth(self) -> int:
        """By how many characters the text is longer after it."""
        return len(self.text) - (self.end - self.start)

    def applied(self, text: str) -> str:
        """Return the text after it."""
        return text[: self.start] + self.text + text[self.end :]


def edited(text: str, edits: Iterable[TextEdit], start: int = 0, end: int | None = None) -> str:
    """Return a text after edits, which are in their order and apart from each other.

    Only the part from `start` to `end` of the text before is returned; all edits are in it.
    """
    parts: list[str] = []
    for edit in edits:
        parts += [text[start : edit.start], edit.text]
        start = edit.end
    return "".join([*parts, text[start:end]])
