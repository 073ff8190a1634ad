"""The names that a file uses as what an import brought."""

from lsp_server.refactor.code.bindings import Scopes, binds
from lsp_server.refactor.code.grammar import is_fixed_name, is_import, is_name
from lsp_server.refactor.code.node import Node


def used_names(root: Node, scopes: Scopes) -> set[str]:
    """Return the names that a file uses as what an import brought."""
    used: set[str] = set()
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if is_import(node):
            continue
        waiting.extend(node.children)
        if node.children or not node.named or is_fixed_name(node) or binds(node, root):
            continue
        if not is_name(node) or scopes.binding(node.text, node).kind in ("import", "unknown"):
            used.add(node.text.strip("\"'"))
    return used
