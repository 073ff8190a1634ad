"""Edits of a document: the user's last ones, and what they deleted."""

import re
from collections.abc import Iterator, Sequence

import attrs

_MAX_EDITS = 8
_MAX_DROPPED = 1000
_MAX_CHARS = 1_000_000
"""An edit keeps the text before and after it, so the edits of long texts are not kept."""
_MAX_DELETIONS = 4
MOST_PARSED = 200_000
"""Characters. The edits of longer texts are no examples: both texts would be parsed."""
_MOST_EXAMPLE_LINES = 20
_WORD_CHAR = re.compile(r"\w")


@attrs.frozen
class RecentEdit:
    """What the user did at one place: the whole text before and after it, and the part that it touched.

    `start` and `end` are characters of `after`; `start` and `old_end` those of `before`. Outside of them both are
    equal. `serial` counts the edits of a document, and stays the same while an edit goes on. `changes` counts the
    editor's changes: a key makes one, and what is pasted too. `at` is where the last of them ended.
    """

    before: str
    after: str
    start: int
    old_end: int
    end: int
    serial: int
    changes: int = 1
    at: int = 0

    @property
    def undone(self) -> bool:
        """Whether the edit left everything as it was."""
        return self.before[self.start : self.old_end] == self.after[self.start : self.end]

    @property
    def may_be_example(self) -> bool:
        """Whether it could be an example of a rule, by a look at its lines only: new lines are none."""
        if self.undone or max(len(self.before), len(self.after)) > MOST_PARSED:
            return False
        first = self.before.rfind("\n", 0, self.start) + 1
        last = self.before.find("\n", self.old_end)
        lines = self.before[first : last if last >= 0 else len(self.before)]
        new_lines = self.after.count("\n", self.start, self.end)
        return bool(lines.strip()) and max(lines.count("\n"), new_lines) < _MOST_EXAMPLE_LINES

    def is_in_progress(self, offset: int) -> bool:
        """Return whether the cursor is after a word that it wrote, and that may go on: the file has no other such."""
        word = self._word(offset)
        return bool(word) and (word[0].isdigit() or len(re.findall(rf"\b{re.escape(word)}\b", self.after)) < 2)

    def is_behind_word(self, offset: int) -> bool:
        """Return whether the cursor is after a word that it wrote."""
        return bool(self._word(offset))

    def _word(self, offset: int) -> str:
        """Return the word that the edit wrote before an offset; "" if it wrote none, or the word goes on there."""
        text = self.after
        if not self.start <= offset <= self.end or _WORD_CHAR.match(text, offset):
            return ""
        start = offset
        while start and _WORD_CHAR.match(text, start - 1):
            start -= 1
        return text[start:offset]


@attrs.frozen
class RecentEdits:
    """The last edits of a document, the newest last.

    A change on the lines of the newest edit, or on the line next to them, goes on with it, unless these lines are new
    and the change before it was further away in them. Any other change begins an edit of its own. A text that was there
    before an edit takes that edit and all later ones back: undo may go back over several, and would else count as an
    edit the other way round.
    """

    _edits: tuple[RecentEdit, ...] = ()
    _serial: int = 0
    _dropped: tuple[tuple[int, int], ...] = ()
    """The length and the hash of the text before each edit that is no longer kept. A bulk edit makes many edits."""

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
        if (back := self._taken_back(after)) is not None:
            return back
        last = self._edits[-1] if self._edits else None
        if last is None or not _is_near(last, start, end) or _returns_to_new_lines(last, start):
            edit = RecentEdit(before, after, start, end, new_end, self._serial + 1, at=new_end)
            edits = *self._edits, edit
            left = ((len(one.before), hash(one.before)) for one in edits[:-_MAX_EDITS])
            return RecentEdits(edits[-_MAX_EDITS:], self._serial + 1, (*self._dropped, *left)[-_MAX_DROPPED:])
        # Text outside of the edit until now is equal in `last.before` and `before`, moved by its growth.
        growth = last.end - last.old_end
        edit = RecentEdit(
            last.before,
            after,
            min(last.start, start),
            max(last.old_end, end - growth),
            max(last.end, end) + (new_end - end),
            last.serial,
            last.changes + 1,
            new_end,
        )
        return RecentEdits((*self._edits[:-1], edit), self._serial, self._dropped)

    def _taken_back(self, text: str) -> "RecentEdits | None":
        """Return the edits that are left where the text is again what it was before one of them; else None.

        That one is kept as undone, so that what follows it at its place goes on with it.
        """
        sizes = [size for size, _ in self._dropped]
        if len(text) in sizes and (mark := (len(text), hash(text))) in self._dropped:
            return RecentEdits((), self._serial, self._dropped[: self._dropped.index(mark)])
        for number, edit in enumerate(self._edits):
            if edit.before == text:
                undone = attrs.evolve(edit, after=text, end=edit.old_end, changes=edit.changes + 1)
                return RecentEdits((*self._edits[:number], undone), self._serial, self._dropped)
        return None


