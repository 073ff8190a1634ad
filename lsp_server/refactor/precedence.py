"""How tightly expressions bind, so that a template gets parentheses where it needs them, and only there."""

import re
from collections.abc import Sequence

from lsp_server.refactor.grammar import is_access, is_call, receiver_of
from lsp_server.refactor.node import Node

LOOSEST = 0
POSTFIX = 16
ATOM = 17
_COMPARISON = 6
_POWER = 13
_UNARY = 14

_BINARY = {
    "or": 3, "||": 3, "??": 3, "and": 4, "&&": 4,
    "in": 6, "not in": 6, "is": 6, "is not": 6, "instanceof": 6,
    "==": 6, "!=": 6, "===": 6, "!==": 6, "<": 6, ">": 6, "<=": 6, ">=": 6,
    "|": 7, "^": 8, "&": 9, "<<": 10, ">>": 10, ">>>": 10, "&^": 12,
    "+": 11, "-": 11, "*": 12, "/": 12, "%": 12, "//": 12, "@": 12, "**": 15,
}  # fmt: skip
_BY_KIND = {
    "lambda": 1,
    "arrow_function": 1,
    "assignment_expression": 1,
    "named_expression": 1,
    "yield": 1,
    "yield_expression": 1,
    "generator_expression": ATOM,
    "conditional_expression": 2,
    "ternary_expression": 2,
    "not_operator": 5,
    "unary_expression": _UNARY,
    "unary_operator": _UNARY,
    "reference_expression": _UNARY,
    "pointer_expression": _UNARY,
    "cast_expression": _UNARY,
    "type_cast_expression": _UNARY - 1,
    "await": 15,
    "await_expression": _UNARY,
    "try_expression": POSTFIX,
    "closure_expression": 1,
    "lambda_expression": 1,
    "range_expression": 1,
    "return_expression": 1,
    "instanceof_expression": 6,
    "as_expression": 6,
    "satisfies_expression": 6,
    "comparison_operator": 6,
    "union_type": 3,
    "intersection_type": 4,
    "function_type": 1,
    "constructor_type": 1,
    "conditional_type": 2,
    "bounded_type": 3,
    "index_type_query": 5,
    "type_query": 5,
    "readonly_type": 5,
    "infer_type": 5,
    "sequence_expression": 0,
    "expression_list": 0,
    "pattern_list": 0,
}
_OPEN = re.compile(
    r"^(argument_list|arguments|value_arguments?|parenthesized_expression|keyword_argument|pair|list|array|set|interpolation"
    r"|template_substitution|jsx_expression|assignment|variable_declarator|short_var_declaration|\w+_statement|expression_list"
    r"|type|type_annotation|lambda|arrow_function)$"
)


def level(node: Node) -> int:
    """Return how tightly an expression binds its operands: LOOSEST to ATOM."""
    if node.kind in _BY_KIND:
        return _BY_KIND[node.kind]
    operators = [child.text or _operator(child) for child in node.children if child.field in ("operator", "operators")]
    if operators == ["**"] and node.kind == "binary_expression":
        return _POWER  # in JavaScript it binds looser than a sign, and has none before it
    if operators and node.kind not in ("augmented_assignment", "update_expression"):
        return _BINARY.get(operators[0], 6)
    if is_call(node) or is_access(node) or node.kind in ("subscript", "subscript_expression", "index_expression"):
        return POSTFIX
    return ATOM


def level_of_place(node: Node) -> int:
    """Return how tightly an expression must bind to be in the place of `node` without parentheses."""
    parent = node.parent
    if parent is None or _OPEN.search(parent.kind):
        return LOOSEST
    if receiver_of(parent) is node or (is_call(parent) and node.field in ("function", "constructor")):
        return POSTFIX
    if parent.kind in ("subscript", "subscript_expression", "index_expression") and node is parent.children[0]:
        return POSTFIX
    if parent.kind == "array_type" and node is parent.children[0]:
        return POSTFIX
    own = level(parent)
    if own >= POSTFIX:
        return LOOSEST
    is_first = node is parent.children[0] and own != _COMPARISON  # Python reads `a in b == c` as two comparisons
    if any(child.text == "**" for child in parent.children):
        return (POSTFIX if own == _POWER else own + 1) if is_first else own if own == _POWER else _UNARY
    return own if is_first or parent.kind in ("not_operator", "await", "unary_expression") else own + 1


def _operator(node: Node) -> str:
    return " ".join(child.text for child in node.children)


def root_level(nodes: Sequence[Node]) -> int:
    """Return how tightly a run of nodes binds: that of a single expression; -1 for statements."""
    if len(nodes) != 1 or nodes[0].kind.endswith(("statement", "declaration", "definition")):
        return -1
    return min(level(nodes[0]), ATOM if nodes[0].kind != "assignment" else POSTFIX)
