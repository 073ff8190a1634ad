"""Files that a program wrote: an edit of theirs would be lost."""

import re

_HEAD_LINES = 10
_SAYS_SO = re.compile(
    r"@generated\b|\bcode generated\b.*\bdo not edit\b|\bdo not (edit|modify)\b|\bauto-?generated\b", re.I
)
_COMMENT = re.compile(r"\s*(#|//|/\*|\*|--|<!--|;|%|\"\"\"|''')")


def is_generated(text: str) -> bool:
    """Return whether a comment at the start of a text says that it is generated, as in Go's convention."""
    lines = text[:2000].split("\n", _HEAD_LINES)[:_HEAD_LINES]
    return any(_COMMENT.match(line) and _SAYS_SO.search(line) for line in lines)
