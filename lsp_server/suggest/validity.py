"""Does a fill parse? Not "is the file right", which it never is while one types, but "is it no worse than before"."""

import re
import sys
import time

import attrs
import tree_sitter

from lsp_server.documents.store import Snapshot
from lsp_server.hole.hole import Hole
from lsp_server.languages.brackets import balance

_MAX_TRIES = 10
# A try is one incremental parse or two: far below a millisecond each, but in a very long file an unclosed bracket makes
# the parser look at all that is below it.
_MAX_SECONDS = 0.02
_TOKEN_END = re.compile(r"\w+|[^\w\s]")


@attrs.frozen
class Damage:
    """The syntax errors of a text: how many in all, and where those on the fill's own lines begin.

    `local` counts characters from the start of the fill; an error that begins before it is negative.
    """

    total: int
    local: tuple[int, ...]


_UNREADABLE = Damage(sys.maxsize, (0,))


class Judge:
    """Compares a document with a fill in its hole to the document without.

    What counts is the number of outermost ERROR nodes and of MISSING tokens: an unclosed bracket that swallows what
    follows is one error, however much is typed into it.
    """

    def __init__(self, snapshot: Snapshot, hole: Hole) -> None:
        self._snapshot = snapshot
        self._hole = hole
        self._before: int | None = None

    def cleanest(self, fill: str) -> str | None:
        """Return the longest part of `fill` from its start that adds no syntax error, or None.

        Whole lines are dropped from the end first, then tokens of the last one left. Without a grammar all is well.
        """
        if self._snapshot.tree is None:
            return fill
        damage = self._damage(fill)
        if damage.total == 0 or (not damage.local and damage.total <= self._allowed()):
            return fill
        fallback = fill if damage.total <= self._allowed() else None
        until = time.perf_counter() + _MAX_SECONDS
        for part in _parts(fill, damage):
            if time.perf_counter() > until:
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
        """Return the lesser damage of the fill as it is and of the fill with what it leaves open closed.

        A fill often ends with the header of a body that is yet to come, or inside a call.
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
        filled = snapshot.replaced(start, start, fill + closing)
        if filled.tree is None:
            return _UNREADABLE
        if not filled.tree.root_node.has_error:
            return Damage(0, ())
        source = filled.source
        first = source.byte_at(start - len(self._hole.line_before))
        last = source.byte_at(source.line_end(source.lines.at(start + len(fill) + len(closing))))
        found = errors(filled.tree.root_node)
        local = (node for node in found if node.start_byte <= last and node.end_byte >= first)
        return Damage(len(found), tuple(source.offset_of_byte(node.start_byte) - start for node in local))


def errors(root: tree_sitter.Node) -> list[tree_sitter.Node]:
    """Return the outermost ERROR nodes and the MISSING tokens; only subtrees with errors are visited."""
    found: list[tree_sitter.Node] = []
    pending = [root] if root.has_error else []
    while pending:
        node = pending.pop()
        if node.is_error or node.is_missing:
            found.append(node)
        else:
            pending.extend(child for child in node.children if child.has_error or child.is_missing)
    return found


def _parts(fill: str, damage: Damage) -> list[str]:
    """Return the beginnings of `fill` to try, longest first: whole lines, then the first one to an error or a token."""
    lines = fill.split("\n")
    wholes = ["\n".join(lines[:count]) for count in range(len(lines) - 1, 0, -1)][: _MAX_TRIES // 2]
    ends = [match.end() for match in _TOKEN_END.finditer(lines[0])][:-1]
    cuts = {*ends[-_MAX_TRIES // 2 :], *(at for at in damage.local if 0 < at < len(lines[0]))}
    firsts = [lines[0][:cut].rstrip() for cut in sorted(cuts, reverse=True)]
    return [part for part in [*wholes, *firsts] if part.strip()][:_MAX_TRIES]
