"""A node of a syntax tree of our own, and how it is read from tree-sitter's."""

import functools
from collections.abc import Iterator
from typing import Protocol

import attrs
import tree_sitter

from lsp_server.languages.language import Language

_QUOTES = str.maketrans({"'": '"'})
_SEPARATORS = frozenset({",", ";", "\n", "\r\n", ""})
_SEPARATING = b" \t\r\n\f;,"
# A self-closing element has the same name and attributes as an opening one, and the same edits fit both. The module
# of a TypeScript type is written as a member access is.
SAME_KIND = {"jsx_self_closing_element": "jsx_opening_element", "nested_identifier": "member_expression"}
# C++ reads a::b::c as a::(b::c). All other languages read (a::b)::c, and what is edited is most often a::b.
_FROM_THE_RIGHT = "qualified_identifier"
# These grammars give what is declared no role, or one of their own: the first child of this kind is the name.
_NAMED = {
    "catch_block": ("identifier",),
    "const_element": ("name",),
    "enum_entry": ("identifier",),
    "field_definition": ("property_identifier",),
    "for_statement": ("pattern", "variable_declaration", "multi_variable_declaration"),
    "property_declaration": ("variable_declaration", "multi_variable_declaration", "property_element"),
    "type_alias": ("identifier",),
}
_SPLICED = "navigation_suffix"  # Swift has the sign and the name of a member in a node of their own
_CONTENT = ("_content", "_fragment")
# What is done at a node looks at those around it, so the time is quadratic in how deep a text is nested.
_DEEPEST = 2000


@attrs.define(eq=False, repr=False)
class Node:
    """A node of a syntax tree. `start` and `end` are UTF-8 bytes; `text` is a leaf's, "" for a branch.

    Commas, semicolons and comments are no nodes: they belong to the gaps between nodes, so that a list with a comma
    at its end equals one without. `digest` is equal for equal trees, wherever they are.
    """

    kind: str
    field: str
    named: bool
    start: int
    end: int
    text: str
    children: "tuple[Node, ...]"
    digest: int
    parent: "Node | None" = None

    def walk(self) -> "Iterator[Node]":
        """Yield the node and all nodes below it, parents before their children."""
        waiting = [self]
        while waiting:
            node = waiting.pop()
            yield node
            waiting.extend(reversed(node.children))

    def leaves(self) -> "Iterator[Node]":
        """Yield the leaves below the node in their order."""
        return (node for node in self.walk() if not node.children)

    @property
    def parts(self) -> "list[Node]":
        """The named children: elements and operands, and no brackets, operators or keywords."""
        return [child for child in self.children if child.named]

    @property
    def size(self) -> int:
        """The number of leaves."""
        return sum(1 for _ in self.leaves())

    @property
    def tokens(self) -> str:
        """The texts of the leaves in a row: the code without white space."""
        return "".join(leaf.text for leaf in self.leaves())

    @property
    def index(self) -> int:
        """Its number among the children of its parent; 0 without one."""
        siblings = self.parent.children if self.parent is not None else ()
        return next((index for index, one in enumerate(siblings) if one is self), 0)

    def child(self, field: str) -> "Node | None":
        """Return the first child with a role; None if there is none."""
        return next((child for child in self.children if child.field == field), None)

    def ancestors(self) -> "Iterator[Node]":
        """Yield the nodes above this one, the nearest first."""
        node = self.parent
        while node is not None:
            yield node
            node = node.parent


def same(first: Node, second: Node) -> bool:
    """Return whether two trees are equal, apart from where they are, comments, commas and the kind of quotes."""
    if first.digest != second.digest or len(first.children) != len(second.children):
        return False
    if first.kind != second.kind or leaf_text(first) != leaf_text(second):
        return False
    return all(map(same, first.children, second.children))


class _Token(Protocol):
    """A leaf of a tree or of a pattern."""

    @property
    def kind(self) -> str: ...

    @property
    def text(self) -> str: ...

    @property
    def named(self) -> bool: ...


def leaf_text(node: _Token) -> str:
    """Return the text of a leaf for comparison: both kinds of quotes are the same."""
    if "'" in node.text and (not node.named or node.kind in ("string_start", "string_end")):
        return node.text.translate(_QUOTES)
    return node.text


@attrs.frozen(eq=False)
class Comment:
    """A comment, in UTF-8 bytes."""

    start: int
    end: int


@attrs.frozen
class _Kind:
    """What the name of a grammar's node type says."""

    name: str
    is_comment: bool
    is_string: bool
    is_content: bool
    has_semicolons: bool


@attrs.define(eq=False)
class _Open:
    """A node whose children are still being read. `has_text` says that it has text which is in none of them."""

    kind: _Kind
    field: str
    named: bool
    start: int
    end: int
    position: int
    children: list[Node]
    has_text: bool = False


def convert(cursor: tree_sitter.TreeCursor, data: bytes, language: Language, comments: list[Comment]) -> Node:
    """Return the tree below a cursor, and add its comments to `comments`.

    Raises RecursionError when it is deeper than _DEEPEST.
    """
    # Iterative: _DEEPEST is more than Python's stack has.
    stack = [_opened(cursor, language)]
    descend = cursor.goto_first_child()
    while True:
        if descend:
            if len(stack) == _DEEPEST:
                raise RecursionError
            stack.append(_opened(cursor, language))
            descend = cursor.goto_first_child()
            continue
        done = stack.pop()
        if not stack:
            return _from_the_left(_close(done, data))
        _add(stack[-1], done, data, comments)
        descend = cursor.goto_next_sibling()
        if not descend:
            cursor.goto_parent()


