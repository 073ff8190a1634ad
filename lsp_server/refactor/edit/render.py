"""The text of a place after the edit: the template, with the place's own text, gaps and indentation."""

import re
from collections.abc import Collection, Mapping, Sequence

import attrs

from lsp_server.refactor.code.grammar import level
from lsp_server.refactor.code.node import Node
from lsp_server.refactor.code.syntax import Syntax
from lsp_server.refactor.edit.layout import Layout, Output, layout_of_added
from lsp_server.refactor.edit.parentheses import needed_around, needed_in, without_old
from lsp_server.refactor.places.insertion_places import first_line_beside, position_of, tails_of, with_line_ends
from lsp_server.refactor.rules.matching import Bound, Match
from lsp_server.refactor.rules.pattern import Hole, Item, Leaf, Rest, Text
from lsp_server.refactor.rules.rule import Rule
from lsp_server.refactor.rules.task import Inserts

OPENING = frozenset("([{")
CLOSING = frozenset({")", "]", "}", ">", "/>"})
_WORD = re.compile(rb"\w")
_ENDS = CLOSING | {"'", '"', "`"}
"""Tokens without a name that an element of a list may end with."""


class LeftOut(Exception):
    """A place fits, but must not be edited. The message says why, as a phrase."""


@attrs.frozen(eq=False)
class Place:
    """A match of a rule, with the layout of the rule. `doubt` says why it may mean something else; it may be empty."""

    rule: Rule
    match: Match
    layout: Layout
    doubt: str = ""


@attrs.frozen(eq=False)
class File:
    """What rendering needs of a file: its syntax, line end and step of indentation, and the places inside of places."""

    syntax: Syntax
    newline: str
    unit: str
    inner: Mapping[int, Sequence[Place]]
    """The places directly inside of a place, by the id of the outer one's match."""


def render(place: Place, file: File, output: Output) -> None:
    """Write the text of a place. Raises LeftOut, and then the output must be dropped."""
    rendering, inserts = _Rendering(place, file, output), place.rule.task
    if not isinstance(inserts, Inserts):
        rendering.write()
        return
    at, added = position_of(inserts, place.match), _added(place, inserts, file)
    rendering.keep(place.match.start, at)
    output.text(with_line_ends(inserts, place.match, added, file.syntax))
    rendering.keep(at, place.match.end)


def _added(place: Place, inserts: Inserts, file: File) -> list[str]:
    """Return the statements that an edit adds at a place, as lines with their indentation."""
    syntax, start = file.syntax, first_line_beside(place.match, inserts)
    texts: list[str] = []
    for statement, tail in zip(inserts.statements, tails_of(inserts, place.match, syntax), strict=True):
        output = Output(syntax, start, "\n")
        rule = attrs.evolve(place.rule, template=(statement,))
        one = attrs.evolve(place, rule=rule, layout=layout_of_added(rule, statement))
        _Rendering(one, file, output).items()
        pieces = (part if isinstance(part, str) else syntax.text(part.start, part.end) for part in output.pieces)
        texts.append(syntax.line_indent(start) + "".join(pieces) + tail)
    return texts


