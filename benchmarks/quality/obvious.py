"""Obvious names: names of a task that the code around it has, and no other that begins with the same characters.

A reader expects a completion there: were it silent, a list of the file's words would be better. It is shown if the
ghost text goes on with the name once its third character is typed, or before.
"""

import re
from collections import Counter

import attrs

_NAME = re.compile(r"[^\W\d]\w*")
_SHORTEST = 6
"""Characters. A shorter name has little left after the third."""
BEGUN = 3
"""Characters of a name that are typed when it has to be shown."""


@attrs.frozen
class ObviousName:
    """A name, and where it begins in the text of its task."""

    start: int
    text: str

    def is_shown(self, typed: int, ghost: str) -> bool:
        """Return whether the ghost text after `typed` characters of the task goes on with the whole name.

        Only until its third character is typed, and from its place on.
        """
        begun = typed - self.start
        if not 0 <= begun <= BEGUN:
            return False
        rest = self.text[begun:]
        return ghost.startswith(rest) and not re.match(r"\w", ghost[len(rest) :])

    def is_due(self, typed: int, written: int) -> bool:
        """Return whether the key that writes `written` characters after `typed` passes the name's third character."""
        return typed <= self.start + BEGUN < typed + written


def obvious_names(text: str, around: str) -> list[ObviousName]:
    """Return the obvious names of `text`, in their order; `around` is the code above and below it."""
    known = set(_NAME.findall(around))
    begun = Counter(name[:BEGUN] for name in known)
    return [
        ObviousName(found.start(), found[0])
        for found in _NAME.finditer(text)
        if len(found[0]) >= _SHORTEST and found[0] in known and begun[found[0][:BEGUN]] == 1
    ]
