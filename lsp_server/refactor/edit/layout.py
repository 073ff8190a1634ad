"""Which tokens of a template are those of the pattern: they and the gaps between them stay as a place has them."""

import re
from collections.abc import Iterator, Sequence

import attrs

from lsp_server.documents.source import Source
from lsp_server.documents.text_edit import TextEdit
from lsp_server.refactor.code.grammar import GOES_ON, is_list_kind, is_statement
from lsp_server.refactor.code.node import Node
from lsp_server.refactor.code.syntax import Syntax
from lsp_server.refactor.rules.pattern import Branch, Hole, Item, Leaf, Pattern, Rest, items, tuple_ends
from lsp_server.refactor.rules.rule import Rule

_BRACKET = re.compile(rb"[\[\](){}\n]")


@attrs.frozen(eq=False)
class Layout:
    """The items of both sides. `aligned` has the index in the pattern by that in the template.

    `depth` counts the brackets of the template that are open at an item. `elements` are the items of the template that
    an element of a list begins with, `tuple_ends` those that end a tuple of one element.
    """

    pattern: tuple[Item, ...]
    template: tuple[Item, ...]
    aligned: dict[int, int]
    depth: tuple[int, ...]
    elements: frozenset[int]
    tuple_ends: frozenset[int]


def layout_of(rule: Rule) -> Layout:
    """Return the layout of a rule."""
    pattern, template = tuple(items(rule.pattern)), tuple(items(rule.template))
    aligned = _aligned(pattern, template)
    return Layout(
        _on_one_line(pattern, frozenset(aligned.values())),
        _on_one_line(template, frozenset(aligned)),
        aligned,
        _depth(template),
        frozenset(_elements(rule.template)),
        frozenset(tuple_ends(rule.template)),
    )


def layout_of_added(rule: Rule, statement: Pattern) -> Layout:
    """Return the layout of a statement that a rule adds: nothing of it is where the pattern has it."""
    template = tuple(items((statement,)))
    starts, ends = frozenset(_elements((statement,))), frozenset(tuple_ends((statement,)))
    return Layout(tuple(items(rule.pattern)), template, {}, _depth(template), starts, ends)


def _on_one_line(side: Sequence[Item], aligned: frozenset[int]) -> tuple[Item, ...]:
    """Return items whose lists are on one line, where the brackets are the place's own: it has lines of its own."""
    result: list[Item] = []
    own: list[bool] = []
    after_bracket = False
    for index, item in enumerate(side):
        text = item.text if isinstance(item, Leaf) and not item.named else ""
        closes = text in (")", "]", "}") or (isinstance(item, Hole) and ">" in item.kinds)
        if own and own[-1] and "\n" in item.gap and not item.gap.strip(", \t\r\n"):
            before_end = " " if isinstance(item, Hole) else ""
            gap = before_end if closes else "" if after_bracket else ", " if "," in item.gap else " "
            item = attrs.evolve(item, gap=gap)
        result.append(item)
        after_bracket = text in ("(", "[")
        if text in ("(", "[", "{", "<"):
            own.append(index in aligned and text != "{")
        elif closes and own:
            own.pop()
    return tuple(result)


def _depth(template: Sequence[Item]) -> tuple[int, ...]:
    depths: list[int] = []
    depth = 0
    for item in template:
        depths.append(depth)
        if isinstance(item, Leaf) and not item.named:
            depth += (item.text in ("(", "[", "{")) - (item.text in (")", "]", "}"))
    return tuple(depths)


def _elements(template: Sequence[Pattern]) -> Iterator[int]:
    """Yield the indices of the items that begin an element of a list."""
    index = 0
    waiting = [(pattern, False) for pattern in reversed(template)]
    while waiting:
        pattern, is_element = waiting.pop()
        if is_element:
            yield index
        if isinstance(pattern, Branch):
            # Go's several values have no brackets: those around them are of something else.
            in_list = is_list_kind(pattern.kind) and pattern.kind != "expression_list"
            inner = [(child, in_list and _is_element(child)) for child in pattern.children]
            if is_element and inner:
                inner[0] = (inner[0][0], False)
            waiting.extend(reversed(inner))
        else:
            index += 1


