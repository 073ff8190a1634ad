"""The names of an example that something must bind: those that a place needs too, and those that the edit brings."""

from collections.abc import Sequence

from lsp_server.refactor.change.generalise import Sides
from lsp_server.refactor.code.bindings import (
    BROUGHT,
    UNKNOWN,
    Scopes,
    declares,
    imports_of,
    is_function,
    package_import,
)
from lsp_server.refactor.code.declarations import is_class, names_of
from lsp_server.refactor.code.grammar import (
    SELF,
    callee_of,
    is_access,
    is_call,
    is_callee,
    is_fixed_name,
    is_name,
    receiver_of,
)
from lsp_server.refactor.code.imports import Import
from lsp_server.refactor.code.node import Node
from lsp_server.refactor.code.syntax import Syntax
from lsp_server.refactor.code.traits import traits_of
from lsp_server.refactor.rules.pattern import Leaf, Pattern, items, names_in, texts_of
from lsp_server.refactor.rules.rule import Name, NewNames

_NEVER_BOUND = SELF | {"super"}
_BEFORE_MEMBER = (".", "::")
_IMPORTS_ONE = ("go", "java", "kotlin", "scala", "php")
_ROOTS = ("\\", "::")
Brought = tuple[str, Node, bool]
"""A free name that only a template has, a leaf of the example with it, and whether its file binds it."""


def free_names(nodes: Sequence[Node], sides: Sides, scopes: Scopes) -> tuple[Name, ...]:
    """Return the constant names of the pattern that must be the same thing in a place: callees, receivers, types."""
    names: dict[str, Name] = {}
    for leaf in _constant_leaves(nodes, sides.pattern):
        if leaf.text in _NEVER_BOUND or not is_name(leaf) or is_fixed_name(leaf):
            continue
        binding = scopes.binding(leaf.text, leaf)
        own = package_import(leaf.text, scopes.syntax) if binding == UNKNOWN else None
        if binding != UNKNOWN or own is not None or _is_used_as_thing(leaf):
            kind = "fragment" if binding == UNKNOWN and own is None and not scopes.has_imports else binding.kind
            kind = "variable" if kind == "global" and _is_receiver_alone(leaf, scopes) else kind
            names.setdefault(leaf.text, Name(leaf.text, kind, own.source if own is not None else binding.source))
    return tuple(names.values())


def _is_receiver_alone(leaf: Node, scopes: Scopes) -> bool:
    """Return whether a method is called on a global variable: a local one of its name may be the same sort of thing."""
    found = names_of(scopes.syntax).resolved(leaf)
    if found is None or leaf.parent is None or receiver_of(leaf.parent) is not leaf or leaf.text[:1].isupper():
        return False
    value = found.holder.child("value") or found.holder.child("right")
    callee = callee_of(value) if value is not None and is_call(value) else None
    is_other = found.is_function or is_class(found.holder) or (value is not None and is_function(value))
    return not is_other and (callee is None or callee.text != "require")


def free_fragment_names(nodes: Sequence[Node], pattern: Sequence[Pattern]) -> tuple[Name, ...]:
    """Return the constant names of code that stands alone: nothing says what they are."""
    used = [leaf.text for leaf in _constant_leaves(nodes, pattern) if _is_free(leaf) and _is_used_as_thing(leaf)]
    return tuple(Name(text, "fragment") for text in dict.fromkeys(used))


def _constant_leaves(nodes: Sequence[Node], pattern: Sequence[Pattern]) -> list[Node]:
    """Return the leaves that are the same in each place."""
    constants = {(item.kind, item.text) for item in items(pattern) if isinstance(item, Leaf) and item.named}
    return [leaf for top in nodes for leaf in top.leaves() if (leaf.kind, leaf.text) in constants]


def _is_free(leaf: Node) -> bool:
    """Return whether a leaf is a name that something must bind. All files know `\\A\\b` and `::a::b`."""
    if not is_name(leaf) or leaf.text in _NEVER_BOUND or is_fixed_name(leaf) or _is_member(leaf):
        return False
    tops = [one for one in leaf.ancestors() if is_access(one) or one.kind == "namespace_name"]
    return not tops or next(tops[-1].leaves()).text not in _ROOTS


