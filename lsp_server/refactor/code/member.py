"""Names that members, keyword arguments and fields of a value have, and what is before them."""

from lsp_server.refactor.code.grammar import is_access, is_call, is_name, is_named_element
from lsp_server.refactor.code.node import Node

_REFERENCES = frozenset(
    {"class_constant_access_expression", "method_reference", "callable_reference", "scope_resolution"}
    | {"nullsafe_member_call_expression", "nullsafe_member_access_expression"}
)
_AFTER_DOT = frozenset({"token_tree", "prefix_expression", "pattern", "member_binding_expression"})
"""What has a member without its receiver, or no access around it."""


def last_name(node: Node | None) -> Node | None:
    """Return the last name in some code: `c` of `a.b.c`; None if it has none."""
    return next((leaf for leaf in reversed([*node.leaves()]) if is_name(leaf)), None) if node is not None else None


def is_member(leaf: Node) -> bool:
    """Return whether a name is what a member, a keyword argument or a field of a value is called."""
    parent = leaf.parent
    if parent is None:
        return False
    if leaf.kind in ("property_identifier", "field_identifier", "shorthand_field_identifier"):
        return True
    if is_access(parent) and parent.children[0] is not leaf:
        return leaf.field != "alias"
    if is_call(parent) and leaf.field in ("name", "method"):
        return receiver(leaf) is not None
    if is_named_element(parent) and parent.children[0] is leaf and not leaf.kind.startswith("shorthand_"):
        return parent.kind != "jsx_expression" and (parent.kind, leaf.kind) != ("pair", "identifier")
    if parent.kind == "literal_element":
        return parent.field == "key"
    if parent.kind == "value_argument" and leaf.index == 0:
        return len(parent.children) > 1 and parent.children[1].text == "="
    if parent.kind in _REFERENCES:
        return leaf.index == 2
    if parent.kind in _AFTER_DOT:
        at = leaf.index
        return at > 0 and parent.children[at - 1].text == "."
    return False


def receiver(leaf: Node) -> Node | None:
    """Return what a member is of; None if nothing is before it."""
    parent = leaf.parent
    if parent is None:
        return None
    if parent.kind == "token_tree":
        at = leaf.index
        return parent.children[at - 2] if at > 1 and parent.children[at - 1].text == "." else None
    if (is_access(parent) or parent.kind in _REFERENCES) and parent.children[0] is not leaf:
        return parent.children[0]
    return next((one for one in parent.children if one.field in ("object", "receiver", "scope")), None)


def is_bare_member(leaf: Node) -> bool:
    """Return whether a member of Swift has no receiver, as its type is that of the place: `.red`."""
    return leaf.parent is not None and leaf.parent.kind in ("prefix_expression", "pattern") and is_member(leaf)


def constructed(leaf: Node) -> Node | None:
    """Return the class before the name of its constructor in C++: the first `A` of `A::A()`; None for other names."""
    owner = last_name(receiver(leaf)) if is_qualified(leaf) else None
    return owner if owner is not None and owner.text == leaf.text else None


def is_own_variable(leaf: Node) -> bool:
    """Return whether a name of Ruby is a variable of the object or of its class: `@x`, `@@x`."""
    return leaf.kind in ("instance_variable", "class_variable")


def is_qualified(leaf: Node) -> bool:
    """Return whether a name of C++ has a class or a namespace before it."""
    return leaf.parent is not None and leaf.parent.kind == "qualified_identifier" and leaf.field == "name"
