"""Which nodes of an example vary: arguments and operands that are the same before and after the edit."""

import functools
import itertools
import re
from collections.abc import Iterator

import attrs

from lsp_server.refactor.change.difference import Change
from lsp_server.refactor.code.bindings import Scopes, binds, is_parameter
from lsp_server.refactor.code.grammar import (
    SELF,
    argument_name,
    binder_at,
    is_access,
    is_arguments,
    is_call,
    is_callee,
    is_container,
    is_definition,
    is_expression,
    is_fixed_name,
    is_keyword_literal,
    is_list,
    is_literal,
    is_name,
    is_named_element,
    is_parameters,
    is_part_of_name,
    is_several,
    is_string_content,
    receiver_of,
)
from lsp_server.refactor.code.node import Node, leaf_text, same
from lsp_server.refactor.rules.pattern import Hole

END_TAGS = frozenset({">", "/>"})
_ASSIGNING = ("short_var_declaration", "typed_parameter", "default_parameter", "typed_default_parameter",
              "required_parameter", "named_expression")  # fmt: skip


_GENERIC = frozenset({"generic_type", "generic_name", "template_type", "user_type"})
_NO_TARGET = re.compile(r"_type$|^type|_specifier$|modifier|^value_binding_pattern$")
_SMALL_FUNCTIONS = frozenset({"arrow_function", "lambda", "closure_expression", "lambda_expression"})
Key = tuple[str, ...]


