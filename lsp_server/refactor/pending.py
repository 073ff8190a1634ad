"""The places of a file that wait for the user, and how they move as he takes them one by one."""

from collections.abc import Sequence
from typing import Literal

import attrs

from lsp_server.refactor.places import Places, Replacement

Step = Literal["same", "taken", "undone", "other"]


@attrs.define
class PendingFile:
    """The places of `text` that are left. `before` is the text before the last one was taken, "" if none was."""

    text: str
    before: str
    _places: list[Replacement]
    _imports: list[Replacement]

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

    def nearest(self, offset: int) -> Replacement | None:
        """Return the first place at or after an offset, else the first of the file, else an import."""
        below = next((one for one in self._places if one.end >= offset), None)
        return below or next(iter((*self._places, *self._imports)), None)


def _without(replacements: Sequence[Replacement], taken: Replacement) -> list[Replacement]:
    """Return the others as they are after one was taken."""
    return [one.moved(taken.growth) if one.start >= taken.end else one for one in replacements if one is not taken]
