"""What a name is at a place: an import, a parameter, a local variable, or a definition of the file."""

import builtins
import re
from collections.abc import Iterator

import attrs

from lsp_server.refactor.grammar import is_definition, is_import, is_name, is_parameters
from lsp_server.refactor.imports import ImportTable
from lsp_server.refactor.node import Node
from lsp_server.refactor.syntax import Syntax

_FUNCTION = ("function", "lambda", "method", "arrow", "func_literal", "closure", "constructor")
_BINDING_FIELDS = frozenset({"left", "name", "alias", "pattern", "parameter"})
_TARGET_LIST = re.compile(
    r"^(\w+_pattern|pattern_list|expression_list|as_pattern_target|typed_parameter|required_parameter|optional_parameter)$"
)
_CLASS_BODIES = frozenset({"class_body", "declaration_list", "enum_body", "template_body", "field_declaration_list"})
_BINDER = re.compile(
    r"assign|declarator|for_|range_clause|as_pattern|parameter|named_expression|short_var|var_spec|const_spec|let_|catch"
    r"|with_item|function|class|method|struct"
)


@attrs.frozen
class Binding:
    """How a name is bound: "import", "parameter", "local", "field", "global" or "unknown"; `source` is an import's."""

    kind: str
    source: str = ""


UNKNOWN = Binding("unknown")
_OF_LANGUAGES = """
    console Math JSON Object Array Promise Number String Boolean Error Map Set Date RegExp Symbol undefined window
    document process require module exports globalThis parseInt parseFloat setTimeout fetch URL append cap close copy
    delete len make new panic print println recover nil true false iota string error int int64 float64 byte rune bool
    any
"""
_DECLARED = frozenset(
    {"go", "rust", "java", "csharp", "c", "cpp", "javascript", "typescript", "javascriptreact", "typescriptreact"}
    | {"kotlin", "swift", "scala", "dart", "zig"}
)
_ASSIGNS = re.compile(r"^assignment(_statement|_expression)?$")
BROUGHT = frozenset(dir(builtins)) | frozenset(_OF_LANGUAGES.split())
"""Names that languages bring without an import."""


class Scopes:
    """The names that the functions of a file and the file itself bind."""

    def __init__(self, syntax: Syntax, imports: ImportTable) -> None:
        self._root = syntax.root
        self._imports = imports
        self._bound: dict[int, dict[str, str]] = {}
        self._has_bare_fields = syntax.language.id in ("java", "csharp", "kotlin", "scala", "cpp")

    @property
    def has_imports(self) -> bool:
        return bool(self._imports.all)

    def binding(self, name: str, node: Node) -> Binding:
        """Return what a name is at a node."""
        inner = node
        for above in node.ancestors():
            # Annotations, default values and decorators are outside of the function that they belong to.
            is_inside = inner.field == "body" or all(child.field != "body" for child in above.children)
            inner = above
            if is_inside and _is_function(above):
                kind = self._names(above).get(name)
                if kind is not None:
                    return Binding(kind)
            if above.kind in _CLASS_BODIES and self._has_bare_fields and name in self._fields(above):
                return Binding("field")
        imported = self._imports.binding(name)
        if imported is not None:
            return Binding("import", imported)
        kind = self._names(self._root).get(name)
        return Binding("global") if kind is not None else UNKNOWN

    def owner(self, name: str, node: Node) -> Node | None:
        """Return the function that binds a name at a node; None if none does."""
        inner = node
        for above in node.ancestors():
            is_inside = inner.field == "body" or all(child.field != "body" for child in above.children)
            inner = above
            if (is_inside or binds(node, above) == "parameter") and _is_function(above) and name in self._names(above):
                return above
        return None

    def is_imported(self, name: str) -> bool:
        return self._imports.binding(name) is not None

    def imports_everything(self) -> bool:
        """Return whether an import brings names that it does not list."""
        return any(one.name == "*" for one in self._imports.all)

    def _fields(self, body: Node) -> set[str]:
        """Return the names of the fields that a class body declares."""
        declared = [child for child in body.children if "field" in child.kind or "property" in child.kind]
        leaves = [leaf for one in declared for leaf in one.leaves() if is_name(leaf)]
        return {leaf.text for leaf in leaves if binds(leaf, body)}

    def _names(self, scope: Node) -> dict[str, str]:
        known = self._bound.get(id(scope))
        if known is None:
            known = {}
            for leaf in _own_leaves(scope):
                kind = binds(leaf, scope)
                if kind:
                    known.setdefault(leaf.text, kind)
            self._bound[id(scope)] = known
        return known


def _is_function(node: Node) -> bool:
    return node.named and bool(node.children) and any(word in node.kind for word in _FUNCTION) and is_scope(node)


def is_scope(node: Node) -> bool:
    """Return whether a node has parameters or a body of its own."""
    return any(
        is_parameters(child) or child.field in ("parameters", "parameter", "body", "declarator")
        for child in node.children
    )


def _own_leaves(scope: Node) -> Iterator[Node]:
    """Yield the names in a scope. Of a function inside of it only its own name counts."""
    waiting = [scope]
    while waiting:
        node = waiting.pop()
        if not node.children:
            if is_name(node):
                yield node
        elif node is not scope and (_is_function(node) or ("class" in node.kind and is_definition(node))):
            name = next((child for child in node.children if child.field == "name"), None)
            if name is not None and not name.children:
                yield name
        elif not is_import(node) or node is scope:
            waiting.extend(node.children)


def needs_declaration(language: str) -> bool:
    """Return whether a name must be declared before it is assigned to."""
    return language in _DECLARED


def declares(leaf: Node, scope: Node, language: str) -> bool:
    """Return whether a leaf is where a name is bound, and no mere assignment to a declared one."""
    if not binds(leaf, scope):
        return False
    holder = next((above for above in leaf.ancestors() if _BINDER.search(above.kind)), None)
    return not (needs_declaration(language) and holder is not None and _ASSIGNS.search(holder.kind))


def binds(leaf: Node, scope: Node) -> str:
    """Return how a name is bound where it stands; "" if it is only used."""
    node, parent = leaf, leaf.parent
    while (
        parent is not None
        and parent is not scope
        and _TARGET_LIST.search(parent.kind)
        and node.field not in ("type", "value")
    ):
        node, parent = parent, parent.parent
    if parent is None:
        return ""
    if is_parameters(parent) or parent.field == "parameters":
        return "parameter"
    if "parameter" in parent.kind and node.field not in ("type", "value") and parent is not scope:
        return "parameter"
    if parent is scope:
        return "parameter" if node.field in ("parameter", "parameters") else ""
    if node.field in _BINDING_FIELDS and _BINDER.search(parent.kind) and parent.kind != "jsx_attribute":
        return "local"
    return "local" if parent.kind == "as_pattern" and node.kind == "as_pattern_target" else ""
