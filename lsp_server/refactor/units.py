"""Which nodes an edit can be of alone: those that say enough of where else it belongs."""

from lsp_server.refactor.grammar import binder_at, is_expression, is_list, is_several, is_unit
from lsp_server.refactor.node import Node, same
from lsp_server.refactor.precedence import level, level_of_place


def says_enough(before: Node, after: Node) -> bool:
    """Return whether an edit can be of these nodes alone."""
    if not is_unit(before) or not _may_follow(before, after) or _is_plain_list(before):
        return False
    if before.parent is not None and before.parent.kind == "reference_type" and before.kind != after.kind:
        return False  # a slice is no type by itself
    if before.kind == "predefined_type" and before.children:
        return False  # `any` is everywhere: what has this type says which one is meant
    if is_several(after) and before.parent is not None and before in before.parent.children[: binder_at(before.parent)]:
        return False  # what the value is decides whether more can be taken out of it
    if "assignment" in after.kind and "assignment" not in before.kind:
        return False  # in an argument an assignment would be a keyword argument
    if before.parent is not None and before.parent.kind == "jsx_expression":
        # Of the value of an attribute that the edit puts something around, the attribute says which values it means.
        return not any(same(node, before) for node in after.walk())
    # A type that the edit only adds to says nothing of which types it means: its parameter does.
    leaves = list(before.leaves())
    return not (_is_type(before) and len(leaves) == 1 and any(same(leaf, leaves[0]) for leaf in after.leaves()))


def _is_type(node: Node) -> bool:
    return node.field == "type" or node.kind in ("type", "type_annotation") or node.kind.endswith("_type")


def _may_follow(before: Node, after: Node) -> bool:
    """Return whether a node can take the place of another: a leaf can, a part of a list cannot."""
    return before.kind == after.kind or is_unit(after) or is_expression(after)


def _is_plain_list(node: Node) -> bool:
    return is_list(node) and node.kind != "jsx_opening_element"


def without_parentheses(before: Node, after: Node) -> tuple[Node, Node]:
    """Return the node after the edit without parentheses that only its place needs."""
    while after.kind == "parenthesized_expression" and before.kind != after.kind:
        inner = next((child for child in after.children if child.named), None)
        if inner is None or level(inner) >= level_of_place(after):
            break
        after = inner
    return before, after
