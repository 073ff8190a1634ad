"""The user's last edits of a document, each as a person would name it: all typing at one place is one edit."""

from collections.abc import Sequence

import attrs

_MAX_EDITS = 8
_MAX_CHARS = 1_000_000
"""An edit keeps the text before and after it, so the edits of long texts are not kept."""


@attrs.frozen
class RecentEdit:
    """What the user did at one place: the whole text before and after it, and the part that it touched.

    `start` and `end` are characters of `after`; `start` and `old_end` those of `before`. Outside of them both are
    equal. `serial` counts the edits of a document, and stays the same while an edit goes on. `changes` counts the
    editor's changes: a key makes one, and what is pasted too.
    """

    before: str
    after: str
    start: int
    old_end: int
    end: int
    serial: int
    changes: int = 1

    @property
    def undone(self) -> bool:
        """Whether the edit left everything as it was."""
        return self.before[self.start : self.old_end] == self.after[self.start : self.end]


@attrs.frozen
class RecentEdits:
    """The last edits of a document, the newest last.

    A change on the lines of the newest edit, or on the line next to them, goes on with it. Any other change begins an
    edit of its own.
    """

    _edits: tuple[RecentEdit, ...] = ()
    _serial: int = 0

    @property
    def all(self) -> Sequence[RecentEdit]:
        """The edits that changed something, the newest last."""
        return [edit for edit in self._edits if not edit.undone]

    @property
    def newest(self) -> RecentEdit | None:
        """The newest edit, also if it left everything as it was."""
        return self._edits[-1] if self._edits else None

    def changed(self, before: str, start: int, end: int, after: str, new_end: int) -> "RecentEdits":
        """Return the edits after `before[start:end]` became `after[start:new_end]`."""
        if len(before) > _MAX_CHARS or len(after) > _MAX_CHARS:
            return RecentEdits((), self._serial)
        last = self._edits[-1] if self._edits else None
        if last is None or not _is_near(last, start, end):
            edit = RecentEdit(before, after, start, end, new_end, self._serial + 1)
            return RecentEdits((*self._edits, edit)[-_MAX_EDITS:], self._serial + 1)
        # What lies outside of the edit until now is equal in `last.before` and `before`, moved by its growth.
        growth = last.end - last.old_end
        edit = RecentEdit(
            last.before,
            after,
            min(last.start, start),
            max(last.old_end, end - growth),
            max(last.end, end) + (new_end - end),
            last.serial,
            last.changes + 1,
        )
        return RecentEdits((*self._edits[:-1], edit), self._serial)


def _is_near(edit: RecentEdit, start: int, end: int) -> bool:
    """Return whether `edit.after[start:end]` is on the lines of an edit, or next to them."""
    text = edit.after
    if end < edit.start:
        return text.count("\n", end, edit.start) <= 1
    return start <= edit.end or text.count("\n", edit.end, start) <= 1
