"""What a name is at a place: an import, a parameter, a local variable or a definition; and what imports bind."""

import builtins
import re
from collections.abc import Iterator
from difflib import SequenceMatcher
from weakref import WeakKeyDictionary

import attrs

from lsp_server.refactor.code.grammar import around, is_call, is_definition, is_import, is_name, is_parameters
from lsp_server.refactor.code.import_parts import ImportPart, parts_of
from lsp_server.refactor.code.imports import Import, ImportEdit
from lsp_server.refactor.code.node import Node
from lsp_server.refactor.code.syntax import Syntax
from lsp_server.refactor.code.traits import traits_of
from lsp_server.refactor.code.type_parameters import TYPE_PARAMETERS, generic_around

_FUNCTION = ("function", "lambda", "method", "arrow", "func_literal", "closure", "constructor")
_BINDING_FIELDS = frozenset({"left", "name", "alias", "pattern", "parameter", "bound_identifier"})
_TARGET_LIST = re.compile(
    r"^(\w+_pattern|pattern_list|expression_list|as_pattern_target|typed_parameter|required_parameter|optional_parameter"
    r"|pointer_declarator|reference_declarator|array_declarator|(multi_)?variable_declaration|variable_name|pattern)$"
)
_BINDS = frozenset({("as_pattern", "as_pattern_target")})
_CLASS_BODIES = frozenset({"class_body", "declaration_list", "enum_body", "template_body", "field_declaration_list"})
_BINDER = re.compile(
    r"assign|declarator|for_|range_clause|as_pattern|parameter|named_expression|short_var|var_spec|const_spec|let_|catch"
    r"|with_item|function|class|method|struct|^property_declaration$|^(if|guard|while)_statement$"
)
_KEEPS_INSTANCE = re.compile(r"^(arrow_function|lambda\w*|anonymous_\w+|closure\w*)$")
_GIVES_INSTANCE = frozenset({"assignment_expression", "pair"})
"""A function of JavaScript that is set as a member, or is one of an object, is called on that object."""
_STATIC = re.compile(
    r"^(field_declaration|static_initializer|property_declaration|public_field_definition|field_definition)$"
)
_HAS_METHODS = re.compile(r"class|^(impl|trait|struct|enum)_item$|^(trait|enum|interface)_declaration$")
_PACKAGE = re.compile(
    r"^(package_(declaration|header|clause)|namespace_definition|(file_scoped_)?namespace_declaration)$"
)
_OF_PACKAGE = {"java": "import {}.{};", "php": "use {}\\{};", "kotlin": "import {}.{}", "scala": "import {}.{}"}
_TABLES: "WeakKeyDictionary[Syntax, ImportTable]" = WeakKeyDictionary()


@attrs.frozen(eq=False)
class ImportTable:
    """The imported names of a file, in their order."""

    parts: tuple[ImportPart, ...]

    @property
    def all(self) -> list[Import]:
        return [part.what for part in self.parts]

    def binding(self, name: str) -> str | None:
        """Return what the import that binds a name names, such as "os.path"; None if no import binds it."""
        for part in self.parts:
            if part.what.bound == name:
                return origin(part.what)
        return None


def origin(what: Import) -> str:
    """Return what an import names, as one text: the same for the same thing in two files."""
    if what.kind == "python" and not what.name:
        return what.source if what.alias else what.source.partition(".")[0]
    return f"{what.source}.{what.name}" if what.name else what.source


def same_origin(one: str, other: str) -> bool:
    """Return whether two origins can be one. Relative ones depend on the folder of the file."""
    if one == other:
        return True
    if one.startswith(".") or other.startswith("."):
        return re.split(r"[./]", one)[-1] == re.split(r"[./]", other)[-1]
    return False


def imports_of(syntax: Syntax) -> ImportTable:
    """Return the imports of a file, also those inside of functions. They are looked for once in each tree."""
    known = _TABLES.get(syntax)
    if known is not None:
        return known
    parts = [
        part
        for node in import_statements(syntax.root)
        for part in parts_of(node, syntax)
        if part.what.source or part.what.name
    ]
    table = _TABLES[syntax] = ImportTable(tuple(parts))
    return table


def import_edit(before: Syntax, after: Syntax) -> ImportEdit:
    """Return the imports that an example added and removed."""
    old, new = imports_of(before).all, imports_of(after).all
    added = tuple(dict.fromkeys(one for one in new if one not in old))
    removed = tuple(dict.fromkeys(one for one in old if one not in new))
    pairs: list[tuple[Import, Import]] = []
    for tag, low, high, new_low, new_high in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "replace" and high - low == new_high - new_low:
            pairs += zip(old[low:high], new[new_low:new_high], strict=True)
    return ImportEdit(added, removed, tuple(pairs))