def _is_member(leaf: Node) -> bool:
    """Return whether a leaf is the last part of `a.b` or `A::B`, which an argument of a Rust macro has as tokens."""
    parent, at = leaf.parent, leaf.index
    if parent is None or not at:
        return False
    return is_access(parent) or (at > 1 and parent.children[at - 1].text in _BEFORE_MEMBER)


def _is_used_as_thing(leaf: Node) -> bool:
    """Return whether a name is called, a receiver or a type, and not an operand only."""
    node: Node | None = leaf
    while node is not None and node.parent is not None:
        if (
            is_callee(node)
            or receiver_of(node.parent) is node
            or node.parent.kind in ("type", "generic_type", "decorator")
        ):
            return True
        if node.parent.children[0] is not node:
            return False
        node = node.parent
    return False


def _is_type_name(leaf: Node) -> bool:
    """Return whether a name is that of a type, of an annotation, or before a `::`."""
    parent = leaf.parent
    if parent is None or leaf.kind == "type_identifier":
        return parent is not None
    is_class = any(one.text == "::" for one in parent.children[leaf.index + 1 :][:1])
    return is_class or parent.kind in ("annotation", "marker_annotation", "named_type")


def may_be_elsewhere(leaf: Node, syntax: Syntax) -> bool:
    """Return whether a name that nothing in its file binds may be another file's, without an import."""
    return _is_used_as_thing(leaf) or (_is_type_name(leaf) and not traits_of(syntax.language.id).names_all)


def new_names(
    brought: Sequence[Brought], nodes: Sequence[Node], sides: Sides, before: Syntax, after: Syntax
) -> NewNames:
    """Return the names that only the template has, which was made of `nodes`, and the imports that they need.

    `brought` are those of `names_brought`.
    """
    return NewNames(
        tuple(name for name, _, is_bound in brought if is_bound),
        tuple(name for name, _, is_bound in brought if not is_bound),
        _bound(nodes, sides, after),
        needed=_needed(sides, before, after),
    )


def names_brought(nodes: Sequence[Node], sides: Sides, after: Syntax) -> list[Brought]:
    """Return the free names that only the template has, each with a leaf of `nodes` and whether its file binds it.

    Imports are left out: they come along. So are names that the edit itself binds.
    """
    scopes = Scopes(after, imports_of(after))
    leaves = _new_leaves(nodes, sides)
    bound = {leaf.text for leaf in leaves if declares(leaf, after.root, after.language.id)}
    found: dict[str, Brought] = {}
    for leaf in filter(_is_free, leaves):
        binding = scopes.binding(leaf.text, leaf)
        if leaf.text not in bound and leaf.text not in BROUGHT and binding.kind != "import":
            found.setdefault(leaf.text, (leaf.text, leaf, binding != UNKNOWN))
    return list(found.values())


def _needed(sides: Sides, before: Syntax, after: Syntax) -> tuple[Import, ...]:
    """Return the imports at the top of a file, before and after its edit, of names which only the template has.

    They are those of languages in which an import of one file means the same in another.
    """
    new = _new_names(sides)
    is_known = traits_of(after.language.id).names_all or after.language.id in _IMPORTS_ONE
    parts = [one for one in imports_of(after).parts if one.what.bound in new and one.statement.parent is after.root]
    return tuple(one.what for one in parts if is_known and one.what in imports_of(before).all)


def _bound(nodes: Sequence[Node], sides: Sides, after: Syntax) -> tuple[str, ...]:
    """Return the names that only the template has, and that the edit itself binds."""
    leaves = _new_leaves(nodes, sides)
    return tuple(sorted({leaf.text for leaf in leaves if declares(leaf, after.root, after.language.id)}))


def _new_names(sides: Sides) -> set[str]:
    """Return the names and literals that only the template has."""
    return names_in(sides.template) - set(texts_of(sides.pattern))


def _new_leaves(nodes: Sequence[Node], sides: Sides) -> list[Node]:
    """Return the leaves whose texts only the template has."""
    new = _new_names(sides)
    return [leaf for top in nodes for leaf in top.leaves() if leaf.text in new]