class Variables:
    """The holes of an example, by the trees that they are. `fixed` names what stays, see generalise.py."""

    def __init__(self, change: Change, scopes: Scopes, fixed: frozenset[str]) -> None:
        self._change, self._scopes, self._fixed = change, scopes, fixed
        self._value = spread_value(change)
        self._new = [node for top in change.after for node in top.walk()]
        self._new_keys = {key_of(node) for node in self._new if not is_role(node) and not _is_qualified(node)}
        self.holes: dict[Key, Hole] = {}
        self.fragments: dict[str, Hole] = {}
        """The holes for the contents of strings, by their texts."""

    def hole(self, node: Node) -> Hole | None:
        """Return the hole that a node of the text before is; None if it stays as it is."""
        if node in self._change.before or self._is_all(node) or (_is_key(node) and not self._is_read_once_more(node)):
            return None
        if is_name(node) and node.text.startswith("test_") and node.field == "name":
            self.holes[key_of(node)] = Hole(f"X{len(self.holes)}", frozenset({node.kind}), prefix="test_")
            return self.holes[key_of(node)]
        if key_of(node) in self.holes and self._may_vary(node):
            return self.holes[key_of(node)]
        if self._is_bound_inside(node):
            return self.holes.setdefault(key_of(node), Hole(f"X{len(self.holes)}", frozenset({node.kind})))
        if not self._varies(node):
            return self._fragment(node)
        hole = Hole(f"X{len(self.holes)}", frozenset(), _is_receiver(node))
        if is_string_content(node) or node.text in END_TAGS:
            hole = attrs.evolve(hole, kinds=frozenset({node.kind, *(END_TAGS if node.text in END_TAGS else ())}))
        elif is_name(node) and node.field == "name":
            hole = attrs.evolve(hole, kinds=frozenset({node.kind}))
        self.holes[key_of(node)] = hole
        return hole

    def _is_bound_inside(self, node: Node) -> bool:
        """Return whether a name is the parameter of a function in the code of the example: any name is as good."""
        if not is_name(node) or is_fixed_name(node) or "all" in self._fixed:
            return False
        for above in node.ancestors():
            if above.kind in _SMALL_FUNCTIONS and any(
                leaf.text == node.text and is_name(leaf) and binds(leaf, above) == "parameter"
                for child in above.children
                if child.field in ("parameters", "parameter")
                for leaf in child.leaves()
            ):
                return True
            if any(above is top for top in self._change.before):
                return False
        return False

    def _is_all(self, node: Node) -> bool:
        """Return whether a node is all there is: a rule for whatever is there says nothing."""
        before = self._change.before
        return len(before) == 1 and bool(node.children) and node.size == before[0].size

    def _varies(self, node: Node) -> bool:
        if node.text in END_TAGS and node.parent is not None and node.parent.kind == "jsx_opening_element":
            return any(other.text in END_TAGS for other in self._new)
        if (is_name(node) or node.kind == "variable_name") and is_parameter(node) and not self._stays_bound(node):
            return False  # the edit takes it away, and what has its name then is something else
        return self._may_vary(node) and key_of(node) in self._new_keys

    def _stays_bound(self, name: Node) -> bool:
        return any(same(one, name) and (is_parameter(one) or _is_target(one)) for one in self._new)

    def _may_vary(self, node: Node) -> bool:
        """Return whether a node is an argument, an operand or the like, and no callee, member, keyword or type."""
        if not is_expression(node) or is_parameters(node) or (is_callee(node) and not self._is_handed_over(node)):
            return False
        if is_container(node) and node.kind != "object_type":
            return False
        parent = node.parent
        if self._is_head(node) or self._is_in_value(node) or is_part_of_name(node) or self._is_other_thing(node):
            return False
        if "all" in self._fixed or ("literal" in self._fixed and is_literal(node)) or _is_done(node):
            return False
        names = [leaf for leaf in node.leaves() if leaf.named]
        if (
            "thing" in self._fixed
            and names
            and all(map(_is_plain, node.walk()))
            and self._is_thing(names[0], stays=False)
        ):
            return False
        if parent is None or is_literal(node):
            return not is_keyword_literal(node) or (parent is not None and is_arguments(parent))
        if is_definition(parent) and node.field == "name":
            return "definition" not in self._fixed
        if _is_target(node):
            return "target" not in self._fixed
        if is_fixed_name(node) or node.field == "type" or parent.kind == "type_annotation" or is_access(parent):
            return receiver_of(parent) is node and self._receiver_varies(node)
        if parent.kind == "type":
            return parent.parent is not None and is_list(parent.parent)
        if parent.kind in ("decorator", "dotted_name", "superclasses", "import_spec") or node.kind == "decorator":
            return False
        if node.field == "superclasses" or parent.field == "superclasses":
            return False
        if parent.kind == "jsx_opening_element" or parent.kind == "jsx_closing_element":
            return False
        return receiver_of(parent) is not node or self._receiver_varies(node)

    def _is_handed_over(self, callee: Node) -> bool:
        """Return whether one of several statements calls what the edit hands over as an argument: any may be called."""
        after = [one for one in self._new if key_of(one) == key_of(callee)]
        is_given = bool(after) and all(one.parent is not None and is_arguments(one.parent) for one in after)
        return is_given and len(self._change.before) > 1

    def _is_head(self, node: Node) -> bool:
        """Return whether a node is the type whose arguments change (`Bag` of `Bag<A, B>`), or of which one is made."""
        above = node.parent
        if above is None or above.kind not in _GENERIC or above.children[0] is not node:
            return False
        return is_callee(above) or key_of(above) not in self._new_keys

    def _is_read_once_more(self, node: Node) -> bool:
        """Return whether the edit has some code more often than it was there."""
        old = [one for top in self._change.before for one in top.walk()]
        old_count, new_count = (sum(same(one, node) for one in side) for side in (old, self._new))
        return new_count > old_count

    def _is_in_value(self, node: Node) -> bool:
        """Return whether a node is what the edit takes more out of. Only the arguments of its calls vary."""
        inner: Node | None = node
        while self._value is not None and inner is not None:
            if inner is self._value:
                return True
            if is_arguments(inner):
                return False
            inner = inner.parent
        return False

    def _receiver_varies(self, node: Node) -> bool:
        """Return whether a receiver may be another one: it moves, or its method gets another name."""
        names = [leaf for leaf in node.leaves() if leaf.named]
        if not names or (not node.children and names[0].text in SELF):
            return False
        stays = [other for other in self._new if same(other, node) and _is_receiver(other)]
        if all(map(_is_plain, node.walk())) and self._is_thing(names[0], stays=bool(stays)):
            return False
        return not any(_same_member(node, other) for other in stays)

    def _is_other_thing(self, node: Node) -> bool:
        return key_of(node) in self._things and not _is_receiver(node) and not is_callee(node)

    @functools.cached_property
    def _things(self) -> frozenset[Key]:
        """Names that stay as they are, wherever they are: what is called, and `foo` in `foo && foo.bar`."""
        names = [leaf for top in self._change.before for leaf in top.leaves() if is_name(leaf)]
        stays = {leaf.text for leaf in self._new if is_name(leaf) and _is_receiver(leaf)}
        called = (leaf for leaf in names if is_callee(leaf))
        receivers = (leaf for leaf in names if _is_receiver(leaf) and leaf.text in stays)
        return frozenset(map(key_of, (*called, *(leaf for leaf in receivers if self._is_thing(leaf, stays=True)))))

    def _is_thing(self, name: Node, stays: bool) -> bool:
        """Return whether a name is a module or a class, as is likely of one that nothing explains and that `stays`."""
        binding = self._scopes.binding(name.text, name).kind
        if binding == "unknown" and not self._scopes.has_imports and name.text not in SELF:
            return stays or name.text[:1].isupper()
        is_class = name.text[:1].isupper() and not name.text.isupper()
        return binding == "import" or (is_class and binding != "parameter")

    def _fragment(self, node: Node) -> Hole | None:
        """Return a hole for the content of a string that is a part of another string after the edit."""
        if not is_string_content(node) or {"content", "all"} & self._fixed:
            return None
        if not any(is_string_content(other) and _contains(other.text, node.text) for other in self._new):
            return None
        if node.text not in self.fragments:
            hole = Hole(f"S{len(self.fragments)}", frozenset({node.kind}))
            self.fragments[node.text] = hole
        return self.fragments[node.text]


