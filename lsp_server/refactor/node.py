"""The nodes of our own trees, without comments and separators."""

from collections.abc import Iterator

import attrs

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
