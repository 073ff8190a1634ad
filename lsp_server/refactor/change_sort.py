"""What sort of edit a change is: a new structure, another value in the same place, or a name that is bound here."""

from typing import Literal

from lsp_server.refactor.bindings import Scopes
from lsp_server.refactor.difference import Change
from lsp_server.refactor.grammar import is_callee, is_definition, is_fixed_name, is_literal, is_name, is_parameters
from lsp_server.refactor.grammar import is_string_content as is_content
from lsp_server.refactor.node import Node, leaf_text

Sort = Literal["structure", "value", "rename"]


def sort_of(change: Change, scopes: Scopes) -> Sort:
    """Return the sort of a change. `scopes` are those of the text before it.

    A "value" is a literal or an operand in the same place; a "rename" gives a name that the file binds another name. A
    callee, a member or a keyword that changes is "structure": so an API changes.
    """
    old = [leaf for node in change.before for leaf in node.leaves()]
    new = [leaf for node in change.after for leaf in node.leaves()]
    if len(old) != len(new) or any(one.field != other.field for one, other in zip(old, new, strict=True)):
        return "structure"
    pairs = [pair for pair in zip(old, new, strict=True) if leaf_text(pair[0]) != leaf_text(pair[1])]
    if all(_is_bound(one, scopes) and is_name(other) for one, other in pairs):
        return "rename"
    return "value" if all(_is_value(one) and _is_value(other) for one, other in pairs) else "structure"


def _is_value(leaf: Node) -> bool:
    if is_literal(leaf) or is_content(leaf):
        return True
    return is_name(leaf) and leaf.kind == "identifier" and not is_fixed_name(leaf) and not is_callee(leaf)


def _is_bound(leaf: Node, scopes: Scopes) -> bool:
    """Return whether a leaf is a name that the file binds, and no callee, member or keyword."""
    if not is_name(leaf) or leaf.parent is None:
        return False
    if leaf.field == "name" and is_definition(leaf.parent):
        return True
    if is_fixed_name(leaf) or is_callee(leaf):
        return False
    if any(is_parameters(above) for above in leaf.ancestors()):
        return True
    return scopes.binding(leaf.text, leaf).kind in ("parameter", "local", "global")
