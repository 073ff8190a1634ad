"""Shaping keeps the part of a model's raw fill that fits the text around the hole."""

import re

from lsp_server.documents.store import Snapshot
from lsp_server.hole.hole import Hole
from lsp_server.languages.language import BRACKETS, Language, balance
from lsp_server.suggest.indentation import fitted, until_dedent
from lsp_server.suggest.validity import SyntaxJudge

_MIN_PARTIAL = 3
"""Characters. A shorter overlap of a fill's end with the text after the cursor may be chance."""
_MIN_UNUSUAL = 6
"""Characters. A shorter text may come twice by chance."""
_MAX_CYCLE_LINES = 4
_MAX_REPEATS = 2
_ONLY_MARKS, _PAIRED_MARK = re.compile(r"[()\[\]{}\"'`\s;:,.]*"), re.compile(r"[()\[\]{}\"'`]")
_STUTTER = re.compile(r"((?=\S*\w)\S.{1,30}?)(?:\1){4,}+.{0,30}$")
_STUTTER_WINDOW = 400
"""Characters at the end of a line. Each may begin a unit of each length, so time grows with the square of this."""
_MOST_CHARACTERS = 4_000
"""Of a fill. No suggestion that anybody reads is longer, and all that follows looks at each part of it."""


def shape(text: str, hole: Hole, snapshot: Snapshot, max_lines: int) -> str | None:
    """Return what to insert at the hole, with the document's line ends, or None when nothing is worth showing.

    The result does not repeat what follows, closes no bracket that is already closed, keeps the hole's indentation, has
    at most `max_lines` lines, and adds no syntax error to the document.
    """
    fill = _readable(text[:_MOST_CHARACTERS])
    if hole.extent == "line":
        fill = fill.split("\n", 1)[0]
    else:
        fill = "\n".join(fitted(fill, hole, snapshot.language).split("\n")[:max_lines])
        fill = until_dedent(fill, hole, snapshot.language)
    fill = _without_repetition(fill)
    fill = without_what_follows(fill, hole, snapshot.language)
    if not fill.strip():
        return None
    clean = SyntaxJudge(snapshot, hole).cleanest(fill)
    # The syntax judge may have shortened the fill, which may now end with what follows.
    fill = without_what_follows(clean, hole, snapshot.language) if clean is not None else ""
    return fill.replace("\n", snapshot.source.newline) if fill.strip() else None


def without_what_follows(fill: str, hole: Hole, language: Language) -> str:
    """Return `fill` up to where it begins to repeat the text after the hole. Loops: one cut can expose another."""
    while True:
        shorter = _without_rest_of_line(fill, hole.line_after)
        shorter = _without_following_lines(shorter, hole, language)
        shorter = _trimmed(_without_closed_brackets(shorter, hole, language), hole)
        if shorter == fill:
            return fill
        fill = shorter


