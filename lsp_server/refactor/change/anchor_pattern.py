"""The pattern of the statement beside which an example adds others, or of a function's head; and what is added."""

import re

import attrs

from lsp_server.refactor.change.anchors import NAMES, inner_body, is_bound, is_value
from lsp_server.refactor.change.generalise import Side
from lsp_server.refactor.change.variables import Key, is_role, key_of
from lsp_server.refactor.code.bindings import BROUGHT, Scopes, binds, is_function
from lsp_server.refactor.code.grammar import (
    is_access,
    is_arguments,
    is_call,
    is_callee,
    is_container,
    is_expression,
    is_fixed_name,
    is_name,
    is_parameters,
    level_of_place,
    receiver_of,
)
from lsp_server.refactor.code.node import Node
from lsp_server.refactor.code.syntax import Syntax
from lsp_server.refactor.rules.pattern import Branch, Hole, Leaf, Pattern, Rest

_TEST = re.compile(r"test_|test(?=[A-Z])|(Test|Benchmark|Fuzz)(?=[A-Z_])")


class AnchorReader(Side):
    """Makes the pattern of a statement or of the head of a function. `holes` are those of its variables."""

    def __init__(self, syntax: Syntax, shared: frozenset[Key], scopes: Scopes) -> None:
        super().__init__(syntax)
        self._shared, self._scopes = shared, scopes
        self._rests = 0
        self.holes: dict[Key, Hole] = {}
        self.is_telling = False
        """Whether the pattern has a callee, or the name of a test."""

    def read(self, node: Node) -> Pattern:
        gap, hole = self.gap(node), self._hole(node)
        if hole is not None or not node.children:
            self.end = node.end
            return attrs.evolve(hole, gap=gap) if hole is not None else Leaf(node.kind, node.text, node.named, gap)
        self.is_telling |= is_call(node) and any(map(_is_named_callee, node.children))
        if is_container(node):
            return self._body(node, "C")
        if is_arguments(node):
            return self._arguments(node)
        return Branch(node.kind, tuple(map(self.read, node.children)), node.field)

    def head(self, function: Node) -> Pattern:
        """Return the pattern of a function: whatever its body is."""
        return self._head(function, _is_test_of_python(function, self.syntax))

    def _head(self, node: Node, is_test: bool) -> Pattern:
        gap = self.gap(node)
        if node.field == "body" and is_container(node):
            return self._body(node, "B")
        if is_parameters(node):
            return self._parameters(node, is_test)
        if not node.children:
            self.end = node.end
            return self._name(node, gap) or Leaf(node.kind, node.text, node.named, gap)
        return Branch(node.kind, tuple(self._head(child, is_test) for child in node.children), node.field)

    def _name(self, leaf: Node, gap: str) -> Hole | None:
        """Return the hole of a function's name: a test's begins as the example's does."""
        parent = leaf.parent
        is_declarator = parent is not None and "function_declarator" in parent.kind and leaf.field == "declarator"
        is_own = parent is not None and is_function(parent) and leaf.field == "name"
        if not is_name(leaf) or not (is_own or is_declarator):
            return None
        test = _TEST.match(leaf.text)
        self.is_telling |= test is not None
        return Hole("N", frozenset({leaf.kind}), prefix=test[0] if test is not None else "", gap=gap)

    def _parameters(self, node: Node, is_test: bool) -> Pattern:
        """Return the parameters: those of another type than in the example do not fit.

        A test of Python may have any other fixtures.
        """
        children: list[Pattern] = []
        for child in node.children:
            leaves = {key_of(one) for one in child.walk() if one.kind in NAMES}
            is_used = not leaves.isdisjoint(self._shared)
            if not is_test or not child.named:
                children.append(self._parameter(child, child.child("type") is not None))
            elif is_used:
                children += [self._rest(", "), self._parameter(child, False)]
            self.end = child.end
        if is_test and children:
            children.insert(-1, self._rest(", "))
        return Branch(node.kind, tuple(children), node.field)

    def _parameter(self, node: Node, has_type: bool) -> Pattern:
        """Return a parameter. Its name varies if its type says what is meant."""
        gap, is_typed = self.gap(node), has_type or node.child("type") is not None
        *_, top = node.ancestors()
        if node.kind in NAMES and is_typed and binds(node, top) == "parameter":
            self.end = node.end
            return attrs.evolve(self._variable(node, frozenset({node.kind})), gap=gap)
        if not node.children:
            self.end = node.end
            return Leaf(node.kind, node.text, node.named, gap)
        return Branch(node.kind, tuple(self._parameter(child, is_typed) for child in node.children), node.field)

    def _body(self, node: Node, name: str) -> Pattern:
        """Return a body with whatever statements it has."""
        self._rests += name == "C"
        inner: Pattern = Rest(name if name == "B" else f"C{self._rests}", "", "\n")
        deeper = inner_body(node)
        if deeper is not node:
            inner = Branch(deeper.kind, (inner,), deeper.field)
        brackets = [child for child in node.children if not child.named]
        made = [Leaf(child.kind, child.text, False, " ") for child in brackets]
        self.end = node.end
        return Branch(node.kind, (*made[:1], inner, *made[1:]), node.field)

    def _arguments(self, node: Node) -> Pattern:
        """Return a list of arguments: any after the last one that has a shared name, and as many before it."""
        elements = node.parts
        last = max((at for at, one in enumerate(elements) if self._has_shared(one)), default=-1)
        children: list[Pattern] = []
        for child in node.children:
            at = elements.index(child) if child.named else -1
            if not child.named:
                children += [self._rest(", ")] if child is node.children[-1] else []
                children.append(Leaf(child.kind, child.text, False, self.gap(child)))
            elif at <= last:
                is_free = not self._has_shared(child) and is_expression(child) and "spread" not in child.kind
                gap = self.gap(child)
                children.append(attrs.evolve(self._any(), gap=gap) if is_free else self.read(child))
            self.end = child.end
        return Branch(node.kind, tuple(children), node.field)

    def _any(self) -> Hole:
        self._rests += 1
        return Hole(f"A{self._rests}")

    def _rest(self, separator: str) -> Rest:
        self._rests += 1
        return Rest(f"R{self._rests}", "", separator)

    def _has_shared(self, node: Node) -> bool:
        return any(key_of(one) in self._shared and not is_role(one) and not is_callee(one) for one in node.walk())

    def _hole(self, node: Node) -> Hole | None:
        if is_role(node) or is_callee(node) or not _may_vary(node):
            return None
        if key_of(node) in self._shared or key_of(node) in self.holes:
            return self._variable(node, frozenset({node.kind}) if is_bound(node) else frozenset())
        if is_bound(node) and (node.children or node.text not in BROUGHT):
            return self._variable(node, frozenset({node.kind}))
        is_receiver = node.parent is not None and receiver_of(node.parent) is node
        return self._variable(node, frozenset()) if is_receiver and is_value(node, self._scopes) else None

    def _variable(self, node: Node, kinds: frozenset[str]) -> Hole:
        is_receiver = node.parent is not None and receiver_of(node.parent) is node
        return self.holes.setdefault(key_of(node), Hole(f"X{len(self.holes)}", kinds, is_receiver))


def _may_vary(node: Node) -> bool:
    """Return whether a node is a variable or a member, and nothing that has one as its only child."""
    return node.kind in NAMES or is_access(node)


def _is_named_callee(node: Node) -> bool:
    return is_callee(node) and any(leaf.named for leaf in node.leaves())


def _is_test_of_python(function: Node, syntax: Syntax) -> bool:
    name = function.child("name")
    return syntax.language.id == "python" and name is not None and name.text.startswith("test_")


class AddedReader(Side):
    """Makes the template of a statement that is added."""

    def __init__(self, syntax: Syntax, holes: dict[Key, Hole]) -> None:
        super().__init__(syntax)
        self._holes = holes

    def read(self, node: Node) -> Pattern:
        gap = self.gap(node)
        hole = self._holes.get(key_of(node)) if _may_vary(node) and not is_fixed_name(node) else None
        if hole is None and node.children:
            return Branch(node.kind, tuple(map(self.read, node.children)), node.field)
        self.end = node.end
        if hole is not None:
            return attrs.evolve(hole, gap=gap, level=level_of_place(node))
        return Leaf(node.kind, node.text, node.named, gap)
