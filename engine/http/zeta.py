"""Prompts of Zed, in its zeta2 format: they have a region of a file, related files and the latest edits.

Zed wants the region back. The form is that of zed's crates/zeta_prompt, `seed_coder`: the text below the region, then
related files, the edit history and the file itself, in which the region has a marker where the cursor is. In zeta2.1
(`V0318SeedMultiRegions` of its src/multi_region.rs) the region has numbered marks at its start, at its end and between,
and the answer has the text between two of them.
"""

import re
from collections import deque
from itertools import accumulate, pairwise, zip_longest

import attrs

from engine.http.completion import Asked, Written
from engine.http.connection import Problem
from engine.http.rewriting import Rewriting
from engine.protocol.framing import MAX_SNIPPETS
from engine.protocol.messages import Snippet
from engine.protocol.rewrite import PastEdit

_SUFFIX, _PREFIX, _MIDDLE = "<[fim-suffix]>", "<[fim-prefix]>", "<[fim-middle]>"
_FILE, _HISTORY, _CURSOR = "<filename>", "edit_history", "<|user_cursor|>"
_BEGIN, _SEPARATOR, END = "<<<<<<< CURRENT\n", "=======\n", ">>>>>>> UPDATED\n"
_MARK = re.compile(r"<\|marker_(\d{1,6})\|>")
_MOST_EDITS, _MOST_EDIT_CHARACTERS = 3, 1_200
"""Zed's hunks have three lines around each change."""
_CUT_OFF = Problem(400, "the region of the prompt is cut off; send all of it, with its marks and one cursor")
_DIFF = re.compile(r"^(?:// User accepted prediction:\n)?--- a/(.*)\n\+\+\+ b/(.*)\n", re.MULTILINE)


@attrs.frozen
class ZetaPrompt:
    """What a prompt says. `snippets` are the related files in the client's order, the most important one first."""

    rewriting: Rewriting
    snippets: tuple[Snippet, ...]


def read_zeta(prompt: str) -> ZetaPrompt | None:
    """Return what a prompt of this format says; None for any other prompt.

    Raises Problem for a region that is cut off: what a client would put in its place would delete the rest.
    """
    text = prompt.rstrip("\n")
    if not text.startswith(_SUFFIX) or not (text.endswith(_MIDDLE) or _CURSOR in text):
        return None
    if not text.endswith(_MIDDLE):
        raise _CUT_OFF
    below, found, head = text.removeprefix(_SUFFIX).removesuffix(_MIDDLE).partition(_PREFIX)
    if not found or head.count(_CURSOR) < 1:
        return None
    marks: list[int] = []
    if _BEGIN in head:
        head, _, current = head.rpartition(_BEGIN)
        region, ended, rest = current.rpartition(_SEPARATOR)
    else:
        head, region, rest, marks = _between_marks(head)
        ended = "" if len(marks) < 2 else _MARK.pattern
    if not ended or rest.strip("\n") or region.count(_CURSOR) != 1:
        raise _CUT_OFF
    other_files, _, own = head.rpartition(_FILE)
    path, _, above = own.partition("\n")
    files = [file.partition("\n") for file in other_files.rsplit(_FILE, MAX_SNIPPETS + 1)[1:]]
    history = "".join(text for name, _, text in files if name.strip() == _HISTORY)
    related = tuple(Snippet(name.strip(), text) for name, _, text in files if name.strip() != _HISTORY and text.strip())
    cursor = region.index(_CURSOR)
    region = region.replace(_CURSOR, "")
    places = tuple(mark - (mark > cursor) * len(_CURSOR) for mark in marks)
    latest = _latest(history, path.strip())
    rewriting = Rewriting(path.strip(), above, region, below, cursor, latest, places, _edits(history))
    return ZetaPrompt(rewriting, related)


def _between_marks(head: str) -> tuple[str, str, str, list[int]]:
    """Return the text before the marks 1, 2, ..., that between them without marks, that after, and their offsets."""
    start = head.rfind("<|marker_1|>", 0, head.rfind(_CURSOR))
    found = list(_MARK.finditer(head, max(start, 0)))
    if start < 0 or [int(mark[1]) for mark in found] != [*range(1, len(found) + 1)]:
        return head, "", "", []
    blocks = [head[one.end() : other.start()] for one, other in pairwise(found)]
    offsets = [*accumulate(map(len, blocks), initial=0)]
    return head[:start], "".join(blocks), head[found[-1].end() :], offsets


def _latest(history: str, path: str) -> str:
    """Return the hunks of the newest edit if it was made in this file; "" otherwise."""
    newest = next(iter(deque(_DIFF.finditer(history), maxlen=1)), None)
    if newest is None or not path.endswith(newest[2].lstrip("/")):
        return ""
    return history[newest.end() :].rstrip("\n")


def _edits(history: str) -> tuple[PastEdit, ...]:
    """Return the last hunks of the edit history, without those that are too long or change nothing."""
    found: list[PastEdit] = []
    for diff, following in zip_longest(heads := list(_DIFF.finditer(history)), heads[1:]):
        hunks = history[diff.end() : following.start() if following else None].split("\n@@ -")
        for hunk in [hunks[0].removeprefix("@@ -"), *hunks[1:]][-_MOST_EDITS:]:
            head, _, body = hunk.partition("\n")
            lines = [line for line in body.split("\n") if line[:1] in (" ", "-", "+") and line]
            before, after = ("".join(f"{line[1:]}\n" for line in lines if line[0] != gone) for gone in "+-")
            number = head.partition(",")[0].partition(" ")[0]
            if before != after and len(before) + len(after) <= _MOST_EDIT_CHARACTERS and number.isdecimal():
                found.append(PastEdit(diff[2].strip(), before, after, max(1, int(number[:9]))))
    return tuple(found[-_MOST_EDITS:])


def written(asked: Asked, region: str) -> Written:
    """Return a region as the text of an answer. Zed's zeta2 reads NO_EDITS as text: no edit is the region as it was."""
    end, start = END, ""
    if asked.rewriting is not None and (marks := asked.rewriting.marks):
        # The text between two marks takes the place of what is between them; the same mark twice is no edit.
        start, end = "<|marker_1|>", f"<|marker_{len(marks)}|>"
        if region == asked.rewriting.region:
            return Written(start * 2, [], [], "stop")
    stopped = any(end.startswith(stop) for stop in asked.stops)
    text = start + region
    return Written(text if stopped else text + end, [], [], "stop", end.strip() if stopped else "")