def _opened(cursor: tree_sitter.TreeCursor, language: Language) -> _Open:
    raw = cursor.node
    assert raw is not None
    start = raw.start_byte
    kind = _kind(raw.type, language)
    return _Open(kind, cursor.field_name or "", raw.is_named, start, raw.end_byte, start, [])


@functools.cache
def _kind(name: str, language: Language) -> _Kind:
    return _Kind(
        SAME_KIND.get(name, name),
        name in language.comments or name.endswith("comment"),
        name in language.strings or "string" in name,
        name.endswith(_CONTENT),
        name.startswith("for"),
    )


def _add(parent: _Open, child: _Open, data: bytes, comments: list[Comment]) -> None:
    if child.start > parent.position:
        gap = data[parent.position : child.start]
        # The grammars of Kotlin and Swift hide their semicolons.
        if parent.kind.is_string or gap.strip(_SEPARATING):
            parent.has_text = True
    parent.position = child.end
    if child.kind.is_comment:
        comments.append(Comment(child.start, child.end))
    elif not _is_trivia(parent, child, data):
        made = _close(child, data)
        is_inner = parent.kind.name == _FROM_THE_RIGHT and parent.children and parent.children[0].named
        is_spliced = made.kind == _SPLICED and bool(made.children)
        parent.children += made.children if is_spliced else [made if is_inner else _from_the_left(made)]


def _is_trivia(parent: _Open, child: _Open, data: bytes) -> bool:
    if child.kind.name == "jsx_text":
        return not data[child.start : child.end].strip()
    # for (;;) needs its semicolons.
    return not child.named and child.kind.name in _SEPARATORS and not parent.kind.has_semicolons


def _close(node: _Open, data: bytes) -> Node:
    kind, children = node.kind, node.children
    if children and kind.is_string:
        node.has_text = node.has_text or node.position < node.end
        children = _merged(kind.name, children, data)
    if not children or node.has_text or kind.is_content:
        text = data[node.start : node.end].decode("utf-8", "surrogatepass")
        return _leaf(kind.name, node.field, node.named, node.start, node.end, text)
    return _branch(kind.name, node.field, node.named, node.start, node.end, children)


def _leaf(kind: str, field: str, named: bool, start: int, end: int, text: str) -> Node:
    leaf = Node(kind, field, named, start, end, text, (), 0)
    leaf.digest = hash((kind, leaf_text(leaf)))
    return leaf


def _branch(kind: str, field: str, named: bool, start: int, end: int, children: list[Node]) -> Node:
    made = Node(kind, field, named, start, end, "", tuple(children), 0)
    made.digest = hash((kind, "", *[child.digest for child in children]))
    if (wanted := _NAMED.get(kind)) is not None:
        name = next((one for one in children if one.kind in wanted and one.field != "initializer"), None)
        if name is not None:
            name.field = "name"
    for child in children:
        child.parent = made
    return made


def _from_the_left(node: Node) -> Node:
    """Return the tree of a::b::c as that of (a::b)::c, whose inner names are identifiers as in an expression."""
    inner, parts = node, list[Node]()
    while inner.kind == _FROM_THE_RIGHT and len(inner.children) == 3:
        parts += inner.children[:2]
        inner = inner.children[2]
    if len(parts) < 4 or inner.kind == _FROM_THE_RIGHT:
        return node
    parts.append(inner)
    left = parts[0]
    for at in range(1, len(parts), 2):
        sign, name = parts[at : at + 2]
        if at + 2 < len(parts) and name.kind == "namespace_identifier":
            name = _leaf("identifier", name.field, True, name.start, name.end, name.text)
        field = "scope" if at + 2 < len(parts) else node.field
        left = _branch(_FROM_THE_RIGHT, field, True, node.start, name.end, [left, sign, name])
    return left


def _merged(kind: str, children: list[Node], data: bytes) -> list[Node]:
    """Join the parts of a string's content: an escape sequence is no reason to be of another shape."""
    merged: list[Node] = []
    for child in children:
        is_escape = child.kind == "escape_sequence"
        if (is_escape or child.kind.endswith(_CONTENT)) and merged and merged[-1].kind.endswith(_CONTENT):
            last = merged.pop()
            merged.append(_content(last.kind, last.start, child.end, data))
        elif is_escape:
            name = "string_fragment" if kind.startswith(("string", "template")) else f"{kind}_content"
            merged.append(_content(name, child.start, child.end, data))
        else:
            merged.append(child)
    return merged


def _content(kind: str, start: int, end: int, data: bytes) -> Node:
    text = data[start:end].decode("utf-8", "surrogatepass")
    return Node(kind, "", True, start, end, text, (), hash((kind, text)))


def node_of(raw: tree_sitter.Node, data: bytes, language: Language) -> Node:
    """Return one node of a parsed text alone: it has no parent."""
    return convert(raw.walk(), data, language, [])
