"""What a fill says that rewrites a part of a file instead of filling a hole: the region, and what is known of it."""

import attrs

_MERGE_MARKS = ("<<<<<<< ", "\n=======\n", ">>>>>>> ")


@attrs.frozen
class PastEdit:
    """One of the user's last edits, as whole lines before and after it. `line` is the first of them, from 1."""

    path: str
    before: str
    after: str
    line: int = 1


@attrs.frozen
class Report:
    """What a compiler or linter says in the editor of a line of the region. `line` counts in the file, from 1."""

    line: int
    code: str
    message: str


@attrs.frozen
class Rewrite:
    """Asks for a region of a file as it is after the user's next edit. Around it are the fill's prefix and suffix.

    `region` has whole lines, which end with "\\n". `cursor` counts its characters, and is -1 where the cursor is
    elsewhere. Its first `kept` characters, which are whole lines too, stay as they are. `edits` has the oldest first.
    """

    region: str
    cursor: int = -1
    kept: int = 0
    edits: list[PastEdit] = attrs.field(factory=list)
    reports: list[Report] = attrs.field(factory=list)


def has_merge_marks(text: str) -> bool:
    """Return whether a text is in the middle of a merge, or a model wrote it so: no region is, and no change."""
    return any(mark in f"\n{text}" for mark in _MERGE_MARKS)


def changed_part(before: str, after: str) -> tuple[int, int, int]:
    """Return the part that differs: its start in both texts, its end in `before` and its end in `after`."""
    shorter = min(len(before), len(after))
    start = _common(before, after, shorter)
    tail = _common(before[::-1], after[::-1], shorter - start)
    return start, len(before) - tail, len(after) - tail


def _common(one: str, other: str, most: int) -> int:
    """Return the length of the start that both texts share."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if one[low:middle] == other[low:middle] else (low, middle - 1)
    return low
