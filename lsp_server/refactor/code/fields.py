"""The fields of a type, in the order in which its constructor or its literal takes them.

Python's dataclasses and classes of attrs, and the structs of Go and Rust.
"""

import re
from collections.abc import Iterator

import attrs

from lsp_server.refactor.code.call import Parameter
from lsp_server.refactor.code.grammar import is_name
from lsp_server.refactor.code.member import last_name
from lsp_server.refactor.code.node import Node
from lsp_server.refactor.code.syntax import Syntax

_DATA_CLASS = re.compile(r"^@((dataclasses|attrs?)\.)?(dataclass|define|frozen|mutable|s|dataclasses\.dataclass)(\(|$)")
_FIELD = re.compile(r"^((dataclasses|attrs?)\.)?(field|ib)\(")
_HAS_DEFAULT = re.compile(r"[(,](default|default_factory|factory)=")
_NOT_GIVEN = re.compile(r"[(,]init=False\b")
_NAMED = re.compile(r"[(,]kw_only=True\b")


@attrs.frozen(eq=False)
class Fields:
    """A type: the leaf of its name, the node that lists its fields, and these as parameters."""

    name: Node
    listed: Node
    parameters: tuple[Parameter, ...]


def fields_in(syntax: Syntax) -> Iterator[Fields]:
    """Yield the types of a file whose constructors or literals take their fields."""
    read = {"python": _data_class, "go": _go_struct, "rust": _rust_struct}.get(syntax.language.id)
    for node in syntax.root.walk() if read is not None else ():
        if read is not None and (found := read(node)) is not None:
            yield found


def _data_class(node: Node) -> Fields | None:
    name, body, above = node.child("name"), node.child("body"), node.parent
    if node.kind != "class_definition" or name is None or body is None or above is None:
        return None
    decorators = [one.tokens for one in above.children if one.kind == "decorator"]
    made_by = next((one for one in decorators if _DATA_CLASS.match(one)), None)
    # Fields that a base brings come first, and a constructor of its own takes what it wants.
    if made_by is None or node.child("superclasses") is not None or _defines_constructor(body):
        return None
    found, is_named = list[Parameter](), _NAMED.search(made_by) is not None
    is_of_attrs = "dataclass" not in made_by
    for statement in body.children:
        one = statement.children[0] if statement.kind == "expression_statement" and statement.children else statement
        left, kind, right = one.child("left"), one.child("type"), one.child("right")
        value = right.tokens if right is not None else ""
        is_field = one.kind == "assignment" and left is not None and is_name(left)
        if not is_field or left is None or (kind is None and not _FIELD.match(value)):
            continue
        if kind is not None and "ClassVar" in kind.tokens:
            continue
        if kind is not None and kind.tokens.endswith("KW_ONLY"):
            is_named = True
            continue
        is_described = _FIELD.match(value) is not None
        if is_described and _NOT_GIVEN.search(value):
            continue
        is_optional = _HAS_DEFAULT.search(value) is not None if is_described else right is not None
        own_name = left.text.lstrip("_") if is_of_attrs else left.text
        is_by_name = is_named or (is_described and _NAMED.search(value) is not None)
        found.append(Parameter(own_name, is_optional, is_named=is_by_name))
    return Fields(name, body, tuple(found))


def _defines_constructor(body: Node) -> bool:
    names = (one.child("name") for one in body.walk() if one.kind == "function_definition")
    return any(one is not None and one.text in ("__init__", "__new__") for one in names)


def _go_struct(node: Node) -> Fields | None:
    name, kind = node.child("name"), node.child("type")
    if node.kind != "type_spec" or name is None or kind is None or kind.kind != "struct_type":
        return None
    return _struct(name, next((one for one in kind.children if one.kind == "field_declaration_list"), None))


def _rust_struct(node: Node) -> Fields | None:
    name, body = node.child("name"), node.child("body")
    if node.kind != "struct_item" or name is None or body is None or body.kind != "field_declaration_list":
        return None
    return _struct(name, body)


def _struct(name: Node, listed: Node | None) -> Fields | None:
    if listed is None:
        return None
    found = list[Parameter]()
    for one in listed.parts:
        if one.kind != "field_declaration":
            continue
        names = [child for child in one.children if child.field == "name"]
        embedded = last_name(one.child("type")) if not names else None  # Go names such a field by its type
        found += [Parameter(each.text) for each in (*names, *([embedded] if embedded is not None else []))]
    return Fields(name, listed, tuple(found))
