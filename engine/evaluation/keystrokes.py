"""Keys: how many it takes to type a text, and whether a suggestion is right as far as it goes.

Keys count: one for each character, and one for a newline with its indentation, which an editor writes.
"""

import re

_KEY = re.compile(r"\n[ \t]*|.", re.DOTALL)
_INSIDE_WORD = re.compile(r"\w\w|\d\.\d|(?<=\d)\.\d")


def keys(text: str) -> int:
    """Return how many keys it takes to type `text`."""
    return len(_KEY.findall(text))


def next_key(rest: str) -> str:
    """Return what the next key types of `rest`: a character, or a newline with its indentation; "" at the end."""
    key = _KEY.match(rest)
    return key[0] if key else ""


def is_start(first: str, line: str) -> bool:
    """Tell whether `first` is `line`, or a start of it that does not end inside a name or a number; "" is no start."""
    return bool(first) and line.startswith(first) and not _INSIDE_WORD.match(line, len(first) - 1)
