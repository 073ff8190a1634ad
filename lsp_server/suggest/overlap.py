"""Where a fill begins to repeat the text after the hole, or itself."""

import re

from lsp_server.hole.hole import Hole
from lsp_server.languages.brackets import balance
from lsp_server.languages.language import BRACKETS, Language

_MIN_PARTIAL = 3
_MIN_UNUSUAL = 6
_MAX_CYCLE_LINES = 4
_MAX_REPEATS = 2
_STUTTER = re.compile(r"((?=\S*\w)\S.{1,30}?)\1{4,}.{0,30}$")


def without_rest_of_line(fill: str, line_after: str) -> str:
    """Return `fill` up to where it repeats the text after the cursor.

    The result never ends with `line_after`, unless that is only brackets and quotes. Those may belong to the fill;
    `without_closed_brackets` decides about them.
    """
    rest = line_after.strip()
    if not rest or re.fullmatch(r"[()\[\]{}\"'`\s;:,.]*[()\[\]{}\"'`][()\[\]{}\"'`\s;:,.]*", rest):
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


def without_following_lines(fill: str, hole: Hole, language: Language) -> str:
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


def without_closed_brackets(fill: str, hole: Hole, language: Language) -> str:
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


def without_repetition(fill: str) -> str:
    """Return `fill` with each line, or cycle of a few lines, that comes more than twice in a row kept once.

    Text repeated many times within the last line is kept once too.
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
    stutter = _STUTTER.search(lines[-1])
    if stutter:
        lines[-1] = lines[-1][: stutter.start() + len(stutter.group(1))]
    return "\n".join(lines)


def _count_unclosed(open_here: list[str], closed_after: list[str]) -> int:
    """Return how many of the open brackets, innermost first, the text after the cursor leaves for the fill to close."""
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