def _is_element(pattern: Pattern) -> bool:
    return not (isinstance(pattern, Leaf) and not pattern.named)


def _aligned(pattern: Sequence[Item], template: Sequence[Item]) -> dict[int, int]:
    """Return the longest common subsequence of two lists of items; variables count more than tokens."""
    rows, columns = len(pattern), len(template)
    best = [[0] * (columns + 1) for _ in range(rows + 1)]
    for row in range(rows - 1, -1, -1):
        for column in range(columns - 1, -1, -1):
            gain = _gain(pattern[row], template[column])
            best[row][column] = max(
                best[row + 1][column], best[row][column + 1], gain + best[row + 1][column + 1] if gain else 0
            )
    aligned: dict[int, int] = {}
    row = column = 0
    while row < rows and column < columns:
        gain = _gain(pattern[row], template[column])
        if gain and best[row][column] == gain + best[row + 1][column + 1]:
            aligned[column] = row
            row, column = row + 1, column + 1
        elif best[row + 1][column] >= best[row][column + 1]:
            row += 1
        else:
            column += 1
    return aligned


def _gain(one: Item, other: Item) -> int:
    """Return how much it is worth to align two items; 0 if they are different."""
    if isinstance(one, Hole | Rest) and type(one) is type(other):
        return 3 if one.name == other.name else 0
    if isinstance(one, Leaf) and isinstance(other, Leaf) and one.text == other.text:
        return 2 if one.named else 1
    return 0


@attrs.frozen
class Kept:
    """A part of the file, in UTF-8 bytes."""

    start: int
    end: int


Piece = Kept | str


@attrs.frozen
class ByteEdit:
    """Replace the UTF-8 bytes from `start` to `end` by `text`."""

    start: int
    end: int
    text: str

    def in_text(self, source: Source) -> TextEdit:
        """Return the same edit, in characters too."""
        offset = source.offset_of_byte
        return TextEdit(offset(self.start), offset(self.end), self.text)


class Output:
    """The text that takes the place of a match, with the indentation of the line it is on."""

    def __init__(self, syntax: Syntax, start: int, newline: str) -> None:
        self.pieces: list[Piece] = []
        self._syntax = syntax
        self._newline = newline
        self._indent = syntax.line_indent(start)

    @property
    def indent(self) -> str:
        """The indentation of the line that is being written."""
        return self._indent

    def text(self, text: str) -> None:
        """Add new text. Its line ends become those of the file."""
        if not text:
            return
        last = text.rpartition("\n")[2]
        if "\n" in text:
            self._indent = last[: len(last) - len(last.lstrip(" \t"))]
        self.pieces.append(text.replace("\r\n", "\n").replace("\n", self._newline))

    def keep(self, start: int, end: int) -> None:
        """Add a part of the file. Its lines move along with the line that they are on now."""
        for piece in self.moved(start, end):
            self.pieces.append(piece)
        part = self._syntax.data[start:end]
        if b"\n" in part:
            self._indent = _shifted(self._syntax.line_indent(start), self._indent, self._syntax.line_indent(end))

    def moved(self, start: int, end: int) -> list[Piece]:
        """Return a part of the file as it is on the line that is being written: its lines are indented anew."""
        data = self._syntax.data
        old, new = self._syntax.line_indent(start), self._indent
        if old == new or b"\n" not in data[start:end]:
            return [Kept(start, end)] if end > start else []
        pieces: list[Piece] = []
        position = start
        for line in self._line_starts(start, end):
            content = data[line:end].split(b"\n", 1)[0]
            indent = content[: len(content) - len(content.lstrip(b" \t"))].decode()
            if not content.strip() and line + len(content) < end:
                continue
            shifted = _shifted(old, new, indent)
            if shifted != indent:
                pieces.append(Kept(position, line))
                pieces.append(shifted)
                position = line + len(indent)
        if end > position:
            pieces.append(Kept(position, end))
        return pieces

    def _line_starts(self, start: int, end: int) -> list[int]:
        """Return where lines start in a part of the file, without those inside strings."""
        starts = list[int]()
        byte = self._syntax.data.find(b"\n", start, end)
        while byte != -1:
            if not self._syntax.in_string(byte):
                starts.append(byte + 1)
            byte = self._syntax.data.find(b"\n", byte + 1, end)
        return starts


