"""Prompts of Zed's zeta2 format: a region of a file, related files and the latest edits; the region comes back.

The form is that of zed's crates/zeta_prompt, `seed_coder`: the text below the region, then related files, the edit
history and the file itself, in which the region has a marker where the cursor is.
"""

import re

import attrs

from engine.http.completion import Asked, Rewriting, Written
from engine.protocol.messages import Snippet

_SUFFIX, _PREFIX, _MIDDLE = "<[fim-suffix]>", "<[fim-prefix]>", "<[fim-middle]>"
_FILE, _HISTORY, _CURSOR = "<filename>", "edit_history", "<|user_cursor|>"
_BEGIN, _SEPARATOR, END = "<<<<<<< CURRENT\n", "=======\n", ">>>>>>> UPDATED\n"
_DIFF = re.compile(r"^(?:// User accepted prediction:\n)?--- a/(.*)\n\+\+\+ b/(.*)\n", re.MULTILINE)


@attrs.frozen
class ZetaPrompt:
    """What a prompt says. `snippets` are the related files in the client's order, the most important one first."""

    rewriting: Rewriting
    snippets: tuple[Snippet, ...]


def read_zeta(prompt: str) -> ZetaPrompt | None:
    """Return what a prompt of this format says; None for any other prompt."""
    text = prompt.rstrip("\n")
    if not text.startswith(_SUFFIX) or not text.endswith(_MIDDLE):
        return None
    below, found, head = text.removeprefix(_SUFFIX).removesuffix(_MIDDLE).partition(_PREFIX)
    head, is_marked, current = head.rpartition(_BEGIN)
    region, ended, rest = current.rpartition(_SEPARATOR)
    if not (found and is_marked and ended) or rest or region.count(_CURSOR) != 1:
        return None
    other_files, _, own = head.rpartition(_FILE)
    path, _, above = own.partition("\n")
    files = [file.partition("\n") for file in other_files.split(_FILE)[1:]]
    history = "".join(text for name, _, text in files if name.strip() == _HISTORY)
    related = tuple(Snippet(name.strip(), text) for name, _, text in files if name.strip() != _HISTORY and text.strip())
    cursor = region.index(_CURSOR)
    region = region.replace(_CURSOR, "")
    return ZetaPrompt(Rewriting(path.strip(), above, region, below, cursor, _latest(history, path.strip())), related)


def _latest(history: str, path: str) -> str:
    """Return the hunks of the newest edit if it was made in this file; "" otherwise."""
    edits = list(_DIFF.finditer(history))
    if not edits or not path.endswith(edits[-1][2].lstrip("/")):
        return ""
    return history[edits[-1].end() :].rstrip("\n")


def written(asked: Asked, region: str) -> Written:
    """Return a region as the text of an answer. Zed's zeta2 reads NO_EDITS as text: no edit is the region as it was."""
    stopped = any(END.startswith(stop) for stop in asked.stops)
    return Written(region if stopped else region + END, [], [], "stop", END.strip() if stopped else "")
