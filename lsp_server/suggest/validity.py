"""Whether a fill adds syntax errors. While someone types a file seldom parses, so it only must not get worse."""

import re
import sys
import time

import attrs

from lsp_server.documents.store import Snapshot
from lsp_server.hole.hole import Hole
from lsp_server.languages.language import balance
from lsp_server.languages.parsing import errors

_MAX_TRIES = 10
# A try takes one or two incremental parses. Each takes far less than a millisecond, except below an unclosed bracket in
# a very long file, where the parser visits everything that follows.
_MAX_SECONDS = 0.012
"""Of this thread's work for all tries together: nothing else is answered meanwhile. A busy machine shows the same."""
_TOKEN_END = re.compile(r"\w+|[^\w\s]")


@attrs.frozen
class Damage:
    """The syntax errors of a text: their total, and where those on the fill's own lines begin.

    `local` counts characters from the start of the fill; an error that begins before the fill is negative.
    """

    total: int
    local: tuple[int, ...]


_CLEAN = Damage(0, ())
_UNREADABLE = Damage(sys.maxsize, (0,))
"""Of a text for whose parse there was no time."""


class SyntaxJudge:
    """Compares the document with a fill in its hole to the document without it.

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