def package_import(name: str, syntax: Syntax) -> Import | None:
    """Return the import by which other packages know a class of a file's own package; None if it may have none."""
    form, package = _OF_PACKAGE.get(syntax.language.id), package_of(syntax)
    if form is None or not package or not name[:1].isupper():
        return None
    return Import(form.format(package, name), "", name, "text")


def package_of(syntax: Syntax) -> str:
    """Return the package, or the namespace of PHP, that a file says it is of; "" if it says none."""
    package = next((one for one in syntax.root.children if _PACKAGE.search(one.kind)), None)
    return _declared_name(package) if package is not None and syntax.language.id in _OF_PACKAGE else ""


def namespaces_of(node: Node) -> list[str]:
    """Return the names of the packages or namespaces that a declaration is in, the outermost first."""
    around = [*node.ancestors()]
    inside = [above for above in around if _PACKAGE.search(above.kind)]
    top = around[-1].children if around else ()
    heads = [one for one in top if _PACKAGE.search(one.kind) and one.end <= node.start and one.child("body") is None]
    return re.findall(r"\w+", " ".join(map(_declared_name, (*heads[-1:], *reversed(inside)))))


def _declared_name(package: Node) -> str:
    return "".join(leaf.text for one in package.parts[:1] for leaf in one.leaves())


def import_statements(root: Node) -> Iterator[Node]:
    """Yield the imports of a file, also those inside of functions, in their order."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if is_import(node):
            yield node
        else:
            waiting.extend(reversed(node.children))


@attrs.frozen
class Binding:
    """How a name is bound: "(type )parameter", "local", "field", "global", "unknown", or "import" of a `source`."""

    kind: str
    source: str = ""


UNKNOWN = Binding("unknown")
_OF_LANGUAGES = """
    console Math JSON Object Array Promise Number String Boolean Error Map Set Date RegExp Symbol undefined window
    document process require module exports globalThis parseInt parseFloat setTimeout fetch URL append cap close copy
    delete len make new panic print println recover nil true false iota string error int int64 float64 byte rune bool
    any int8 int16 int32 uint uint8 uint16 uint32 uint64 uintptr float32 complex64 complex128 comparable