def edits_of(pieces: Sequence[Piece], start: int, end: int) -> list[ByteEdit]:
    """Return the edits that turn the file from `start` to `end` into the pieces. What is in order is not edited."""
    edits: list[ByteEdit] = []
    position, text = start, ""
    for piece in _joined(pieces):
        if isinstance(piece, Kept) and position <= piece.start and piece.end <= end:
            if text or piece.start > position:
                edits.append(ByteEdit(position, piece.start, text))
            position, text = piece.end, ""
        elif isinstance(piece, str):
            text += piece
        else:
            raise ValueError("a part of the file is out of order; make it a text first")
    if text or end > position:
        edits.append(ByteEdit(position, end, text))
    return edits


def realigned(edits: Sequence[ByteEdit], syntax: Syntax, spans: Sequence[tuple[int, int]]) -> list[ByteEdit]:
    """Return edits with those of the lines in `spans` that are aligned with a bracket which moved."""
    data, waiting, result = syntax.data, list(edits), list(edits)
    while waiting:
        edit = waiting.pop(0)
        end = data.find(b"\n", edit.end)
        inside = next((high for low, high in spans if low <= edit.start and end < high), 0) if end != -1 else 0
        for bracket in _BRACKET.finditer(data, edit.end, end) if inside else ():
            old, new = _column(data, bracket.start(), ()), _column(data, bracket.start(), result)
            if bracket[0] not in b"([{" or old == new or syntax.in_string(bracket.start()):
                continue
            for line in _lines_in_bracket(syntax, bracket.end(), inside):
                indent = len(data[line:inside]) - len(data[line:inside].lstrip(b" "))
                if indent == old + 1 and all(one.end < line or line + indent < one.start for one in result):
                    moved = ByteEdit(line, line + indent, " " * (new + 1))
                    result.append(moved)
                    waiting.append(moved)
    return sorted(result, key=lambda one: (one.start, one.end))


def _column(data: bytes, byte: int, edits: Sequence[ByteEdit]) -> int:
    """Return the column of a byte of the file after edits before it, in characters; -1 if a tab is before it."""
    line, text = data.rfind(b"\n", 0, byte) + 1, ""
    for one in sorted(edits, key=lambda one: one.end, reverse=True):
        if line <= one.end <= byte and "\n" not in text:
            text = one.text + data[one.end : byte].decode("utf-8", "replace") + text
            byte = one.start
            line = data.rfind(b"\n", 0, byte) + 1
    if "\n" not in text:
        text = data[line:byte].decode("utf-8", "replace") + text
    text = text.rpartition("\n")[2]
    return -1 if "\t" in text else len(text)


def _lines_in_bracket(syntax: Syntax, start: int, end: int) -> Iterator[int]:
    """Yield where the lines start that are inside of a bracket, and of no other one in it."""
    depth = 0
    for found in _BRACKET.finditer(syntax.data, start, end):
        if found[0] == b"\n" and not depth:
            yield found.end()
        elif found[0] != b"\n" and not syntax.in_string(found.start()):
            depth += 1 if found[0] in b"([{" else -1
        if depth < 0:
            return


def in_order(pieces: Sequence[Piece], syntax: Syntax, start: int, end: int) -> list[Piece]:
    """Return the pieces with the parts of the file that moved as text. The longest parts stay."""
    kept = [(index, piece) for index, piece in enumerate(pieces) if isinstance(piece, Kept)]
    best = _longest_rising([piece for _, piece in kept], start, end)
    stay = {kept[position][0] for position in best}
    return [
        piece if isinstance(piece, str) or index in stay else syntax.text(piece.start, piece.end)
        for index, piece in enumerate(pieces)
    ]


