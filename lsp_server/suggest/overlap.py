"""Where a fill begins to repeat what already stands behind the hole, or itself."""

import re

from lsp_server.hole.hole import Hole
from lsp_server.languages.brackets import balance
from lsp_server.languages.language import BRACKETS, Language

_MIN_PARTIAL = 3
_MIN_TELLING = 6
_MOST_LINES_IN_A_CYCLE = 4
_MOST_REPEATS = 2
_STUTTER = re.compile(r"((?=\S*\w)\S.{1,30}?)\1{4,}.{0,30}$")


def without_rest_of_line(fill: str, line_after: str) -> str:
    """Return `fill` up to where it writes the text after the cursor once more.

    A fill never ends with `line_after`, be it a name or a mark, unless that is only brackets and quotes: those may be
    the fill's own, and `without_closed_brackets` looks after them.
    """
    rest = line_after.strip()
    if not rest or re.fullmatch(r"[()\[\]{}\"'`\s;:,.]*[()\[\]{}\"'`][()\[\]{}\"'`\s;:,.]*", rest):
        return fill
    at = fill.find(rest)
    if at >= 0 and _is_telling(rest):
        return fill[:at]
    while fill.rstrip().endswith(rest):
        fill = fill.rstrip()[: -len(rest)]
    for length in range(min(len(rest) - 1, len(fill)), _MIN_PARTIAL - 1, -1):
        head = rest[:length]
        if fill.endswith(head) and _is_whole(fill, len(fill) - length) and _is_whole(rest, length):
            return fill[:-length] if len(head.strip()) >= _MIN_PARTIAL and re.search(r"\w", head) else fill
    return fill


def without_following_lines(fill: str, hole: Hole, language: Language) -> str:
    """Return `fill` up to the line from which it repeats the lines below the hole, indentation and all."""
    following = [line.rstrip() for line in hole.suffix.split("\n")[1:] if line.strip()]
    if not following or hole.line_after.strip(" \t)]}>;,:'\"`"):
        return fill
    lines = (hole.line_before + fill).split("\n")
    for index, line in enumerate(lines):
        if line.rstrip() != following[0]:
            continue
        tail = [other.rstrip() for other in lines[index:] if other.strip()]
        if not _is_telling(line) and tail != following[: len(tail)]:
            continue
        kept = "\n".join(lines[:index])
        own = balance(kept, language).opened
        if line.strip()[0] in ")]}" and own and BRACKETS[own[-1].char] == line.strip()[0]:
            continue
        return kept[len(hole.line_before) :] if index else ""
    return fill


def without_closed_brackets(fill: str, hole: Hole, language: Language) -> str:
    """Return `fill` up to the bracket or quote that the text after the cursor closes already.

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
    free = _left_for_the_fill(open_here, closed_after)
    for count, bracket in enumerate(inside.unmatched):
        if count < free and BRACKETS[open_here[count]] == bracket.char:
            continue
        if count < len(open_here) or _repeats(bracket.char, closed_after, count - free):
            return fill[: bracket.index]
    return fill


def without_repetition(fill: str) -> str:
    """Return `fill` without the lines, or cycles of a few lines, that come more than twice in a row, and without a
    stutter within its last line."""
    lines = fill.split("\n")
    for size in range(1, _MOST_LINES_IN_A_CYCLE + 1):
        for start in range(len(lines) - size * _MOST_REPEATS):
            cycle = lines[start : start + size]
            stop = start + size
            while lines[stop : stop + size] == cycle:
                stop += size
            if stop - start > size * _MOST_REPEATS and any(line.strip() for line in cycle):
                lines = lines[: start + size]
                break
    stutter = _STUTTER.search(lines[-1])
    if stutter:
        lines[-1] = lines[-1][: stutter.start() + len(stutter.group(1))]
    return "\n".join(lines)


def _left_for_the_fill(open_here: list[str], closed_after: list[str]) -> int:
    """Return how many of the brackets open before the cursor, innermost first, are not closed after it on the line."""
    for free in range(len(open_here)):
        rest = open_here[free:]
        if len(rest) <= len(closed_after) and all(
            BRACKETS[char] == closer for char, closer in zip(rest, closed_after, strict=False)
        ):
            return free
    return len(open_here)


def _repeats(closer: str, closed_after: list[str], index: int) -> bool:
    return 0 <= index < len(closed_after) and closed_after[index] == closer


def _is_telling(text: str) -> bool:
    """Return whether `text` is too much to stand in two places by chance: more than a word, or than `return`."""
    stripped = text.strip()
    return len(stripped) >= _MIN_TELLING and bool(re.search(r"\w", stripped)) and not re.fullmatch(r"\w+", stripped)


def _is_whole(text: str, at: int) -> bool:
    """Return whether no word of `text` goes across `at`."""
    return not re.match(r"\w\w", text[max(at - 1, 0) : at + 1]) or at == 0
