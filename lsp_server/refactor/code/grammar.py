"""What node kinds mean, by their names: the grammars of all languages name calls, lists and bodies alike."""

import re
from collections.abc import Iterator, Sequence
from typing import Protocol

from lsp_server.refactor.code.node import Node

_LIST = re.compile(
    r"^(argument_list|arguments|value_arguments|type_arguments|type_parameters?|type_argument_list|parameters"
    r"|formal_parameters|lambda_parameters|parameter_list|value_parameters|function_value_parameters|method_parameters|list|array"
    r"|array_expression|tuple|set|dictionary|object|object_pattern|literal_value|superclasses|named_imports"
    r"|expression_list|initializer_list|table_constructor|jsx_opening_element|hash|token_tree)$"
)
_ARGUMENTS = re.compile(r"^(argument_list|arguments|value_arguments|method_arguments)$")
_PARAMETERS = re.compile(r"parameters?$|^parameter_list$|^formal_parameters$|^function_value_parameters$")
_CONTAINER = re.compile(
    r"^(module|program|source_file|translation_unit|compilation_unit|chunk|source|stylesheet|document|block"
    r"|statement_block|statement_list|statements|compound_statement|class_body|interface_body|enum_body|declaration_list"
    r"|field_declaration_list|body_statement|then|do_block|switch_body|constructor_body|function_body|template_body"
    r"|object_type|do_group|do|begin|ensure|else|block_body)$"
)
_CALL = re.compile(
    r"^(call|call_expression|new_expression|method_invocation|object_creation_expression|invocation_expression"
    r"|function_call_expression|member_call_expression|scoped_call_expression|function_call|command_call"
    r"|macro_invocation)$"
)
_ACCESS = re.compile(
    r"^(attribute|member_expression|selector_expression|field_expression|navigation_expression|field_access"
    r"|member_access_expression|dot_index_expression|scoped_identifier|qualified_type|method_index_expression"
    r"|scoped_type_identifier|nested_type_identifier|qualified_name|qualified_identifier|user_type|stable_type_identifier)$"
)
_NAMED_ELEMENT = re.compile(
    r"^(keyword_argument|jsx_attribute|pair|keyed_element|named_argument|value_argument_label|field_initializer"
    r"|property_assignment|shorthand_property_identifier|dictionary_splat|spread_element|jsx_expression)$"
)
_STATEMENT = re.compile(
    r"(_statement|_declaration|_definition|_item|^decorated_definition|^statement|^declaration|^macro_definition)$"
)
_DEFINITION = re.compile(
    r"^(function_definition|class_definition|decorated_definition|function_declaration|class_declaration"
    r"|method_declaration|method_definition|function_item|impl_item|interface_declaration|arrow_function|method|class"
    r"|type_declaration|struct_item|func_literal|function_expression|export_statement|lambda_literal|constructor_declaration)$"
)
_IMPORT = re.compile(
    r"^(import_statement|import_from_statement|future_import_statement|import_declaration|use_declaration"
    r"|using_directive|using_declaration|preproc_include|import_header|import|namespace_use_declaration|import_list)$"
)
_NOT_AN_EXPRESSION = re.compile(
    r"(statement|declaration|definition|_clause|clause$|_specifier|arguments|argument_list|parameters?$|_list$"
    r"|^block$|_block$|_body$|^keyword_argument$|^pair$|^jsx_attribute$|^keyed_element$|declarator$|_item$|_content$"
    r"|_fragment$|^string_start$|^string_end$|^decorator$|^operator|_operator$(?<!binary_operator)(?<!not_operator)"
    r"(?<!unary_operator)(?<!boolean_operator)(?<!comparison_operator)|escape_sequence|^type_annotation$|_annotation$"
    r"|^jsx_closing_element$|^optional_chain$|^literal_element$|^as_pattern|^with_item$"
    r"|^program$|^module$|^source_file$|^auto$|^modifiers$|^interpolation$|^template_substitution$|^type_parameter$)"
)
_NOT_A_UNIT = re.compile(
    r"(arguments?$|argument_list$|^keyword_argument$|^pair$|^jsx_attribute$|^jsx_expression$|^interpolation$|parameters$"
    r"|parameter_list$|^parenthesized_expression$|^expression_list$|^dotted_name$|_clause$|^with_item$|^as_pattern"
    r"|variable_declarator$|^string|^regex|_string$|string_literal$|^template_|_content$|_fragment$|keyed_element|literal_element"
    r"|^literal_value$|^list$|^tuple$|^dictionary$|^object$|^array$|_list$|^type_parameter$|_spec$|^optional_chain$"
    r"|^type_annotation$|^spread_element$|_splat$|^lambda_parameters$|^variable_name$|^value_argument|^jsx_closing_element$|^modifiers$|^navigation_suffix$|^namespace_name$)"
)
_UNIT_CLAUSE = re.compile(
    r"^(except_clause|case_clause|catch_clause|for_in_clause|expression_case|communication_case|base_clause"
    r"|(extends|implements|class_interface|base_class)_clause|base_list)$"
)
_BINDING = re.compile(
    r"assign|declarator|short_var|(var|const)_spec|^let_|property_declaration|val_definition|var_definition|^for_"
    r"|range_clause|^as_pattern$"
)
GOES_ON = ("(", "[", "`", "+", "-", "/", "*", ".")
"""A line that begins so goes on with the statement above it, if that has no ";"."""
SELF = frozenset({"self", "cls", "this"})
BINDERS = frozenset({"=", ":=", "in", "of", "as"})
"""Tokens between what a statement or a loop binds and its value. After "as" is what is bound."""
_SEVERAL = re.compile(
    r"(_pattern|pattern_list|expression_list|variable_list|assignment_list|list_literal|^pattern|^tuple|^list"
    r"|^tuple_expression|multi_variable_declaration|structured_binding_declarator|as_pattern_target)$"
)
_TYPE_NAME = re.compile(
    r"(type_identifier|^stable_identifier|^user_type|^namespace_name|^navigation_suffix|^template_(type|function|method)|^generic_name)$"
)
_TYPE_LEAF = re.compile(r"^(type_identifier|predefined_type|primitive_type|integral_type)$")
_KEYWORD_LITERAL = re.compile(r"^(none|true|false|nil|null|undefined|none_literal|null_literal|boolean_literal|iota)$")
_LITERAL = re.compile(r"(string|integer|float|number|int|char|rune|regex|literal)")
_NAME_FIELDS = frozenset({"attribute", "property", "field", "key", "label", "suffix"})
_STRING_CONTENT = re.compile(r"(string_content|string_fragment|literal_content|^string_fragment|line_str_text)$")
_OPERATOR = re.compile(r"[=!<>+\-*/%&|?^~]+")
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
_RIGHT_FIRST = frozenset({"not_operator", "await", "unary_expression", "assignment_expression"})
_NO_OPERATOR = re.compile(r"^(augmented_assignment(_expression)?|update_expression)$")
_OPEN = re.compile(
    r"^(argument_list|arguments|value_arguments?|parenthesized_expression|keyword_argument|pair|list|array|set|interpolation"
    r"|template_substitution|jsx_expression|assignment|variable_declarator|short_var_declaration|\w+_statement|expression_list"
    r"|type|type_annotation|lambda|arrow_function)$"
)


