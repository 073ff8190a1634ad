"""Pasted code with the names, quotes and indentation of its surroundings. In doubt nothing is changed."""

import itertools
import re
from collections import Counter
from collections.abc import Iterator, Sequence

import attrs

from lsp_server.documents.edits import RecentEdit
from lsp_server.documents.source import Source
from lsp_server.languages.registry import language_for
from lsp_server.refactor.code.bindings import BROUGHT, UNKNOWN, Scopes, imports_of
from lsp_server.refactor.code.grammar import (
    SELF,
    arguments_of,
    is_access,
    is_call,
    is_callee,
    is_definition,
    is_expression,
    is_fixed_name,
    is_name,
    receiver_of,
)
from lsp_server.refactor.code.node import Node, same
from lsp_server.refactor.code.syntax import Syntax, indent_unit, parse
from lsp_server.refactor.code.traits import traits_of
from lsp_server.refactor.edit.file_edit import FileEdit, Span, digest_of, is_sound
from lsp_server.refactor.edit.layout import ByteEdit

_MAX_CHARS = 200_000
_MAX_LINES = 60
_MOST_CHANGES = 2
"""An editor may indent what it has pasted, in a change of its own."""
_BLANKS = re.compile(rb"[ \t]*")
_FEW = 3
_MOST = 0.9
"""A file has a style if so many of its strings, and more than a few, have the same quotes."""


def is_paste(edit: RecentEdit) -> bool:
    """Return whether an edit looks like a paste of several lines: they came at once, and nothing was replaced."""
    lines = [line for line in edit.after[edit.start : edit.end].splitlines() if line.strip()]
    is_new = not edit.before[edit.start : edit.old_end].strip()
    return is_new and 2 <= len(lines) <= _MAX_LINES and edit.changes <= _MOST_CHANGES and len(edit.after) <= _MAX_CHARS


def adapted(edit: RecentEdit, language_id: str, path: str) -> FileEdit:
    """Return the edit of the pasted lines that gives them the style of the file, in the text after the paste.

    It has no edits if a name of the pasted code stands for no other one, or for several.
    """
    text, language = edit.after, language_for(language_id, path)
    source = Source.of(text)
    start, end = source.byte_at(edit.start), source.byte_at(edit.end)
    syntax = parse(source.data, language)
    nothing = FileEdit(path, digest_of(text))
    if syntax is None:
        return nothing
    try:
        names = name_edits(syntax, start, end)
    except (NoNames, RecursionError):
        return nothing
    found = [*names, *quote_edits(syntax, start, end), *indent_edits(syntax, start, end)]
    edits = sorted(found, key=lambda one: (one.start, one.end, one.text))
    if not edits or any(one.end > other.start for one, other in itertools.pairwise(edits)):
        return nothing
    span = Span(edit.start, edit.end, source.lines.at(edit.start))
    whole = attrs.evolve(nothing, edits=tuple(one.in_text(source) for one in edits), places=(span,))
    return whole if is_sound(whole.applied(text), language, syntax.errors) else nothing


@attrs.frozen
class _Line:
    """A line that is not blank: its first byte, its white space and the rest."""

    start: int
    indent: bytes
    text: bytes


