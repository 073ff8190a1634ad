"""Other open files, as snippets for a model that has room for them."""

import re
from collections.abc import Iterable, Sequence
from pathlib import PurePath

import attrs

from engine.protocol.messages import Snippet

_AROUND = 15
"""Lines above and below a place that was edited."""
_HEAD = 40
"""Lines of a file that is too long to be shown whole: what it imports, and the first of what it defines."""
_ANYWHERE = frozenset({"__init__", "__main__", "index", "main", "mod", "lib", "init"})
"""Names of files that stand for their folder."""


@attrs.frozen
class OtherFile:
    """An open file besides the one that is filled. `places` are the lines last edited in it, the latest first."""

    path: str
    language: str
    text: str
    places: Sequence[int]


def snippets(text: str, language: str, others: Iterable[OtherFile], room: int) -> list[Snippet]:
    """Return what of other files, given with the latest first, fits into `room` characters; the most telling first.

    A file that the text names (imports it, as a rule) tells more than one in the same language, and that more than any
    other; among equals the latest does.
    """
    words = set(re.findall(r"\w+", text))
    ranked = sorted(others, key=lambda other: (_name_of(other.path) not in words, other.language != language))
    found: list[Snippet] = []
    for other in ranked:
        shown = _whole_or_parts(other, room)
        if shown.strip():
            found.append(Snippet(other.path, shown))
            room -= len(shown)
    return found


def _name_of(path: str) -> str:
    file = PurePath(path)
    return file.parent.name if file.stem in _ANYWHERE else file.stem


def _whole_or_parts(other: OtherFile, room: int) -> str:
    """Return a file's text; of one that is too long, its head and the lines around its places; "" if nothing fits."""
    if len(other.text) <= room:
        return other.text
    lines = other.text.splitlines(keepends=True)
    shown: set[int] = set()
    for wanted in (*(range(place - _AROUND, place + _AROUND + 1) for place in other.places), range(_HEAD)):
        more = shown.union(line for line in wanted if 0 <= line < len(lines))
        if sum(len(lines[line]) for line in more) + len(more) > room:
            break
        shown = more
    # A line that is followed by a gap says so with an empty one.
    return "".join(lines[line] + ("" if line + 1 in shown else "\n") for line in sorted(shown))
