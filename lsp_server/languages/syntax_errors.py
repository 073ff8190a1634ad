"""Where a text does not parse."""

import tree_sitter


def errors(root: tree_sitter.Node) -> list[tree_sitter.Node]:
    """Return the outermost ERROR nodes and the MISSING tokens. Only subtrees with errors are visited."""
    nodes: list[tree_sitter.Node] = []
    pending = [root] if root.has_error else []
    while pending:
        node = pending.pop()
        if node.is_error or node.is_missing:
            nodes.append(node)
        else:
            pending.extend(child for child in node.children if child.has_error or child.is_missing)
    return nodes
