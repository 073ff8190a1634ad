"""Shaping keeps the part of a model's raw fill that fits the text around the hole."""

import re
import sys
import time

import attrs

from lsp_server.documents.store import Snapshot
from lsp_server.hole.hole import Hole, indent_of
from lsp_server.languages.language import BRACKETS, CLOSERS, Language, balance, errors

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
"""A fill. No suggestion that anybody reads is longer, and all that follows looks at each part of it."""
_MAX_TRIES = 10
# A try takes one or two incremental parses. Each takes far less than a millisecond, except below an unclosed bracket in
# a very long file, where the parser visits everything that follows.
_MAX_SECONDS = 0.012
"""This thread's work for all tries together: nothing else is answered meanwhile. A busy machine shows the same."""
_TOKEN_END = re.compile(r"\w+|[^\w\s]")


def shape(text: str, hole: Hole, snapshot: Snapshot, max_lines: int) -> str | None:
    """Return what to insert at the hole, with the document's line ends, or None when nothing is worth showing.

    The result does not repeat what follows, closes no bracket that is already closed, keeps the hole's indentation, has
    at most `max_lines` lines, and adds no syntax error to the document.
    """
    fill = _readable(text[:_MOST_CHARACTERS])
    if hole.extent == "line":
        fill = fill.split("\n", 1)[0]
    else:
        fill = "\n".join(_fitted(fill, hole, snapshot.language).split("\n")[:max_lines])
        fill = _until_dedent(fill, hole, snapshot.language)
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


def _fitted(fill: str, hole: Hole, language: Language) -> str:
    """Return `fill` with a first line that continues the hole's own indentation.

    A model may repeat the indentation before the cursor, or leave out the indentation that an empty body needs.
    """
    lines = fill.split("\n")
    while lines and not lines[0].strip():
        del lines[0]
    if not lines:
        return ""
    before = hole.line_before
    lead = indent_of(lines[0])
    rest = [line for line in lines[1:] if line.strip()]
    if lead and before and _width(before, language) >= _width(hole.indent, language):
        lines[0] = lines[0][len(lead) :]
        if rest and all(_width(indent_of(line), language) >= _width(before + lead, language) for line in rest):
            lines[1:] = [line.removeprefix(lead) for line in lines[1:]]
    elif hole.cursor_context == "body" and hole.indent.startswith(before) and lead != hole.indent[len(before) :]:
        missing = hole.indent[len(before) :]
        lines[0] = missing + lines[0][len(lead) :]
        if (
            not lead
            and rest
            and min(_width(indent_of(line), language) for line in rest) < _width(hole.indent, language)
        ):
            lines[1:] = [missing + line if line.strip() else line for line in lines[1:]]
    return "\n".join(lines)


def _until_dedent(fill: str, hole: Hole, language: Language) -> str:
    """Return the lines of `fill` before the first that is indented less than the hole, without blank lines at the end.

    Lines inside a string, and lines that close a bracket of the fill, may be indented less.
    """
    lines = fill.split("\n")
    level = _width(indent_of(hole.line_before + lines[0]), language)
    kept = [lines[0]]
    for line in lines[1:]:
        if line.strip() and _width(indent_of(line), language) < level:
            so_far = balance("\n".join(kept), language)
            closes_own = line.lstrip()[0] in CLOSERS and so_far.opened
            if not so_far.quote and not closes_own:
                break
        kept.append(line)
    while len(kept) > 1 and not kept[-1].strip():
        kept.pop()
    return "\n".join(kept)


def _width(indent: str, language: Language) -> int:
    return len(indent.expandtabs(language.indent_width))


@attrs.frozen
class Damage:
    """The syntax errors of a text: their total, and where those on the fill's own lines begin.

    `local` counts characters from the start of the fill; an error that begins before the fill is negative.
    """

    total: int
    local: tuple[int, ...]


_CLEAN = Damage(0, ())
_UNREADABLE = Damage(sys.maxsize, (0,))
"""The damage of a text that there was no time to parse."""