class _Kinded(Protocol):
    """A node of a tree or of a pattern."""

    @property
    def kind(self) -> str: ...


def is_operator(text: str) -> bool:
    """Return whether a token is an operator of signs."""
    return _OPERATOR.fullmatch(text) is not None


def is_list(node: Node) -> bool:
    """Return whether the node has elements between separators: arguments, parameters, attributes of an element."""
    return _LIST.search(node.kind) is not None


def is_arguments(node: _Kinded) -> bool:
    return _ARGUMENTS.search(node.kind) is not None


def is_parameters(node: Node) -> bool:
    return _PARAMETERS.search(node.kind) is not None


def is_container(node: Node) -> bool:
    """Return whether the node's children are statements or members."""
    return _CONTAINER.search(node.kind) is not None


def is_call(node: _Kinded) -> bool:
    return _CALL.search(node.kind) is not None


def is_access(node: _Kinded) -> bool:
    """Return whether the node names a member of a receiver: `a.b`."""
    return _ACCESS.search(node.kind) is not None


def is_named_element(node: _Kinded) -> bool:
    """Return whether the node is an element whose place in its list does not matter, such as a keyword argument."""
    return _NAMED_ELEMENT.search(node.kind) is not None


def argument_name(node: Node) -> str:
    """Return the name of an argument that is given by name, "**" for a dictionary of them, "" for any other."""
    if "splat" in node.kind:
        return "**" if next(node.leaves()).text == "**" else ""
    if node.kind in ("argument", "value_argument"):
        name = node.child("name")
        has_sign = len(node.children) > 2 and node.children[1].text in ("=", ":")
        return next((name or node).leaves()).text if name is not None or has_sign else ""
    is_named = node.kind in ("keyword_argument", "named_argument", "element_value_pair", "pair") and node.children
    return next(node.leaves()).text if is_named else ""


