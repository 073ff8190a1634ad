"""Texts that nobody wants unasked: what the user just deleted, and what only changes the formatting."""

import re

from lsp_server.documents.deletions import Lost
from lsp_server.documents.store import Snapshot

_CONTENT = re.compile(r"[^\s,;]")
_RETYPED = 2
"""Characters. Who types so many of the deleted ones again wants them back."""


def only_formats(text: str) -> bool:
    """Return whether `text` adds nothing but white space, commas and semicolons."""
    return _CONTENT.search(text) is None


def gives_back(snapshot: Snapshot, offset: int, text: str) -> bool:
    """Return whether `text` at `offset` gives back what the user just deleted or replaced there.

    A single deleted character was a typo, and does not count.
    """
    return any(_restores(text, lost) for lost in snapshot.deletions.lost_at(snapshot.text, offset))


def _restores(text: str, lost: Lost) -> bool:
    """Return whether `text` brings back all of `lost` or its first line; right after the deletion, also its start."""
    given, gone = text.strip(), lost.text.strip()
    retyped = len(lost.retyped.strip())
    if len(gone) + retyped <= 1 or not gone or retyped >= _RETYPED:
        return False
    if _begins_with(given, gone) or given.partition("\n")[0].rstrip() == gone.partition("\n")[0].rstrip():
        return True
    return not retyped and _begins_with(gone, given)


def _begins_with(text: str, start: str) -> bool:
    """Return whether `text` begins with `start`, which does not end inside a word of `text`."""
    return bool(start) and text.startswith(start) and not re.match(r"\w\w", text[len(start) - 1 :])
