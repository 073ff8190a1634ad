"""Parentheses that a new text needs in its place, and those that only the old place needed."""

from collections.abc import Sequence

import attrs

from lsp_server.refactor.code.grammar import LOOSEST, level, level_of_place
from lsp_server.refactor.code.node import Node
from lsp_server.refactor.code.syntax import Syntax
from lsp_server.refactor.rules.matching import Bound, Match
from lsp_server.refactor.rules.pattern import Branch, Hole, Item, Leaf, Pattern
from lsp_server.refactor.rules.rule import Rule

_PLAIN = 3
"""Expressions that bind more loosely, such as lambdas and `a, b`, keep their parentheses."""


def needed_around(rule: Rule, match: Match) -> bool:
    """Return whether what a place becomes needs parentheses that the place has not."""
    if len(match.nodes) != 1 or rule.edges.level < 0:
        return False
    node = match.nodes[0]
    if rule.edges.level < min(level_of_place(node), rule.edges.pattern_level):
        return True
    return _begins_body(node) and _begins_with_object(rule.template[0], match)


def needed_in(hole: Hole, node: Node, template: Sequence[Item], index: int, binds: int) -> bool:
    """Return whether what a hole of a template stands for needs parentheses there.

    index: that of the hole. binds: how tightly the new text of the node does.
    """
    before = template[index - 1] if index else None
    if isinstance(before, Leaf) and before.text == "=>" and (binds == LOOSEST or _is_object_first(node)):
        return True
    return binds < hole.level and (binds < level(node) or level_of_place(node) < hole.level)


def without_old(hole: Hole, bound: Bound, syntax: Syntax) -> Bound:
    """Return what is in parentheses that only the old place needed."""
    node = bound.nodes[0]
    inner = next(iter(node.parts), None)
    if hole.level != LOOSEST or node.kind != "parenthesized_expression" or inner is None:
        return bound
    is_plain = b"\n" not in syntax.data[node.start : node.end] and level(inner) >= _PLAIN
    if is_plain and level(inner) < level_of_place(node):
        return attrs.evolve(bound, start=inner.start, end=inner.end)
    return bound


def _begins_body(node: Node) -> bool:
    """Return whether a node begins a statement or the body of an arrow function: there `{` begins a block."""
    parent = node.parent
    while parent is not None and parent.children[0] is node and parent.kind != "expression_statement":
        node, parent = parent, parent.parent
    if parent is None or parent.kind == "arrow_function":
        return parent is not None and node.field == "body"
    return parent.kind == "expression_statement"


def _begins_with_object(pattern: Pattern, match: Match) -> bool:
    while isinstance(pattern, Branch) and pattern.children:
        if pattern.kind == "object":
            return True
        pattern = pattern.children[0]
    bound = match.variable(pattern.name) if isinstance(pattern, Hole) else None
    return bound is not None and bool(bound.nodes) and _is_object_first(bound.nodes[0])


def _is_object_first(node: Node) -> bool:
    while node.kind != "object" and node.children:
        node = node.children[0]
    return node.kind == "object"
