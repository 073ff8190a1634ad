"""Brackets: which items open and close lists, and where an expression may go over several lines."""

from lsp_server.refactor.layout import Layout
from lsp_server.refactor.matching import Match
from lsp_server.refactor.node import Node
from lsp_server.refactor.pattern import Hole, Item, Leaf
from lsp_server.refactor.syntax import Syntax

OPENING = frozenset("([{")
CLOSING = frozenset({")", "]", "}", ">", "/>"})


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