def _is_near(edit: RecentEdit, start: int, end: int) -> bool:
    """Return whether `edit.after[start:end]` is on the lines of an edit, or next to them."""
    text = edit.after
    if end < edit.start:
        return text.count("\n", end, edit.start) <= 1
    return start <= edit.end or text.count("\n", edit.end, start) <= 1


def _returns_to_new_lines(edit: RecentEdit, start: int) -> bool:
    """Return whether `start` is in lines that the edit added, and more than a line away from its last change."""
    first, last = sorted((start, edit.at))
    # Each key asks this: most are on the line of the last change.
    is_away = edit.start <= start <= edit.end and edit.after.count("\n", first, last) > 1
    return is_away and not edit.undone and not edit.may_be_example


@attrs.frozen
class Deletion:
    """A run of deletions at one place. `typed` characters from `start` on have taken the place of the text `lost`.

    `drift` is by how much the rest of the text has grown since.
    """

    lost: str
    start: int
    typed: int = 0
    drift: int = 0

    def moved(self, start: int, end: int, length: int) -> "Deletion | None":
        """Return the run after `length` characters took the place of those from `start` to `end`.

        None if these were partly its own.
        """
        growth = length - (end - start)
        if self.start <= start and end <= self.start + self.typed:
            return attrs.evolve(self, typed=self.typed + growth)
        if end <= self.start:
            return attrs.evolve(self, start=self.start + growth, drift=self.drift + growth)
        return attrs.evolve(self, drift=self.drift + growth) if start >= self.start + self.typed else None


@attrs.frozen
class Lost:
    """The text that a deletion took away at the cursor. `retyped` is the start of it that the user typed again."""

    text: str
    retyped: str


@attrs.frozen
class Deletions:
    """The last runs of deletions of a document, the newest last.

    Lines stay lost when something is edited elsewhere; a part of a line may be wanted again after that.
    """

    _runs: tuple[Deletion, ...] = ()
    _under_way: bool = False

    def edited(self, text: str, start: int, end: int, new: str) -> "Deletions":
        """Return the deletions after `new` took the place of `text[start:end]`."""
        newest = self._runs[-1] if self._under_way and start < end else None
        if newest is not None and newest.start in (start, end):
            earlier, gone = self._runs[:-1], text[start:end]
            run = Deletion(gone + newest.lost if end == newest.start else newest.lost + gone, start, len(new))
        else:
            earlier, run = self._runs, Deletion(text[start:end], start, len(new))
        runs = [moved for one in earlier if (moved := one.moved(start, end, len(new))) is not None]
        return Deletions((*runs, run)[-_MAX_DELETIONS:], not new) if start < end else Deletions(tuple(runs))

    def lost_at(self, text: str, offset: int) -> Iterator[Lost]:
        """Yield what insertions at `offset` would have to be to undo a deletion, for each deletion that they can."""
        for run in self._runs:
            if run.drift and "\n" not in run.lost:
                continue
            before = text[: run.start] + run.lost + text[run.start + run.typed :]
            fits = before.startswith(text[:offset]) and before.endswith(text[offset:])
            end = len(before) - (len(text) - offset)
            if fits and end > offset:
                yield Lost(before[offset:end], text[run.start : offset])