def key_of(node: Node) -> Key:
    """Return what a hole is known by: its tokens. A type and an expression of the same tokens are the same."""
    leaves = list(node.leaves())
    return (leaves[0].kind, leaf_text(leaves[0])) if len(leaves) == 1 else tuple(map(leaf_text, leaves))


def _is_done(node: Node) -> bool:
    """Return whether an expression is there for what it does: a call or an assignment that is a statement's own."""
    parent = node.parent
    if parent is None or parent.parent is None:
        return False
    if "assignment" in node.kind or parent.kind == "expression_statement":
        return not is_name(node)
    holder = parent.parent if parent.kind == "expression_list" else parent
    is_value = "assignment" in holder.kind or "declarator" in holder.kind or holder.kind == "short_var_declaration"
    return is_value and is_call(node) and not _is_target(node)


def _contains(text: str, part: str) -> bool:
    """Return whether a text has another one in it, so that it is no chance."""
    return part in text and (len(part) > 1 or text.startswith(part) or text.endswith(part))


def is_role(node: Node) -> bool:
    """Return whether a name is what something is called, and not a value: a member, a keyword."""
    return is_fixed_name(node) and not (node.parent is not None and is_definition(node.parent))


def _is_qualified(node: Node) -> bool:
    """Return whether a name has a qualifier, which says of it what it is: `INT` of `Arg::INT`."""
    return is_name(node) and node.index > 0 and node.parent is not None and is_access(node.parent)


def _is_receiver(node: Node) -> bool:
    return node.parent is not None and receiver_of(node.parent) is node


def _is_plain(node: Node) -> bool:
    return not is_call(node) and not is_list(node) and "subscript" not in node.kind


def _same_member(node: Node, other: Node) -> bool:
    assert node.parent is not None
    assert other.parent is not None
    return same(node.parent, other.parent)


def _is_target(node: Node) -> bool:
    """Return whether a node is assigned to, or is a part of what is assigned to."""
    parent = node.parent
    if parent is None:
        return False
    if parent.kind in ("expression_list", "pattern_list"):
        return parent.field == "left"
    assigns = "assign" in parent.kind or "declarator" in parent.kind or parent.kind in _ASSIGNING
    return assigns and (node.field in ("left", "name", "pattern") or node is parent.children[0])


def _is_key(node: Node) -> bool:
    """Return whether a node is in the key of an element: `a` of `f(a: b)`, `T{a: b}` and `{"a": b}`."""
    for child, above in itertools.pairwise((node, *node.ancestors())):
        if is_named_element(above) or argument_name(above):
            return len(above.children) > 1 and above.children[0] is child
        if is_list(above):
            return False
    return False


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


def binds_literal(top: Node) -> bool:
    """Return whether a statement, a field or a parameter binds a name to a literal. Arguments of a call bind none."""
    waiting = [top]
    while waiting:
        node = waiting.pop()
        if is_call(node) or is_arguments(node) or is_named_element(node) or is_container(node):
            continue
        at = next((at for at, one in enumerate(node.children) if not one.named and one.text in ("=", ":=")), None)
        for value in node.children[at + 1 :] if at is not None else ():
            if is_literal(value) or (len(value.children) == 1 and is_literal(value.children[0])):
                return True
        waiting.extend(node.children)
    return False


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
