"""Builds our own trees from tree-sitter's."""

import functools

import attrs
import tree_sitter

from lsp_server.languages.language import Language
from lsp_server.refactor.node import Node, leaf_text

_SEPARATORS = frozenset({",", ";", "\n", "\r\n", ""})
# A self-closing element has the same name and attributes as an opening one, and the same edits fit both.
SAME_KIND = {"jsx_self_closing_element": "jsx_opening_element"}
_CONTENT = ("_content", "_fragment")


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
    """Return the tree below a cursor, and add its comments to `comments`."""
    # Iterative: generated code can be deeper than Python's stack.
    stack = [_opened(cursor, language)]
    descend = cursor.goto_first_child()
    while True:
        if descend:
            stack.append(_opened(cursor, language))
            descend = cursor.goto_first_child()
            continue
        done = stack.pop()
        if not stack:
            return _close(done, data)
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
        if parent.kind.is_string or not gap.isspace():
            parent.has_text = True
    parent.position = child.end
    if child.kind.is_comment:
        comments.append(Comment(child.start, child.end))
    elif not _is_trivia(parent, child, data):
        parent.children.append(_close(child, data))


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
        leaf = Node(kind.name, node.field, node.named, node.start, node.end, text, (), 0)
        leaf.digest = hash((kind.name, leaf_text(leaf)))
        return leaf
    made = Node(kind.name, node.field, node.named, node.start, node.end, "", tuple(children), 0)
    made.digest = hash((kind.name, "", *[child.digest for child in children]))
    for child in children:
        child.parent = made
    return made


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