def is_binding_kind(kind: str) -> bool:
    """Return whether nodes of this kind may bind names to a value, with one of BINDERS between them."""
    return _BINDING.search(kind) is not None


def binder_at(node: Node) -> int:
    """Return which child of a node is between what it binds and the value; 0 if it binds nothing."""
    if not is_binding_kind(node.kind):
        return 0
    return next((at for at, one in enumerate(node.children) if not one.named and one.text in BINDERS), 0)


def is_several(node: Node) -> bool:
    """Return whether a node may be several names that a value is taken apart into."""
    return _SEVERAL.search(node.kind) is not None


def is_statement(node: Node) -> bool:
    return _STATEMENT.search(node.kind) is not None


def is_definition(node: Node) -> bool:
    """Return whether the node defines a function or a class."""
    return _DEFINITION.search(node.kind) is not None


def is_import(node: Node) -> bool:
    return node.named and _IMPORT.search(node.kind) is not None


def is_keyword_literal(node: Node) -> bool:
    """Return whether the node is a literal with a name: None, true, nil."""
    return not node.children and (
        _KEYWORD_LITERAL.search(node.kind) is not None or node.text in ("None", "True", "False", "undefined", "nil")
    )


def is_literal(node: Node) -> bool:
    return not is_name(node) and (is_keyword_literal(node) or _LITERAL.search(node.kind) is not None)


def is_name(node: Node) -> bool:
    """Return whether the node is a leaf that is a name of any sort."""
    return not node.children and node.named and node.kind.endswith(("identifier", "name", "constant", "word"))


def is_string_content(node: Node) -> bool:
    return not node.children and _STRING_CONTENT.search(node.kind) is not None


def is_expression(node: Node) -> bool:
    """Return whether the node is an expression or a type."""
    return node.named and is_expression_kind(node.kind) and node.field != "open_tag"


def is_fixed_name(node: Node) -> bool:
    """Return whether the node is what a member, a keyword argument or a definition is called."""
    parent = node.parent
    if parent is None or not is_name(node):
        return False
    if node.field in _NAME_FIELDS and (is_access(parent) or is_named_element(parent)):
        return True
    if node.kind in ("property_identifier", "field_identifier"):
        return True
    if node.field == "name":
        return is_call(parent) or is_named_element(parent) or is_list(parent) or is_definition(parent)
    return False