"""
_ASSIGNS = re.compile(r"^assignment(_statement|_expression)?$")
BROUGHT = frozenset(dir(builtins)) | frozenset(_OF_LANGUAGES.split())
"""Names that languages bring without an import."""


class Scopes:
    """The names that the functions of a file and the file itself bind."""

    def __init__(self, syntax: Syntax, imports: ImportTable) -> None:
        self.syntax = syntax
        self._root = syntax.root
        self._imports = imports
        self._bound: dict[int, dict[str, str]] = {}
        self._has_bare_fields = traits_of(syntax.language.id).bare_fields

    @property
    def has_imports(self) -> bool:
        return bool(self._imports.all)

    def binding(self, name: str, node: Node) -> Binding:
        """Return what a name is at a node."""
        for above in around(node):
            kind = self._names(above).get(name) if is_function(above) else None
            if kind is not None:
                return Binding(kind)
            if above.kind in _CLASS_BODIES and self._has_bare_fields and name in self._fields(above):
                return Binding("field")
        if generic_around(name, node) is not None:
            return Binding("type parameter")
        if (imported := self._imports.binding(name)) is not None:
            return Binding("import", imported)
        return Binding("global") if name in self._names(self._root) else UNKNOWN

    def owner(self, name: str, node: Node) -> Node | None:
        """Return the function that binds a name at a node; None if none does."""
        inside = list(around(node))
        for above in node.ancestors():
            is_inside = above in inside or binds(node, above) == "parameter"
            if is_inside and is_function(above) and name in self._names(above):
                return above
        return None

    def is_imported(self, name: str) -> bool:
        return self._imports.binding(name) is not None

    def imports_everything(self) -> bool:
        """Return whether an import brings names that it does not list."""
        return any((one.name == "*" and one.kind != "namespace") or one.alias == "." for one in self._imports.all)

    def _fields(self, body: Node) -> set[str]:
        """Return the names of the fields that a class body declares."""
        declared = [child for child in body.children if "field" in child.kind or "property" in child.kind]
        leaves = [leaf for one in declared for leaf in one.leaves() if is_name(leaf)]
        return {leaf.text for leaf in leaves if binds(leaf, body)}

    def _names(self, scope: Node) -> dict[str, str]:
        known = self._bound.get(id(scope))
        if known is None:
            known = self._bound[id(scope)] = {}
            for leaf in _own_leaves(scope):
                if kind := binds(leaf, scope):
                    known.setdefault(leaf.text, kind)
        return known


def is_function(node: Node) -> bool:
    """Return whether a node is a function with parameters or a body."""
    if is_parameters(node) or node.kind.endswith(("declarator", "lambda_function_type")):
        return False  # C and Swift have a function's name or parameters in a node of their own
    return node.named and bool(node.children) and any(word in node.kind for word in _FUNCTION) and is_scope(node)


def is_scope(node: Node) -> bool:
    """Return whether a node has parameters or a body of its own."""
    return any(
        is_parameters(child)
        or child.field in ("parameters", "parameter", "body", "declarator")
        or child.kind == "lambda_function_type"
        for child in node.children
    )


def has_instance(name: str, node: Node, language: str) -> bool:
    """Return whether code may name the object that a method is of: `self`, which is a parameter, or `this`.

    `Self` of Rust and `self` of PHP name its class.
    """
    if name in ("Self", "parent") or (name, language) == ("self", "php"):
        return any(_HAS_METHODS.search(above.kind) for above in node.ancestors())
    is_parameter = language in ("python", "rust")
    for above in node.ancestors():
        if _STATIC.search(above.kind) and any(leaf.text == "static" for leaf in _header(above)):
            return False
        if not is_function(above) or any(_is_inside(node, child) for child in above.children if is_parameters(child)):
            continue
        if is_parameter:
            lists = [child for child in above.children if is_parameters(child)]
            if any(leaf.text == name for child in lists for leaf in child.leaves()):
                return True
            if language == "rust" and above.kind == "function_item":
                return False
            continue
        if any(leaf.text == "static" for leaf in _header(above)):
            return False
        if not _KEEPS_INSTANCE.search(above.kind):
            holder = above.parent.kind if above.parent is not None else ""
            return "method" in above.kind or "constructor" in above.kind or holder in _GIVES_INSTANCE
    return not is_parameter and any(_HAS_METHODS.search(above.kind) for above in node.ancestors())


def _header(node: Node) -> Iterator[Node]:
    """Yield the leaves of a declaration before its value or its body."""
    for child in node.children:
        if child.field in ("body", "value", "declarator") or child.kind in ("block", "accessor_list", "=>", "="):
            return
        if child.field not in ("return_type", "parameters"):
            yield from child.leaves()


def _is_inside(node: Node, other: Node) -> bool:
    return other.start <= node.start and node.end <= other.end


def _own_leaves(scope: Node) -> Iterator[Node]:
    """Yield the names in a scope. A function inside of it counts with its own name alone."""
    waiting = [scope]
    while waiting:
        node = waiting.pop()
        if not node.children:
            if is_name(node):
                yield node
        elif node is not scope and (is_function(node) or ("class" in node.kind and is_definition(node))):
            name = node.child("name")
            if name is not None and not name.children:
                yield name
        elif node is scope or not (is_import(node) or TYPE_PARAMETERS.search(node.kind)):
            waiting.extend(node.children)


def declares(leaf: Node, scope: Node, language: str) -> bool:
    """Return whether a leaf is where a name is bound, and no mere assignment to a declared one."""
    if not binds(leaf, scope):
        return False
    holder = next((above for above in leaf.ancestors() if _BINDER.search(above.kind)), None)
    return not (traits_of(language).declares and holder is not None and _ASSIGNS.search(holder.kind))


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
    if is_parameters(parent) or parent.field == "parameters" or node.field in ("parameter", "parameters"):
        return "parameter"
    if "parameter" in parent.kind and node.field not in ("type", "value") and parent is not scope:
        return "parameter"
    if parent is scope:
        return ""
    is_target = node.field in _BINDING_FIELDS and _BINDER.search(parent.kind) and parent.kind != "jsx_attribute"
    return "local" if is_target or (parent.kind, node.kind) in _BINDS else ""


def is_relative_import(statement: Node, language: str) -> bool:
    """Return whether an import means another module in another folder."""
    if language == "python":
        return any(node.kind == "relative_import" for node in statement.walk())
    strings = (leaf.text for leaf in statement.leaves() if "string" in leaf.kind or "fragment" in leaf.kind)
    return traits_of(language).is_script and any(text.startswith(".") for text in strings)


def is_parameter(leaf: Node) -> bool:
    """Return whether a name is a parameter where it stands."""
    node: Node = leaf
    for above in leaf.ancestors():
        if node.field in ("type", "value"):
            return False
        if "parameter" in above.kind or node.field in ("parameter", "parameters"):
            return True
        if is_definition(above) or is_call(above):
            return False
        node = above
    return False
