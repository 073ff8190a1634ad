"""What the user deleted last in a document, so that a suggestion does not give it back."""

from collections.abc import Iterator

import attrs

_MAX_DELETIONS = 4


@attrs.frozen
class Deletion:
    """A run of deletions at one place: the document's text before it, and the offset where it ended."""

    text: str
    offset: int


@attrs.frozen
class Lost:
    """The text that a deletion took away at the cursor. `retyped` is the start of it that the user typed again."""

    text: str
    retyped: str


@attrs.frozen
class Deletions:
    """The last runs of deletions of a document, the newest last.

    They need no end: after an edit elsewhere the earlier text no longer fits around the cursor, and nothing is lost
    there.
    """

    _runs: tuple[Deletion, ...] = ()
    _under_way: bool = False

    def edited(self, text: str, start: int, end: int, new: str) -> "Deletions":
        """Return the deletions after `new` took the place of `text[start:end]`."""
        if start == end:
            return Deletions(self._runs) if self._under_way else self
        continues = self._under_way and self._runs[-1].offset in (start, end)
        before = self._runs[-1].text if continues else text
        older = self._runs[:-1] if continues else self._runs
        return Deletions((*older, Deletion(before, start))[-_MAX_DELETIONS:], not new)

    def replaced(self, old: str, new: str, start: int) -> "Deletions":
        """Return the deletions after `new` took the place of the whole text; both are equal up to `start`.

        Only a shorter text counts as a deletion.
        """
        return self.edited(old, start, start + max(len(old) - len(new), 0), "")

    def lost_at(self, text: str, offset: int) -> Iterator[Lost]:
        """Yield what insertions at `offset` would have to be to undo a deletion, for each deletion that they can."""
        for run in self._runs:
            fits = run.text.startswith(text[:offset]) and run.text.endswith(text[offset:])
            end = len(run.text) - (len(text) - offset)
            if fits and end > offset:
                yield Lost(run.text[offset:end], text[run.offset : offset])