def _longest_rising(parts: Sequence[Kept], start: int, end: int) -> list[int]:
    """Return the indices of the parts in rising order that have the most bytes together."""
    weights: list[int] = []
    before: list[int] = []
    for index, part in enumerate(parts):
        if part.start < start or part.end > end:
            weights.append(-1)
            before.append(-1)
            continue
        fitting = [other for other in range(index) if weights[other] >= 0 and parts[other].end <= part.start]
        previous = max(fitting, key=lambda other: weights[other], default=-1)
        weights.append(part.end - part.start + (weights[previous] if previous >= 0 else 0))
        before.append(previous)
    chain: list[int] = []
    index = max(range(len(parts)), key=lambda other: weights[other], default=-1)
    while index >= 0 and weights[index] >= 0:
        chain.append(index)
        index = before[index]
    return chain[::-1]


def _joined(pieces: Sequence[Piece]) -> list[Piece]:
    joined: list[Piece] = []
    for piece in pieces:
        last = joined[-1] if joined else None
        if isinstance(piece, Kept) and isinstance(last, Kept) and last.end == piece.start:
            joined[-1] = Kept(last.start, piece.end)
        else:
            joined.append(piece)
    return joined


def _shifted(old: str, new: str, indent: str) -> str:
    """Return the indentation of a line when that of its first line changes from `old` to `new`."""
    if indent.startswith(old):
        return new + indent[len(old) :]
    if new.startswith(old):
        return indent + new[len(old) :]
    if old.startswith(new) and len(indent) >= len(old) - len(new):
        return indent[: len(indent) - len(old) + len(new)]
    return indent


def deleted_line(syntax: Syntax, start: int, end: int) -> ByteEdit:
    """Return the edit that deletes a part of a file, with its lines if there is nothing else on them."""
    data = syntax.data
    first, last = data.rfind(b"\n", 0, start) + 1, data.find(b"\n", end)
    last = len(data) if last == -1 else last + 1
    left = data[first:start]
    if left.strip() or data[end:last].strip(b"; \t\r\n"):
        is_spaced = data[end : end + 1] == b" " and (left[-1:] in b" (" or not left.strip())
        return ByteEdit(start, end + is_spaced, "")
    return ByteEdit(first, last, "")


def changed_ending(old: Sequence[Node], before: Syntax, new: Sequence[Node], after: Syntax) -> str | None:
    """Return how the statement around an edit ends after it: ";" or ""; None if it ends as before."""
    ends: list[str] = []
    for nodes, syntax in ((old, before), (new, after)):
        statement = _statement_around(nodes[0]) if nodes and not is_statement(nodes[0]) else None
        if statement is None:
            return None
        ends.append(syntax.text(max(leaf.end for leaf in statement.leaves()), statement.end).strip())
    return ends[1] if sorted(ends) == ["", ";"] else None


def _statement_around(node: Node) -> Node | None:
    return next((one for one in node.ancestors() if is_statement(one)), None)


def ending_edit(ending: str | None, node: Node, syntax: Syntax) -> ByteEdit | None:
    """Return the edit that ends the statement around a place as an example does, with or without its ";".

    None if it does so already, if the example kept the end, or if the next line would go on with the statement.
    """
    if ending is None or (statement := _statement_around(node)) is None:
        return None
    start = max(leaf.end for leaf in statement.leaves())
    end = start + len(syntax.data[start : statement.end].rstrip())
    if syntax.data[start:end].strip() == ending.encode():
        return None
    line, _, below = syntax.data[end:].partition(b"\n")
    is_last = line.strip()[:1] in (b"", b"}", b"/")
    if not ending and not (is_last and below.lstrip()[:1].decode("utf-8", "replace") not in GOES_ON):
        return None
    return ByteEdit(start, end, ending)