class _Rendering:
    def __init__(self, place: Place, file: File, output: Output) -> None:
        self._place, self._file, self._output = place, file, output
        self._match, self._rule = place.match, place.rule
        self._is_insertion = isinstance(place.rule.task, Inserts)
        self._layout = place.layout
        self._base = output.indent
        self._brackets: list[str] = []
        """The gap after each bracket that is open: with a line end in it the list has one element a line."""

    def write(self) -> None:
        first = len(self._output.pieces)
        wrap = needed_around(self._rule, self._match)
        if wrap:
            self._output.text("(")
        last = self.items()
        if last is not None:
            self._tail(last)
        if wrap:
            self._output.text(")")
        self._keep_apart(first)
        self._check_comments(first)

    def _keep_apart(self, first: int) -> None:
        """Put a space between a word before the place and one that it begins with now: `Bag& x` becomes `Bag x`."""
        data, pieces, start = self._file.syntax.data, self._output.pieces, self._match.start
        head = pieces[first] if first < len(pieces) else ""
        begins = head[:1].encode() if isinstance(head, str) else data[head.start : head.start + 1]
        if _WORD.fullmatch(data[start - 1 : start]) and _WORD.fullmatch(begins):
            pieces.insert(first, " ")

    def items(self) -> int | None:
        """Write the items of the template, and return the index of the last one that is not empty."""
        last: int | None = None
        for index, item in enumerate(self._layout.template):
            if self._is_empty(item):
                continue
            if last is not None:
                self._gap(last, index)
            self._item(index, item)
            last = index
        return last

    # Items.

    def _item(self, index: int, item: Item) -> None:
        aligned = self._layout.aligned.get(index)
        if isinstance(item, Text):
            for part in item.parts:
                if isinstance(part, str):
                    self._output.text(part)
                else:
                    self._bound(self._variable(part.name))
        elif isinstance(item, Hole):
            bound = self._match.bounds[aligned] if aligned is not None else self._variable(item.name)
            self._hole(index, item, bound)
        elif isinstance(item, Rest):
            self._bound(self._match.bounds[aligned] if aligned is not None else self._variable(item.name))
        elif aligned is not None:
            bound = self._match.bounds[aligned]
            self._output.keep(bound.start, bound.end)
        else:
            self._output.text(item.text)
        if isinstance(item, Leaf) and item.text in (*OPENING, "<"):
            self._brackets.append("")
        elif closes(item) and self._brackets:
            self._brackets.pop()

    def _hole(self, index: int, hole: Hole, bound: Bound) -> None:
        node = bound.nodes[0]
        binds = level(node)
        for inner in self._file.inner.get(id(self._match), ()):
            if (inner.match.start, inner.match.end) == (bound.start, bound.end) and 0 <= inner.rule.edges.level < binds:
                binds = inner.rule.edges.level
        loose = needed_in(hole, node, self._layout.template, index, binds)
        # Without a bracket around it an expression of Python must not go over several lines.
        is_syntax = self._file.syntax.language.indentation_is_syntax
        may_open = is_syntax and not self._layout.depth[index] and node.kind != "block"
        open_lines = may_open and breaks_line(node, self._file.syntax) and not in_brackets(self._match)
        if loose or open_lines:
            self._output.text("(")
        self._bound(without_old(hole, bound, self._file.syntax))
        if loose or open_lines:
            self._output.text(")")

    def _bound(self, bound: Bound) -> None:
        self.keep(bound.start, bound.end)

    def keep(self, start: int, end: int) -> None:
        """Write a part of this place, such as a variable, with the places inside of it edited too."""
        position = start
        for inner in self._file.inner.get(id(self._match), ()):
            if start <= inner.match.start and inner.match.end <= end:
                self._output.keep(position, inner.match.start)
                render(inner, self._file, self._output)
                position = inner.match.end
        self._output.keep(position, end)

    def _variable(self, name: str) -> Bound:
        bound = self._match.variable(name)
        if bound is None:
            raise LeftOut("the pattern does not say what the template needs")
        return bound

    def _is_empty(self, item: Item) -> bool:
        return isinstance(item, Rest) and not self._variable(item.name).nodes

    # Gaps.

    def _gap(self, left: int, right: int) -> None:
        before = len(self._output.pieces)
        span = self._place_gap(left, right) if right not in self._layout.tuple_ends else None
        if span is not None and (self._opens_lost_list(left, span) or self._ends_lost_list(left, right, span)):
            text = ""
        elif span is not None:
            self._output.keep(*span)
            text = self._file.syntax.text(*span)
        else:
            text = self._example_gap(left, right)
            is_new_element = right in self._layout.elements and "\n" not in text
            if right in self._layout.elements and "\n" in text and self._is_on_one_line():
                text = " ".join(text.split("\n")).rstrip() + " "
            elif is_new_element and self._brackets and "\n" in self._brackets[-1]:
                text = ("," if "," in text else "") + self._brackets[-1]
            else:
                text = self._placed(text)
            self._output.text(text)
        if self._brackets and not self._brackets[-1] and len(self._output.pieces) > before:
            self._brackets[-1] = self._line_start(left, text)

    def _is_on_one_line(self) -> bool:
        """Return whether a place is on one line, and the example was on several."""
        match, pattern = self._match, self._layout.pattern
        return any("\n" in one.gap for one in pattern) and "\n" not in self._file.syntax.text(match.start, match.end)

    def _opens_lost_list(self, left: int, gap: tuple[int, int]) -> bool:
        """Return whether a line break after a bracket was for a list of which one element is left between brackets."""
        aligned, template = self._layout.aligned, self._layout.template
        closing = template[left + 2] if left + 2 < len(template) else None
        is_one = closing is not None and _is_one(CLOSING, closing) and left + 2 not in aligned
        opens = _is_one(OPENING, template[left]) and not isinstance(template[left + 1], Rest)
        return opens and is_one and not self._file.syntax.text(*gap).strip()

    def _ends_lost_list(self, left: int, right: int, gap: tuple[int, int]) -> bool:
        """Return whether the comma after the last element of a list is there, and the list or its bracket is not."""
        template, text = self._layout.template, self._file.syntax.text(*gap)
        if right in self._layout.aligned or text.strip() != "," or "," in self._example_gap(left, right):
            return False
        is_list = right > 1 and (isinstance(template[right - 1], Rest) or not _is_one(OPENING, template[right - 2]))
        return not (is_list and _is_one(CLOSING, template[right]))

    def _line_start(self, left: int, gap: str) -> str:
        """Return the gap before the first element of a list, if it is on a line of its own."""
        item = self._layout.template[left]
        is_first = isinstance(item, Leaf) and (item.text in OPENING or right_after_tag(self._layout, left))
        return gap.replace("\r\n", "\n") if is_first and "\n" in gap and not gap.strip() else ""

    def _place_gap(self, left: int, right: int) -> tuple[int, int] | None:
        """Return the bytes between two items in the place, where the edit left the gap as it was."""
        bounds, aligned = self._match.bounds, self._layout.aligned
        one, other = aligned.get(left), aligned.get(right)
        if (
            one is not None
            and other is not None
            and one < other
            and not any(bound.nodes for bound in bounds[one + 1 : other])
        ):
            return bounds[one].end, bounds[other].start
        if (same := self._gap_of_same_list(left, right)) is not None:
            return same
        example = self._example_gap(left, right)
        if other is not None and other > 0 and self._gap_before(other) == example:
            return self._before(other), bounds[other].start
        if one is not None and one + 1 < len(bounds):
            following = next((index for index in range(one + 1, len(bounds)) if bounds[index].nodes), None)
            stays = following is not None and following in aligned.values()
            # Where something new comes before what stays, the gap before that is not the new one's.
            if following is not None and not (stays and other is None) and self._gap_at(one, following) == example:
                return bounds[one].end, bounds[following].start
        return None

    def _gap_of_same_list(self, left: int, right: int) -> tuple[int, int] | None:
        """Return the bytes beside all elements of a list that stay, where its brackets do not; None elsewhere."""
        layout, bounds = self._layout, self._match.bounds
        at = next((index for index in range(left, right + 1) if isinstance(layout.template[index], Rest)), right)
        rest = layout.aligned.get(at)
        if rest is None or not 0 < rest < len(bounds) - 1 or at - left > 1 or right - at > 1:
            return None
        before, after = (
            (layout.template[left], layout.pattern[rest - 1]),
            (layout.template[right], layout.pattern[rest + 1]),
        )
        opens, ends = all(_is_one(OPENING, item) for item in before), all(_is_one(CLOSING, item) for item in after)
        if opens and not isinstance(layout.template[at], Rest) and len({_is_one("{", item) for item in before}) > 1:
            return None  # the block of a statement is no list
        if not (opens or left == at) or not (ends or right == at):
            return None
        return bounds[rest - opens].end, bounds[rest + ends].start

    def _gap_at(self, one: int, following: int) -> str:
        """Return the example's gap between two items of the pattern, without what is empty between them here."""
        first, *more = (self._layout.pattern[index].gap for index in range(one + 1, following + 1))
        return max((first, *more), key=len) if more else first

    def _before(self, index: int) -> int:
        """Return the end of the last item before one that is not empty."""
        return next(
            (self._match.bounds[other].end for other in range(index - 1, -1, -1) if self._match.bounds[other].nodes),
            self._match.start,
        )

    def _gap_before(self, index: int) -> str | None:
        """Return the gap before an item of the pattern; None beside room for more elements, which the example lacks."""
        item, before = self._layout.pattern[index], self._layout.pattern[index - 1]
        is_room = isinstance(item, Rest) and not item.gap
        is_beside_room = isinstance(before, Rest) and not self._match.bounds[index - 1].nodes
        return None if is_room or is_beside_room else item.gap

    def _example_gap(self, left: int, right: int) -> str:
        """Return the gap between two items of the template, without what is empty between them."""
        template = self._layout.template
        one, other = template[left], template[right]
        gaps = [template[index].gap for index in range(left + 1, right + 1)]
        opens, closes = _is_one(OPENING, one), _is_one(CLOSING, other)
        if len(gaps) > 1:
            plain = [gap for gap in gaps if "," not in gap]
            return max(plain if (opens or closes) and plain else gaps, key=len)
        if not gaps[0] and not opens and not closes:
            # Room for more elements has no gap in the example.
            room = next((item for item in (other, one) if isinstance(item, Rest)), None)
            if room is not None and not (isinstance(one, Leaf) and not one.named and one.text not in _ENDS):
                return room.separator
        if "," in gaps[0] and (opens or closes) and not self._is_insertion and right not in self._layout.tuple_ends:
            return ""
        return gaps[0]

    def _placed(self, gap: str) -> str:
        """Return a gap of the example with the indentation of the place."""
        first, *lines = gap.split("\n")
        above = [self._indented(line) if line else "" for line in lines[:-1]]
        return "\n".join([first, *above, *map(self._indented, lines[-1:])])

    def _indented(self, line: str) -> str:
        content = line.lstrip(" \t")
        indent = line[: len(line) - len(content)]
        edges, unit = self._rule.edges, self._file.unit
        if not indent.startswith(edges.indent):
            return self._base + content
        deeper = indent[len(edges.indent) :]
        steps, rest = divmod(len(deeper), len(edges.unit)) if edges.unit else (0, len(deeper))
        return self._base + (unit * steps + " " * rest) + content

    def _tail(self, last: int) -> None:
        """Write what comes after the last token, such as a semicolon. Statements that stay have theirs."""
        bounds, edges, item = self._match.bounds, self._rule.edges, self._layout.template[last]
        end = self._before(len(bounds))
        if edges.tail == edges.template_tail:
            self._output.keep(end, self._match.end)
        elif not isinstance(item, Rest) or item.separator != "\n":
            self._output.text(edges.template_tail)

    def _check_comments(self, first: int) -> None:
        """Raise LeftOut if something would be lost that is no token of the pattern: a comment, arguments of a type."""
        pieces = [piece for piece in self._output.pieces[first:] if not isinstance(piece, str)]

        def is_kept(byte: int) -> bool:
            return any(piece.start <= byte < piece.end for piece in pieces)

        syntax, match = self._file.syntax, self._match
        for comment in syntax.comments:
            if match.start <= comment.start and comment.end <= match.end and not is_kept(comment.start):
                raise LeftOut("a comment would be lost")
        position = match.start
        for bound in match.bounds:
            gap = syntax.data[position : bound.start]
            content = gap.lstrip(b" \t\r\n,;")
            if content and not is_kept(bound.start - len(content)):
                raise LeftOut("the arguments of a type would be lost")
            position = max(position, bound.end)


def _is_one(brackets: Collection[str], item: Item) -> bool:
    return isinstance(item, Leaf) and item.text in brackets


def closes(item: Item) -> bool:
    if isinstance(item, Hole):
        return ">" in item.kinds
    return isinstance(item, Leaf) and not item.named and item.text in CLOSING


def right_after_tag(layout: Layout, index: int) -> bool:
    """Return whether an item is the name in an opening tag."""
    before = layout.template[index - 1] if index else None
    return isinstance(before, Leaf) and before.text == "<"


def breaks_line(node: Node, syntax: Syntax) -> bool:
    """Return whether an expression goes over several lines outside of its own brackets and strings."""
    depth, end = 0, node.start
    for leaf in node.leaves():
        if not depth and b"\n" in syntax.data[end : leaf.start]:
            return True
        depth += (leaf.text in OPENING) - (leaf.text in CLOSING and not leaf.named and leaf.text not in (">", "/>"))
        end = leaf.end
    return False


def in_brackets(match: Match) -> bool:
    """Return whether a place is inside brackets, where lines end without a meaning."""
    for node in match.nodes[0].ancestors():
        if node.kind.endswith(("statement", "block", "module", "_definition", "_clause")):
            return False
        if node.children[0].text in OPENING:
            return True
    return False