def _readable(text: str) -> str:
    """Return `text` with "\\n" line ends, up to the first NUL or undecodable character."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    for junk in ("\0", "\ufffd"):
        text = text.partition(junk)[0]
    return text


def _trimmed(fill: str, hole: Hole) -> str:
    """Return `fill` without white space at its end, unless that separates it from a word after the cursor."""
    after = hole.line_after
    separates_words = after[:1].isalnum() or after[:1] in ("_", '"', "'")
    return fill if separates_words else fill.rstrip()


def _without_rest_of_line(fill: str, line_after: str) -> str:
    """Return `fill` up to where it repeats the text after the cursor.

    The result never ends with `line_after`, unless that is only brackets and quotes. Those may belong to the fill;
    `_without_closed_brackets` decides about them.
    """
    rest = line_after.strip()
    if not rest or (_ONLY_MARKS.fullmatch(rest) and _PAIRED_MARK.search(rest)):
        return fill
    index = fill.find(rest)
    if index >= 0 and _is_unusual(rest):
        return fill[:index]
    while fill.rstrip().endswith(rest):
        fill = fill.rstrip()[: -len(rest)]
    for length in range(min(len(rest) - 1, len(fill)), _MIN_PARTIAL - 1, -1):
        head = rest[:length]
        if fill.endswith(head) and _is_word_boundary(fill, len(fill) - length) and _is_word_boundary(rest, length):
            return fill[:-length] if len(head.strip()) >= _MIN_PARTIAL and re.search(r"\w", head) else fill
    return fill


def _without_following_lines(fill: str, hole: Hole, language: Language) -> str:
    """Return `fill` up to the first line that repeats the line below the hole, with the same indentation."""
    following = [line.rstrip() for line in hole.suffix.split("\n")[1:] if line.strip()]
    if not following or hole.line_after.strip(" \t)]}>;,:'\"`"):
        return fill
    lines = (hole.line_before + fill).split("\n")
    for index, line in enumerate(lines):
        if line.rstrip() != following[0]:
            continue
        tail = [other.rstrip() for other in lines[index:] if other.strip()]
        if not _is_unusual(line) and tail != following[: len(tail)]:
            continue
        kept = "\n".join(lines[:index])
        own = balance(kept, language).opened
        if line.strip()[0] in ")]}" and own and BRACKETS[own[-1].char] == line.strip()[0]:
            continue
        return kept[len(hole.line_before) :] if index else ""
    return fill


def _without_closed_brackets(fill: str, hole: Hole, language: Language) -> str:
    """Return `fill` up to a closing bracket or quote that the text after the cursor already has.

    Brackets are matched on the hole's line from the inside out: in `foo(bar(|)` a fill may close one bracket, not two.
    """
    before = balance(hole.line_before, language)
    quote = before.quote
    after = balance(hole.line_after, language, quote)
    inside = balance(fill, language, quote)
    if inside.quote_closed is not None and after.quote_closed is not None:
        return fill[: inside.quote_closed]
    open_here = [bracket.char for bracket in reversed(before.opened)]
    closed_after = [bracket.char for bracket in after.unmatched]
    free = _count_unclosed(open_here, closed_after)
    for count, bracket in enumerate(inside.unmatched):
        if count < free and BRACKETS[open_here[count]] == bracket.char:
            continue
        if count < len(open_here) or _repeats_closer(bracket.char, closed_after, count - free):
            return fill[: bracket.index]
    return fill


def _without_repetition(fill: str) -> str:
    """Return `fill` without repetition: a line, or a cycle of lines, that comes more than twice in a row is kept once.

    The same holds for text that comes many times in a row in the last line.
    """
    lines = fill.split("\n")
    for size in range(1, _MAX_CYCLE_LINES + 1):
        for start in range(len(lines) - size * _MAX_REPEATS):
            cycle = lines[start : start + size]
            stop = start + size
            while lines[stop : stop + size] == cycle:
                stop += size
            if stop - start > size * _MAX_REPEATS and any(line.strip() for line in cycle):
                lines = lines[: start + size]
                break
    skipped = max(len(lines[-1]) - _STUTTER_WINDOW, 0)
    stutter = _STUTTER.search(lines[-1], skipped)
    if stutter:
        begin, unit = stutter.start(), stutter.group(1)
        while lines[-1].endswith(unit, 0, begin):  # it began before the window
            begin -= len(unit)
        lines[-1] = lines[-1][: begin + len(unit)]
    return "\n".join(lines)


def _count_unclosed(open_here: list[str], closed_after: list[str]) -> int:
    """Return how many of the open brackets, innermost first, the text after the cursor does not close."""
    for free in range(len(open_here)):
        rest = open_here[free:]
        if len(rest) <= len(closed_after) and all(
            BRACKETS[char] == closer for char, closer in zip(rest, closed_after, strict=False)
        ):
            return free
    return len(open_here)


def _repeats_closer(closer: str, closed_after: list[str], index: int) -> bool:
    return 0 <= index < len(closed_after) and closed_after[index] == closer


def _is_unusual(text: str) -> bool:
    """Return whether `text` is unlikely to be repeated by chance: long enough, and more than a single word."""
    stripped = text.strip()
    return len(stripped) >= _MIN_UNUSUAL and bool(re.search(r"\w", stripped)) and not re.fullmatch(r"\w+", stripped)


def _is_word_boundary(text: str, index: int) -> bool:
    """Return whether no word of `text` extends across `index`."""
    return not re.match(r"\w\w", text[max(index - 1, 0) : index + 1]) or index == 0
