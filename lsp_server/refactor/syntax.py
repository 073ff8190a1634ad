"""Syntax trees for tree patterns: our own nodes, without comments and separators, built from tree-sitter's."""

from collections.abc import Iterator

import attrs
import tree_sitter

from lsp_server.languages.language import Language

PARSE_SECONDS = 3.0
_SEPARATORS = frozenset({",", ";", "\n", "\r\n", ""})
# A self-closing element has the same name and attributes as an opening one, and the same edits fit both.
SAME_KIND = {"jsx_self_closing_element": "jsx_opening_element"}
_CONTENT = ("_content", "_fragment")
_QUOTES = str.maketrans({"'": '"'})


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

    def ancestors(self) -> "Iterator[Node]":
        """Yield the nodes above this one, the nearest first."""
        node = self.parent
        while node is not None:
            yield node
            node = node.parent


@attrs.frozen(eq=False)
class Comment:
    """A comment, in UTF-8 bytes."""

    start: int
    end: int


@attrs.frozen(eq=False)
class Syntax:
    """A parsed text. `errors` counts the outermost ERROR nodes and the MISSING tokens."""

    data: bytes
    language: Language
    root: Node
    comments: tuple[Comment, ...]
    errors: int

    def text(self, start: int, end: int) -> str:
        """Return the text between two bytes."""
        return self.data[start:end].decode("utf-8", "surrogatepass")

    def comment_between(self, start: int, end: int) -> bool:
        """Return whether a comment lies between two bytes."""
        return any(start <= comment.start and comment.end <= end for comment in self.comments)

    def in_string(self, byte: int) -> bool:
        """Return whether a byte is inside a string, where white space counts."""
        node = self.root
        while node.children:
            inner = next((child for child in node.children if child.start <= byte < child.end), None)
            if inner is None:
                return False
            node = inner
        return node.kind in self.language.strings or "string" in node.kind or node.kind == "heredoc_body"

    def line_indent(self, byte: int) -> str:
        """Return the white space at the start of the line that has `byte`."""
        first = self.data.rfind(b"\n", 0, byte) + 1
        line = self.data[first:byte]
        if line.strip(b" \t"):
            line = line[: len(line) - len(line.lstrip(b" \t"))]
        return line.decode()


def parse(data: bytes, language: Language) -> Syntax | None:
    """Return the syntax of a UTF-8 text; None without a grammar, or when parsing takes more than PARSE_SECONDS."""
    tree = language.parse(data, None, PARSE_SECONDS)
    return syntax_of(tree, data, language) if tree is not None else None


def syntax_of(tree: tree_sitter.Tree, data: bytes, language: Language) -> Syntax:
    """Return the syntax of a text that tree-sitter has parsed."""
    comments: list[Comment] = []
    root = _convert(tree.walk(), data, language, comments)
    return Syntax(data, language, root, tuple(comments), count_errors(tree.root_node))


def node_of(raw: tree_sitter.Node, data: bytes, language: Language) -> Node:
    """Return one node of a parsed text alone: it has no parent."""
    return _convert(raw.walk(), data, language, [])


def count_errors(root: tree_sitter.Node) -> int:
    """Return the number of outermost ERROR nodes and of MISSING tokens."""
    count = 0
    waiting = [root] if root.has_error else []
    while waiting:
        node = waiting.pop()
        if node.is_error or node.is_missing:
            count += 1
        else:
            waiting.extend(child for child in node.children if child.has_error or child.is_missing)
    return count


def same(first: Node, second: Node) -> bool:
    """Return whether two trees are equal, apart from where they are, comments, commas and the kind of quotes."""
    if first.digest != second.digest or len(first.children) != len(second.children):
        return False
    if first.kind != second.kind or leaf_text(first) != leaf_text(second):
        return False
    return all(map(same, first.children, second.children))


def leaf_text(node: Node) -> str:
    """Return the text of a leaf for comparison: both kinds of quotes are the same."""
    if "'" in node.text and (not node.named or node.kind in ("string_start", "string_end")):
        return node.text.translate(_QUOTES)
    return node.text


@attrs.define(eq=False)
class _Open:
    """A node whose children are still being read."""

    raw: tree_sitter.Node
    field: str
    children: list[Node] = attrs.field(factory=list)
    position: int = 0
    has_text: bool = False


def _convert(cursor: tree_sitter.TreeCursor, data: bytes, language: Language, comments: list[Comment]) -> Node:
    # Iterative: generated code can be deeper than Python's stack.
    root = cursor.node
    assert root is not None
    stack = [_Open(root, "", position=root.start_byte)]
    descend = cursor.goto_first_child()
    while True:
        if descend:
            raw = cursor.node
            assert raw is not None
            stack.append(_Open(raw, cursor.field_name or "", position=raw.start_byte))
            descend = cursor.goto_first_child()
            continue
        done = stack.pop()
        if not stack:
            return _close(done, data)
        _add(stack[-1], done, data, language, comments)
        descend = cursor.goto_next_sibling()
        if not descend:
            cursor.goto_parent()


def _add(parent: _Open, child: _Open, data: bytes, language: Language, comments: list[Comment]) -> None:
    raw = child.raw
    is_string = parent.raw.type in language.strings or "string" in parent.raw.type
    gap = data[parent.position : raw.start_byte]
    if gap and (is_string or gap.strip()):
        parent.has_text = True
    parent.position = raw.end_byte
    if raw.type in language.comments or raw.type.endswith("comment"):
        comments.append(Comment(raw.start_byte, raw.end_byte))
    elif not _is_trivia(parent.raw, raw, data):
        parent.children.append(_close(child, data))


def _is_trivia(parent: tree_sitter.Node, raw: tree_sitter.Node, data: bytes) -> bool:
    if raw.type == "jsx_text":
        return not data[raw.start_byte : raw.end_byte].strip()
    if raw.is_named or parent.type.startswith("for"):  # for (;;) needs its semicolons
        return False
    return raw.type in _SEPARATORS


def _merged(kind: str, children: list[Node], data: bytes) -> list[Node]:
    """Join the parts of a string's content: an escape sequence is no reason to be of another shape."""
    merged: list[Node] = []
    for child in children:
        is_content = child.kind == "escape_sequence" or child.kind.endswith(_CONTENT)
        if is_content and merged and merged[-1].kind.endswith(_CONTENT):
            child = _leaf(merged[-1].kind, merged[-1].start, child.end, data)
            merged.pop()
        elif child.kind == "escape_sequence":
            child = _leaf(
                "string_fragment" if kind.startswith(("string", "template")) else f"{kind}_content",
                child.start,
                child.end,
                data,
            )
        merged.append(child)
    return merged


def _leaf(kind: str, start: int, end: int, data: bytes) -> Node:
    text = data[start:end].decode("utf-8", "surrogatepass")
    return Node(kind, "", True, start, end, text, (), hash((kind, text)))


def _close(node: _Open, data: bytes) -> Node:
    raw = node.raw
    kind = SAME_KIND.get(raw.type, raw.type)
    rest = data[node.position : raw.end_byte]
    is_leaf = not node.children or node.has_text or ("string" in kind and bool(rest)) or kind.endswith(_CONTENT)
    children = () if is_leaf else tuple(_merged(kind, node.children, data) if "string" in kind else node.children)
    text = data[raw.start_byte : raw.end_byte].decode("utf-8", "surrogatepass") if is_leaf else ""
    made = Node(kind, node.field, raw.is_named, raw.start_byte, raw.end_byte, text, children, 0)
    made.digest = hash((kind, leaf_text(made), *(child.digest for child in children)))
    for child in children:
        child.parent = made
    return made