def is_part_of_name(node: Node) -> bool:
    """Return whether the node is a part of what only modules and types have: `a::b`, `a\\b`, `name<T>`, `a.Type`."""
    parent = node.parent
    if parent is None:
        return False
    is_scoped = any(child.text in ("::", "\\") and not child.named for child in parent.children)
    return is_scoped or (_TYPE_NAME.search(parent.kind) is not None and not node.kind.endswith("arguments"))


def is_callee(node: Node) -> bool:
    """Return whether the node is what a call calls."""
    parent = node.parent
    if parent is None or not is_call(parent):
        return False
    if node.field in ("object", "receiver"):
        return False
    return node.field in ("function", "constructor", "type", "name", "method", "macro") or (
        node is next(iter(parent.parts), None) and not is_arguments(node)
    )


def callee_of(call: Node) -> Node | None:
    """Return what a call calls; None for other nodes."""
    return next((child for child in call.children if is_callee(child)), None)


def arguments_of(call: Node) -> Node | None:
    """Return the list of a call's arguments; None if there is none."""
    return next((child for child in call.children if is_arguments(child)), None)


def around(node: Node) -> Iterator[Node]:
    """Yield the nodes that a node is inside of, the nearest first.

    Annotations, default values and decorators are outside of the function that they belong to.
    """
    inner = node
    for above in node.ancestors():
        if inner.field == "body" or above.child("body") is None:
            yield above
        inner = above


def receiver_of(node: Node) -> Node | None:
    """Return the receiver of a member access or of a method call; None for other nodes."""
    if is_access(node) and node.children and len(node.children) > 1:
        return node.children[0]
    if is_call(node):
        return next((child for child in node.children if child.field in ("object", "receiver")), None)
    return None


def is_unit(node: Node) -> bool:
    """Return whether an edit can be of this node alone: a name or a list of arguments says too little."""
    if not node.children:
        is_whole = node.parent is None or not is_access(node.parent) or len(node.parent.children) == 1
        return (_TYPE_LEAF.search(node.kind) is not None and is_whole) or (is_statement(node) and node.named)
    if not node.named or (is_callee(node) and is_access(node)):
        return False
    if _UNIT_CLAUSE.search(node.kind) or node.kind == "jsx_opening_element":
        return True
    if is_container(node) and node.parent is not None:
        return False
    return _NOT_A_UNIT.search(node.kind) is None


def is_expression_kind(kind: str) -> bool:
    """Return whether nodes of this kind are expressions or types."""
    return kind == "type" or _NOT_AN_EXPRESSION.search(kind) is None


def is_list_kind(kind: str) -> bool:
    """Return whether nodes of this kind are lists or bodies."""
    return _LIST.search(kind) is not None or _CONTAINER.search(kind) is not None


def level(node: Node) -> int:
    """Return how tightly an expression binds its operands: LOOSEST to ATOM."""
    if node.kind in _BY_KIND:
        return _BY_KIND[node.kind]
    if is_call(node) or is_access(node) or node.kind in ("subscript", "subscript_expression", "index_expression"):
        return POSTFIX
    operators = [child.text or _operator(child) for child in node.children if child.field in ("operator", "operators")]
    if operators == ["**"] and node.kind == "binary_expression":
        return _POWER  # in JavaScript it binds looser than a sign, and has none before it
    if operators and not _NO_OPERATOR.search(node.kind):
        return _BINARY.get(operators[0], 6)
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
    return own if is_first or parent.kind in _RIGHT_FIRST else own + 1


def _operator(node: Node) -> str:
    return " ".join(child.text for child in node.children)


def root_level(nodes: Sequence[Node]) -> int:
    """Return how tightly a run of nodes binds: that of a single expression; -1 for statements."""
    if len(nodes) != 1 or nodes[0].kind.endswith(("statement", "declaration", "definition")):
        return -1
    return min(level(nodes[0]), ATOM if nodes[0].kind != "assignment" else POSTFIX)
