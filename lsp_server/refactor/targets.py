"""What a statement binds to a value: an edit may take more out of a value that it leaves as it is."""

import re
from collections.abc import Iterator

import attrs

from lsp_server.refactor.bindings import Scopes, needs_declaration
from lsp_server.refactor.difference import Change
from lsp_server.refactor.grammar import (
    BINDERS,
    binder_at,
    is_binding_kind,
    is_container,
    is_fixed_name,
    is_name,
    is_several,
)
from lsp_server.refactor.matching import match_at
from lsp_server.refactor.node import Node, same
from lsp_server.refactor.pattern import Branch, Leaf, Pattern, Rule, as_pattern
from lsp_server.refactor.surroundings import function_around

_NO_TARGET = re.compile(r"_type|^type|_specifier$|modifier|^value_binding_pattern$")
_MUST_READ = frozenset({"go"})
"""Languages that do not compile a function with a local variable that nothing reads."""


@attrs.frozen(eq=False)
class _Binding:
    """What a statement or a loop binds, and the value."""

    targets: tuple[Node, ...]
    value: Node

    def leaves(self) -> Iterator[Node]:
        return (leaf for one in self.targets for leaf in one.leaves())


def spread_value(change: Change) -> Node | None:
    """Return the value before an edit that only takes more out of it: `x = f()` becomes `x, y = f()`. Else None.

    Statements may follow that do something with what is taken.
    """
    if len(change.before) != 1 or not change.after:
        return None
    old, new = _binding(change.before[0]), _binding(change.after[0])
    if old is None or new is None or not same(old.value, new.value):
        return None
    names = [{leaf.text for leaf in one.leaves() if leaf.named} for one in (old, new)]
    sizes = [sum(1 for _ in one.leaves()) for one in (old, new)]
    has_several = len(new.targets) > 1 or any(map(is_several, new.targets))
    return old.value if has_several and names[0] <= names[1] and sizes[0] < sizes[1] else None


def _binding(node: Node) -> _Binding | None:
    """Return the one binding of a node. Its body does not count."""
    while not (index := binder_at(node)):
        named = [child for child in node.children if child.named and not is_container(child)]
        inner = [child for child in named if binder_at(child)] or named
        if len(inner) != 1:
            return None
        node = inner[0]
    sides = node.children[:index], node.children[index + 1 :]
    before, after = sides[::-1] if node.children[index].text == "as" else sides
    value = next((child for child in after if child.named), None)
    targets = [one for one in before if one.named and one.field != "type" and not _NO_TARGET.search(one.kind)]
    return _Binding(tuple(targets), value) if value is not None else None


def spread_pattern(rule: Rule) -> Branch | None:
    """Return the value that a rule takes more out of, as a pattern; None if it is no such rule, or a plain value."""
    waiting: list[Pattern] = list(rule.pattern) if rule.spreads else []
    while waiting:
        one = waiting.pop()
        if not isinstance(one, Branch):
            continue
        binder = next((at for at, part in enumerate(one.children) if _is_binder(part)), 0)
        if binder and is_binding_kind(one.kind):
            is_first = one.kind == "as_pattern"
            value = next((part for part in one.children[0 if is_first else binder :] if isinstance(part, Branch)), None)
            while value is not None and value.kind == "expression_list" and len(value.children) == 1:
                value = value.children[0] if isinstance(value.children[0], Branch) else None
            return value
        waiting.extend(one.children)
    return None


def _is_binder(pattern: Pattern) -> bool:
    return isinstance(pattern, Leaf) and not pattern.named and pattern.text in BINDERS


def taken_target(rule: Rule, node: Node, scopes: Scopes) -> str | None:
    """Return a reason if a name that a place would bind besides is in use there, or would be read by nothing."""
    if not rule.spreads:
        return None
    function = function_around(node)
    around = function if function is not None else next(reversed([*node.ancestors()]), node)
    for name in rule.unread:
        if name != "_" and any(_is_used(rule, leaf, scopes, around) for leaf in around.leaves() if leaf.text == name):
            return f"`{name}`, which the edit binds, is in use here"
        if name != "_" and function is not None and rule.language in _MUST_READ:
            return f"nothing here reads `{name}`, which the edit binds"
    return None


def _is_used(rule: Rule, leaf: Node, scopes: Scopes, around: Node) -> bool:
    """Return whether a leaf is a name of a function, and not one of a function inside of it."""
    if not is_name(leaf) or is_fixed_name(leaf) or _is_other_place(rule, leaf):
        return False
    owner = scopes.owner(leaf.text, leaf)
    return owner is None or owner is around or around not in owner.ancestors()


def _is_other_place(rule: Rule, leaf: Node) -> bool:
    """Return whether a name is bound by a place that has the edit: where no declaration is needed it may be again."""
    template = as_pattern(rule.template[0])
    if needs_declaration(rule.language) or not isinstance(template, Branch):
        return False
    return any(above.kind == template.kind and match_at(template, above) for above in leaf.ancestors())
