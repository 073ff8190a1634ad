"""What sort of change an example has: an API that changes, a value, a name, or something that goes."""

from typing import Literal

from lsp_server.refactor.change.difference import Change
from lsp_server.refactor.code.bindings import BROUGHT, UNKNOWN, Scopes, binds
from lsp_server.refactor.code.grammar import (
    callee_of,
    is_callee,
    is_definition,
    is_fixed_name,
    is_literal,
    is_name,
    is_named_element,
    is_string_content,
)
from lsp_server.refactor.code.node import Node, leaf_text

Sort = Literal["structure", "value", "removal", "rename", "insertion"]


def sort_of(change: Change, scopes: Scopes) -> Sort:
    """Return the sort of a change. `scopes` are those of the text before it.

    A "value" is a literal or an operand in the same place; a "rename" gives a name that the file binds another name. A
    callee, a member, a keyword or something imported that changes is "structure": so an API changes. What the language
    itself brings does not change, so more arguments of it are values, unless they have names.
    """
    if not change.after:
        return "removal"
    if _is_call_of_builtin(change, scopes):
        return "value"
    old = [leaf for node in change.before for leaf in node.leaves()]
    new = [leaf for node in change.after for leaf in node.leaves()]
    if len(old) != len(new) or any(one.field != other.field for one, other in zip(old, new, strict=True)):
        return "structure"
    pairs = [pair for pair in zip(old, new, strict=True) if leaf_text(pair[0]) != leaf_text(pair[1])]
    if sorted(leaf_text(one) for one, _ in pairs) == sorted(leaf_text(other) for _, other in pairs):
        return "structure"  # arguments that changed places
    if all(_is_bound(one, scopes) and is_name(other) for one, other in pairs):
        return "rename"
    return "value" if all(_is_value(one, scopes) and _is_value(other, scopes) for one, other in pairs) else "structure"


def _is_call_of_builtin(change: Change, scopes: Scopes) -> bool:
    """Return whether a change gives more arguments to a function that the language brings, none of them by name."""
    if len(change.before) != 1 or len(change.after) != 1:
        return False
    names = [callee_of(node) for node in (*change.before, *change.after)]
    old, new = names
    if old is None or new is None or old.text != new.text or old.text not in BROUGHT:
        return False
    named = [sum(map(is_named_element, node.walk())) for node in (*change.before, *change.after)]
    more = change.after[0].size > change.before[0].size
    return more and named[0] == named[1] and scopes.binding(old.text, old) == UNKNOWN


def _is_value(leaf: Node, scopes: Scopes) -> bool:
    if is_literal(leaf) or is_string_content(leaf):
        return True
    if not is_name(leaf) or leaf.kind != "identifier" or is_fixed_name(leaf) or is_callee(leaf):
        return False
    return not scopes.is_imported(leaf.text)


def _is_bound(leaf: Node, scopes: Scopes) -> bool:
    """Return whether a leaf is a name that the file binds, and no callee, member or keyword."""
    if not is_name(leaf) or leaf.parent is None:
        return False
    if leaf.field == "name" and is_definition(leaf.parent):
        return True
    if is_fixed_name(leaf) or is_callee(leaf):
        return False
    *_, top = leaf.ancestors()
    if binds(leaf, top):
        return True
    return scopes.binding(leaf.text, leaf).kind in ("parameter", "local", "global")
