"""One step of a text's indentation, as the blocks of its syntax tree show it, else as its lines of code do.

Comments and strings never count: the lines of a licence or a docstring are laid out as their author likes.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from itertools import islice

import attrs
import tree_sitter

from lsp_server.languages.language import Language

_MOST_NODES = 3000
"""A line may have a million nodes. So many take some milliseconds."""
_STEPS = frozenset({"\t", "  ", "   ", "    ", "        "})
_OPENING, _CLOSING = b"{[(", b"}])"


@attrs.frozen
class Excerpt:
    """The bytes from `first` to `last` of a text, which are starts of lines; `root` is the tree of the whole text."""

    data: bytes
    first: int
    last: int
    language: Language
    root: tree_sitter.Node | None

    def step(self) -> str:
        """Return the step of most blocks, else that of the first line that is indented, else the language's own."""
        blocks: list[tuple[int, int, int]] = []
        prose: list[tuple[int, int]] = []
        for node, above in islice(self._nodes(), _MOST_NODES):
            if node.type in self.language.comments:
                prose.append((node.start_byte, node.end_byte))
            elif node.type in self.language.strings:
                # Where a string begins is code.
                prose.append((node.start_byte + 1, node.end_byte))
            elif node.type in self.language.blocks and node.start_byte >= self.first:
                blocks.append((above, node.start_byte, node.end_byte))
        marks = tuple(mark.encode() for mark in (*self.language.line_comments, "/*", "*")) if self.root is None else ()
        code = [line for line in self._lines() if not (_is_within(prose, line.content) or line.text.startswith(marks))]
        steps = Counter(step for block in blocks if (step := self._step_of(block, code)) in _STEPS)
        return steps.most_common(1)[0][0] if steps else _first_step(code) or self.language.indent

    def _nodes(self) -> Iterator[tuple[tree_sitter.Node, int]]:
        """Yield the nodes, each with the start of its parent, without what is inside of a line, comment or string."""
        cursor = self.root.walk() if self.root is not None else None
        above = [0]
        while cursor is not None and (node := cursor.node) is not None:
            yield node, above[-1]
            is_prose = node.type in self.language.comments or node.type in self.language.strings
            is_line = node.start_point.row == node.end_point.row
            if not is_prose and not is_line and cursor.goto_first_child_for_byte(self.first) is not None:
                above.append(node.start_byte)
                continue
            while not cursor.goto_next_sibling() or cursor.node is None or cursor.node.start_byte >= self.last:
                if not cursor.goto_parent():
                    return
                above.pop()

    def _lines(self) -> "Iterator[_Line]":
        first = self.first
        for line in self.data[first : self.last].split(b"\n"):
            if content := line.strip():
                indent = line[: len(line) - len(line.lstrip(b" \t"))]
                yield _Line(first + len(indent), indent.decode(), content)
            first += len(line) + 1

    def _step_of(self, block: tuple[int, int, int], code: "list[_Line]") -> str:
        """Return how much deeper a block's first line is than its header, or than the bracket that closes it."""
        above, start, end = block
        places = [line.content for line in code]
        is_alone = (
            self.data[start : start + 1] in _OPENING and start in places[(at := bisect_left(places, start)) : at + 1]
        )
        inner = bisect_left(places, start + is_alone)
        if inner == len(code) or code[inner].content >= end:
            return ""
        close = bisect_left(places, end - 1)
        closes = self.data[end - 1 : end] in _CLOSING and close < len(code) and code[close].content == end - 1
        outer = code[close].indent if closes else self._indent_at(above)
        deep = code[inner].indent
        is_empty = closes and inner == close
        return deep.removeprefix(outer) if deep.startswith(outer) and not is_empty else ""

    def _indent_at(self, byte: int) -> str:
        start = self.data.rfind(b"\n", 0, byte) + 1
        line = self.data[start:byte]
        return line[: len(line) - len(line.lstrip(b" \t"))].decode()


@attrs.frozen
class _Line:
    """A line that is not blank: where its content begins, the white space before that, and the content."""

    content: int
    indent: str
    text: bytes


def _is_within(ranges: list[tuple[int, int]], byte: int) -> bool:
    index = bisect_left(ranges, (byte + 1,)) - 1
    return index >= 0 and byte < ranges[index][1]


def _first_step(lines: list[_Line]) -> str:
    previous: str | None = None
    for line in lines:
        if line.indent.startswith("\t"):
            return "\t"
        if previous is not None and (step := line.indent[len(previous) :]) in _STEPS:
            return step
        previous = line.indent
    return ""