class SyntaxJudge:
    """Compares the document with a fill in its hole to the document without it.

    While someone types a file seldom parses, so it only must not get worse.

    It counts the outermost ERROR nodes and the MISSING tokens. An unclosed bracket is one error, no matter how much of
    the text after it the error contains.
    """

    def __init__(self, snapshot: Snapshot, hole: Hole) -> None:
        self._snapshot = snapshot
        self._hole = hole
        self._before: int | None = None
        self._until = 0.0

    def cleanest(self, fill: str) -> str | None:
        """Return the longest start of `fill` that adds no syntax error, or None.

        Whole lines are dropped from the end first, then tokens of the only line left. Without a grammar nothing is
        dropped, and if there is no time to judge the whole fill.
        """
        if self._snapshot.tree is None:
            return fill
        self._until = time.thread_time() + _MAX_SECONDS
        damage = self._damage(fill)
        if damage in (_CLEAN, _UNREADABLE) or (not damage.local and damage.total <= self._allowed()):
            return fill
        fallback = fill if damage.total <= self._allowed() else None
        for part in _parts(fill, damage):
            if time.thread_time() > self._until:
                break
            after = self._damage(part)
            if after.total <= self._allowed():
                if not after.local:
                    return part
                fallback = fallback or part
        return fallback

    def _allowed(self) -> int:
        if self._before is None:
            tree = self._snapshot.tree
            self._before = len(errors(tree.root_node)) if tree is not None else 0
        return self._before

    def _damage(self, fill: str) -> Damage:
        """Return the damage of the fill as it is, or with its open brackets and bodies closed, if that is less.

        A fill often ends with the header of a body that is still to be written, or inside a call.
        """
        plain = self._parse(fill, "")
        closing = self._closing(fill)
        if not closing or plain.total == 0:
            return plain
        closed = self._parse(fill, closing)
        return min(plain, closed, key=lambda damage: (damage.total, len(damage.local)))

    def _closing(self, fill: str) -> str:
        language, hole = self._snapshot.language, self._hole
        last_line = (hole.line_before + fill).rpartition("\n")[2].rstrip()
        opener = language.opener_of(last_line)
        filled = balance(hole.line_before + fill, language)
        after = balance(hole.line_after, language, filled.quote)
        quote = filled.quote if after.quote_closed is None else ""
        brackets = filled.closing()[: max(len(filled.opened) - len(after.unmatched), 0)]
        return quote + (opener.closing if opener else "") + brackets

    def _parse(self, fill: str, closing: str) -> Damage:
        snapshot, start = self._snapshot, self._hole.offset
        left = self._until - time.thread_time()
        filled = snapshot.replaced(start, start, fill + closing, left)
        if filled.tree is None:
            return _UNREADABLE
        if not filled.tree.root_node.has_error:
            return _CLEAN
        source = filled.source
        first = source.byte_at(start - len(self._hole.line_before))
        last = source.byte_at(source.line_end(source.lines.at(start + len(fill) + len(closing))))
        nodes = errors(filled.tree.root_node)
        local = (node for node in nodes if node.start_byte <= last and node.end_byte >= first)
        return Damage(len(nodes), tuple(source.offset_of_byte(node.start_byte) - start for node in local))


def _parts(fill: str, damage: Damage) -> list[str]:
    """Return the starts of `fill` to try, longest first: whole lines, then the first line up to an error or a token."""
    lines = fill.split("\n")
    whole_lines = ["\n".join(lines[:count]) for count in range(len(lines) - 1, 0, -1)][: _MAX_TRIES // 2]
    ends = [match.end() for match in _TOKEN_END.finditer(lines[0])][:-1]
    cuts = {*ends[-_MAX_TRIES // 2 :], *(index for index in damage.local if 0 < index < len(lines[0]))}
    first_lines = [lines[0][:cut].rstrip() for cut in sorted(cuts, reverse=True)]
    return [part for part in [*whole_lines, *first_lines] if part.strip()][:_MAX_TRIES]