def indent_edits(syntax: Syntax, start: int, end: int) -> list[ByteEdit]:
    """Return the replacements of the white space before the lines between two bytes.

    The line before and the line after say where the pasted lines belong if both are indented alike, or if the line
    before opens a block that had nothing in it. Else there are none.
    """
    lines = _lines(syntax.data)
    pasted = [line for line in lines if start <= line.start + len(line.indent) and line.start < end]
    above = [line for line in lines if line.start + len(line.indent) < start]
    below = [line for line in lines if line.start >= end]
    unit = indent_unit(syntax, syntax.language, without=(start, end)).encode()
    base = _base(above, below, unit, syntax.language.indentation_is_syntax)
    if base is None or not pasted or any(syntax.in_string(line.start) for line in pasted[1:]):
        return []
    own = min((line.indent for line in pasted), key=len)
    if not all(line.indent.startswith(own) for line in pasted[1:]):
        return []
    # The first line may be pasted where the cursor was, after the white space that is there already.
    first = pasted[0].indent
    steps = [line.indent.removeprefix(own) for line in pasted[1:]]
    if len(first) != len(own) and first != base:
        return []
    old = min((step for step in steps if step), key=len, default=b"")
    if any(step != old * (len(step) // max(len(old), 1)) for step in steps):
        return []
    depths = [0, *(len(step) // len(old) if old else 0 for step in steps)]
    parts: list[ByteEdit] = []
    for line, depth in zip(pasted, depths, strict=True):
        wanted = base + unit * depth
        if line.indent != wanted:
            parts.append(ByteEdit(line.start, line.start + len(line.indent), wanted.decode()))
    return parts


def _base(above: Sequence[_Line], below: Sequence[_Line], unit: bytes, by_indent: bool) -> bytes | None:
    """Return the white space before a line that is put between others; None if they leave it open."""
    if not above:
        return None
    last = above[-1]
    opens = last.text.endswith(b":" if by_indent else b"{")
    following = below[0].indent if below else b""
    if opens:
        is_alone = len(following) <= len(last.indent)
        return last.indent + unit if is_alone or following == last.indent + unit else None
    return last.indent if following == last.indent else None


def _lines(data: bytes) -> list[_Line]:
    found: list[_Line] = []
    position = 0
    for line in data.split(b"\n"):
        if line.strip():
            match = _BLANKS.match(line)
            indent = match[0] if match else b""
            found.append(_Line(position, indent, line.strip()))
        position += len(line) + 1
    return found


class NoNames(Exception):
    """A name of the pasted code is unknown here, and stands for no name of the file, or for several."""


def name_edits(syntax: Syntax, start: int, end: int) -> list[ByteEdit]:
    """Return the replacements of names between two bytes that the file does not know. Raises NoNames."""
    return _Names(syntax, start, end).edits()


@attrs.define
class _Names:
    syntax: Syntax
    start: int
    end: int
    scopes: Scopes = attrs.field(init=False)
    members: set[str] = attrs.field(init=False)
    """The members that the rest of the file uses."""
    free: set[str] = attrs.field(init=False)
    """The names that nothing binds in the rest of the file either, such as those of other files of a package."""

    def __attrs_post_init__(self) -> None:
        self.scopes = Scopes(self.syntax, imports_of(self.syntax))
        names = [leaf for leaf in self.syntax.root.leaves() if is_name(leaf) and not self._is_pasted(leaf)]
        self.members = {leaf.text for leaf in names if is_fixed_name(leaf)}
        others = [leaf for leaf in names if not is_fixed_name(leaf)]
        self.free = {leaf.text for leaf in others if self.scopes.binding(leaf.text, leaf) == UNKNOWN}

    def edits(self) -> list[ByteEdit]:
        pasted = [node for node in self.syntax.root.walk() if self._is_pasted(node)]
        unknown = [node for node in pasted if self._is_unknown(node)]
        if not unknown:
            return []
        pairs: list[tuple[Node, Node]] = []
        for call in pasted:
            if is_call(call) and self._has_unknown(call):
                found = [pair for other in self._alike(call) for pair in self._aligned(call, other) or ()]
                for node, stand_in in found:
                    if not any(same(node, one) and same(stand_in, other) for one, other in pairs):
                        pairs.append((node, stand_in))
        for index, (node, stand_in) in enumerate(pairs):
            if any(same(node, one) or same(stand_in, other) for one, other in pairs[:index]):
                raise NoNames
        edits = {
            ByteEdit(node.start, node.end, self.syntax.text(stand_in.start, stand_in.end))
            for node in pasted
            for one, stand_in in pairs
            if same(node, one) and is_expression(node)
        }
        if any(not any(edit.start <= node.start and node.end <= edit.end for edit in edits) for node in unknown):
            raise NoNames
        return list(edits)

    def _is_pasted(self, node: Node) -> bool:
        return self.start <= node.start and node.end <= self.end

    def _is_unknown(self, leaf: Node) -> bool:
        """Return whether a leaf is a name that nothing in the file binds, or a member that only the paste has."""
        if not is_name(leaf) or leaf.parent is None or leaf.text in BROUGHT:
            return False
        if leaf.text in SELF:
            return self.scopes.binding(leaf.text, leaf) == UNKNOWN and leaf.kind == "identifier"
        if is_fixed_name(leaf):
            receiver = receiver_of(leaf.parent)
            is_own = receiver is not None and receiver is not leaf and receiver.text in SELF
            return is_own and not is_definition(leaf.parent) and leaf.text not in self.members
        return self.scopes.binding(leaf.text, leaf) == UNKNOWN and leaf.text not in self.free

    def _has_unknown(self, node: Node) -> bool:
        return any(self._is_unknown(leaf) for leaf in node.leaves())

    def _alike(self, call: Node) -> list[Node]:
        """Return the other calls of what has the same name: those in the same function if there are any."""
        found = [
            node
            for node in self.syntax.root.walk()
            if is_call(node) and not self._is_pasted(node) and _called(node) == _called(call)
        ]
        function = next((above for above in call.ancestors() if is_definition(above)), None)
        near = [node for node in found if any(above is function for above in node.ancestors())]
        return near if function is not None and near else found

    def _aligned(self, node: Node, other: Node) -> list[tuple[Node, Node]] | None:
        """Return what stands for the unknown names of a node in another one; None if they are not alike."""
        if not self._has_unknown(node):
            return [] if not is_fixed_name(node) or same(node, other) else None
        if node.kind == other.kind and node.children and len(node.children) == len(other.children):
            parts = [self._aligned(one, two) for one, two in zip(node.children, other.children, strict=True)]
            if all(part is not None for part in parts):
                return [pair for part in parts if part is not None for pair in part]
        if _is_path(node) and _is_path(other) and not is_fixed_name(node) and not is_callee(node):
            return [(node, other)] if self._is_known_at(other, node) else None
        return None

    def _is_known_at(self, stand_in: Node, place: Node) -> bool:
        """Return whether a name of the file is the same thing where the pasted code is."""
        first = next(stand_in.leaves())
        here, there = (self.scopes.binding(first.text, node) for node in (place, first))
        return here == there and (here != UNKNOWN or first.text in SELF)


def _is_path(node: Node) -> bool:
    """Return whether a node is a name, or members of a name: `self.client`."""
    return is_name(node) or (is_access(node) and all(is_name(leaf) or not leaf.named for leaf in node.leaves()))


def _called(call: Node) -> tuple[str, int]:
    """Return the last name of what a call calls, and how many arguments it has."""
    arguments = arguments_of(call)
    names = [leaf.text for child in call.children if child is not arguments for leaf in child.leaves() if leaf.named]
    count = len(arguments.parts) if arguments is not None else 0
    return (names[-1] if names else "", count)


def quote_edits(syntax: Syntax, start: int, end: int) -> list[ByteEdit]:
    """Return the replacements of quotes between two bytes. Strings with a quote or a backslash stay as they are."""
    if not traits_of(syntax.language.id).names_all:
        return []
    strings = [(node, *_quotes(node, syntax)) for node in _strings(syntax.root)]
    simple = [(node, first, last) for node, first, last in strings if last in ("'", '"')]
    counts = Counter(last for node, _, last in simple if not start <= node.start < end)
    if not counts:
        return []
    style, most = counts.most_common(1)[0]
    if most < _FEW or most < _MOST * counts.total():
        return []
    parts: list[ByteEdit] = []
    for node, first, last in simple:
        inner = syntax.text(node.start + len(first.encode()), node.end - 1)
        is_pasted = start <= node.start and node.end <= end
        if is_pasted and last != style and not set("'\"\\{}") & set(inner):
            parts.append(ByteEdit(node.start, node.start + len(first.encode()), first[:-1] + style))
            parts.append(ByteEdit(node.end - 1, node.end, style))
    return parts


def _strings(root: Node) -> Iterator[Node]:
    return (node for node in root.walk() if node.kind == "string")


def _quotes(node: Node, syntax: Syntax) -> tuple[str, str]:
    """Return what a string begins with, its letters included, and what it ends with."""
    text = syntax.text(node.start, node.end)
    first = next((index for index, char in enumerate(text) if char in "'\"`"), 0)
    is_long = text[first : first + 3] in ("'''", '"""')
    return text[: first + 1], "" if is_long or len(text) < first + 2 else text[-1]
