"""What a file declares under a name: locals, members, globals, imports; and which of its names mean which of them."""

import re
from collections import defaultdict
from collections.abc import Iterator
from typing import Literal
from weakref import WeakKeyDictionary

import attrs

from lsp_server.refactor.code.bindings import imports_of, is_function, origin
from lsp_server.refactor.code.grammar import (
    SELF,
    is_access,
    is_call,
    is_import,
    is_name,
    is_parameters,
)
from lsp_server.refactor.code.grammar import is_string_content as is_content
from lsp_server.refactor.code.member import constructed, is_member, is_own_variable, is_qualified, last_name
from lsp_server.refactor.code.node import Node
from lsp_server.refactor.code.preprocessor import is_macro, names_in
from lsp_server.refactor.code.syntax import Syntax
from lsp_server.refactor.code.traits import traits_of

DeclarationSort = Literal["local", "member", "global", "import"]
_CLASS = re.compile(
    r"^(abstract_)?(class|struct|interface|trait|enum|union|record|protocol|impl|annotation_type|object|extension|type_alias)"
    r"_(declaration|definition|item|specifier)$|^type_spec$|^class$|^module$"
)
_DECLARATOR = re.compile(
    r"(?<!variable_)declarator$|_pattern$|^(pattern_list|expression_list|variable_list|variable_name|property_element|typed_parameter"
    r"|as_pattern_target|tuple|list|qualified_identifier|identifier_list|(multi_)?variable_declaration|default_parameter"
    r"|pattern)$"
)
_NOT_A_NAME = frozenset(
    {"type", "value", "parameters", "size", "right", "body", "arguments", "key", "scope", "default", "external_name"}
)
_NAME_FIELDS = frozenset({"name", "left", "alias", "pattern", "declarator", "bound_identifier"})
_HOLDER = re.compile(
    r"assign|declarat|definition|^for_|foreach|range_clause|as_pattern|named_expression|short_var|(var|const|type)_spec"
    r"|^let_|catch|with_item|signature|_item$|^(singleton_)?method$|^class$|^module$|specifier$|enumerator$|enum_constant|enum_variant"
    r"|match_arm|^for_range_loop$|enum_(entry|case)|const_element|^type_alias$|^(if|guard|while)_statement$"
)
ASSIGNS = re.compile(r"^(augmented_|compound_)?assignment")
_BLOCK = re.compile(
    r"block|compound_statement|^statement_list$|^statements$|_body$|^(for|while|if|switch|match|try|with|using|foreach"
    r"|enhanced_for|catch|do|select|case|communication|expression_case)(_|$)|closure|lambda|arrow_function"
)
_BODIES = frozenset({"block", "statement_block", "compound_statement"})
_COMPREHENSION = re.compile(r"comprehension$|^generator_expression$")
_OF_PARAMETERS = re.compile(
    r"^(field_)?declaration$|signature|lambda(?!_function)|closure|catch|arrow|(?<!lambda_)function_type|^block$|do_block"
)
_AFTER = re.compile(r"^(let_declaration|let_condition|short_var_declaration)$")
"""What they declare is known only behind them."""
_FUNCTIONS = re.compile(r"function|method|constructor")


@attrs.frozen(eq=False)
class Declaration:
    """Where a name is declared. A local or global is known in `scope` from byte `start` on; a member has an `owner`.

    `holder` is the node that declares it, `bases` the types that the owner names in its header. An import has its
    origin as the `owner`.
    """

    leaf: Node
    sort: DeclarationSort
    scope: Node
    start: int
    holder: Node
    owner: str = ""
    is_function: bool = False
    is_parameter: bool = False
    bases: frozenset[str] = frozenset()


class Names:
    """The names of a file, and its declarations."""

    def __init__(self, syntax: Syntax) -> None:
        self.syntax = syntax
        self.language = syntax.language.id
        self.traits = traits_of(self.language)
        self._leaves: dict[str, list[Node]] = defaultdict(list)
        for leaf in syntax.root.leaves():
            if leaf.parent is not None and leaf.parent.kind == "preproc_params":
                continue
            if is_name(leaf) or leaf.kind.startswith("shorthand_") or is_content(leaf) or is_own_variable(leaf):
                self._leaves[leaf.text].append(leaf)
            elif leaf.kind == "preproc_arg":
                for name in names_in(leaf, syntax.data):
                    self._leaves[name.text].append(name)
        self._declared: dict[str, dict[int, Declaration]] = {}

    def leaves(self, name: str) -> list[Node]:
        """Return the leaves with a name, also those of strings with no other text."""
        return self._leaves.get(name, [])

    def declared(self, name: str) -> dict[int, Declaration]:
        """Return the declarations of a name, by the byte where each begins. Equal ones are the same thing."""
        known = self._declared.get(name)
        if known is not None:
            return known
        found: dict[int, Declaration] = {}
        first: dict[tuple[object, ...], Declaration] = {}
        for leaf in self.leaves(name):
            one = self._declaration(leaf)
            if one is not None:
                at = one.owner if one.sort == "member" and one.owner else id(one.scope)
                is_new = self.language == "rust" and one.sort == "local"  # `let x = x;` is another one
                key = (one.sort, at, one.start if is_new else 0)
                found[leaf.start] = first.setdefault(key, one)
        self._declared[name] = found
        return found

    def resolved(self, leaf: Node) -> Declaration | None:
        """Return what a name alone means: a member only where its language lets it stand alone."""
        declared = self.declared(leaf.text)
        if leaf.start in declared:
            return declared[leaf.start]
        if is_member(leaf):
            return None
        around = [leaf, *leaf.ancestors()]
        # A call without a receiver calls no variable in Java, and a variable of PHP has its own sort of name.
        is_called = inner_parent(leaf).kind == "method_invocation" and leaf.field == "name"
        is_variable = inner_parent(leaf).kind == "variable_name"
        there = [
            one
            for one in declared.values()
            if one.start <= leaf.start
            and any(one.scope is node for node in around)
            and (one.is_function or one.sort == "import" or not is_called)
            and (inner_parent(one.leaf).kind == "variable_name") == is_variable
        ]
        return min(
            (one for one in there if one.sort != "member" or self._is_bare(one, around)), key=_rank, default=None
        )

    def _is_bare(self, one: Declaration, around: list[Node]) -> bool:
        inside = around[: next((at for at, above in enumerate(around) if above is one.scope), 0)]
        return self.traits.bare_fields or not any(map(is_function, inside))

    def _declaration(self, leaf: Node) -> Declaration | None:
        if is_content(leaf):
            return None
        if any(map(is_import, leaf.ancestors())):
            return self._imported(leaf)
        if is_macro(leaf):
            return Declaration(leaf, "global", self.syntax.root, 0, inner_parent(leaf))
        if is_own_variable(leaf):
            owner = class_around(leaf) or self.syntax.root
            name, bases = class_name(owner), bases_of(owner)
            return Declaration(leaf, "member", owner, 0, inner_parent(leaf), name, bases=bases)
        if is_member(leaf) and leaf.parent is not None and is_access(leaf.parent) and not is_qualified(leaf):
            return self._attribute(leaf)
        node, qualifier, is_called = _climbed(leaf)
        holder = node.parent
        if holder is None or is_call(holder) or "type_parameter" in holder.kind:
            return None
        if holder.kind == "match_arm" and leaf.text[:1].isupper():
            return None  # a constant that the value is compared with
        is_type = leaf.kind == "type_identifier"
        if not is_type and node.field not in _NOT_A_NAME - {"parameters"} and _is_parameter(node, holder):
            # The list of all parameters has the types of the others too.
            return self._parameter(leaf, node if holder.children[0].text == "(" else holder)
        if node.field not in _NAME_FIELDS or not _HOLDER.search(holder.kind):
            return None
        is_bare_loop = holder.kind == "for_in_statement" and holder.child("kind") is None
        if self.traits.declares and (ASSIGNS.search(holder.kind) or is_bare_loop):
            return None
        if "specifier" in holder.kind and holder.child("body") is None:
            return None
        return self._named(leaf, holder, qualifier, is_called or _FUNCTIONS.search(holder.kind) is not None)

    def _imported(self, leaf: Node) -> Declaration | None:
        """Return the import that binds a name, if that name is written there: it is the last one like it."""
        for part in imports_of(self.syntax).parts:
            if part.what.bound != leaf.text or not part.node.start <= leaf.start < part.node.end:
                continue
            last = [one for one in self.leaves(leaf.text) if one.start < part.node.end][-1]
            if last is leaf and (part.what.name or part.what.alias):
                scope = self._scope(inner_parent(part.statement))
                return Declaration(leaf, "import", scope, scope.start, part.statement, origin(part.what))
        return None

    def _attribute(self, leaf: Node) -> Declaration | None:
        """Return the declaration of `self.x` where it is assigned to."""
        access = leaf.parent
        assert access is not None
        target = access.parent
        is_target = access.field == "left" and target is not None and target.kind.startswith("assignment")
        if not is_target or target is None or access.children[0].text not in SELF or self.traits.bare_fields:
            return None
        owner = class_around(leaf)
        if owner is None:
            return None
        return Declaration(leaf, "member", owner, 0, target, class_name(owner), bases=bases_of(owner))

    def _parameter(self, leaf: Node, holder: Node) -> Declaration | None:
        if any("accessibility" in child.kind for child in holder.children):
            return None  # TypeScript's constructor declares a field with it
        for above in (holder, *holder.ancestors()):
            if is_function(above) or (_OF_PARAMETERS.search(above.kind) and not is_parameters(above)):
                return Declaration(leaf, "local", above, above.start, holder, is_parameter=True)
        return None

    def _named(self, leaf: Node, holder: Node, qualifier: str, is_called: bool) -> Declaration | None:
        if constructed(leaf) is not None or (is_called and not qualifier and self._is_macro(holder)):
            return None
        receiver = holder.child("receiver") if self.language == "go" else None
        if qualifier or receiver is not None:
            last = last_name(receiver)
            owner = qualifier if receiver is None else last.text if last is not None else ""
            return Declaration(leaf, "member", holder, 0, holder, owner, is_called)
        is_constant = self.language == "ruby" and is_class(holder)  # also in a module
        for above in holder.ancestors() if not is_constant else ():
            if is_function(above) or above.kind == "object" or (above.kind in _BODIES and self.language != "python"):
                break
            if is_class(above):
                if class_name(above) == leaf.text and (self.traits.is_c or "structor_declaration" in holder.kind):
                    return None  # a constructor has the name of its class
                return Declaration(
                    leaf, "member", above, 0, holder, class_name(above), is_called, bases=bases_of(above)
                )
        if leaf.kind in ("property_identifier", "field_identifier"):
            return None  # what an object or a type without a name has
        scope = self._scope(holder if not is_called and not is_class(holder) else inner_parent(holder))
        scope = self.syntax.root if is_constant else scope
        if self.language == "python":
            scope = self._outer(leaf.text, scope)
        sort: DeclarationSort = "global" if scope is self.syntax.root else "local"
        start = holder.end if _AFTER.search(holder.kind) else leaf.start
        is_whole = sort == "global" or is_called or not self.traits.declares
        return Declaration(leaf, sort, scope, scope.start if is_whole else start, holder, is_function=is_called)

    def _outer(self, name: str, scope: Node) -> Node:
        """Return where a name is known that a function of Python may say to be one of outside."""
        for leaf in self.leaves(name):
            kind = leaf.parent.kind if leaf.parent is not None else ""
            if kind in ("global_statement", "nonlocal_statement") and self._scope(leaf) is scope:
                return self.syntax.root if kind == "global_statement" else self._scope(inner_parent(scope))
        return scope

    def _is_macro(self, holder: Node) -> bool:
        """Return whether what looks like a function of C without a type is a macro with a body: `TEST(A, B) {}`."""
        is_typed = not self.traits.is_c or holder.child("type") is not None
        return not is_typed and class_around(holder) is None

    def _scope(self, node: Node) -> Node:
        """Return where a variable is known that a node declares."""
        for above in (node, *node.ancestors()):
            if self.traits.declares:
                if above.children and _BLOCK.search(above.kind):
                    return above
            elif _COMPREHENSION.search(above.kind):
                return above
            if is_function(above):
                return above
        return self.syntax.root


def is_prototype(one: Declaration) -> bool:
    """Return whether a declaration of C only says that a function is elsewhere, or names a macro, which files share."""
    return (one.is_function and one.holder.kind == "declaration") or is_macro(one.leaf)


_TABLES: "WeakKeyDictionary[Syntax, Names]" = WeakKeyDictionary()


def names_of(syntax: Syntax) -> Names:
    """Return the names of a file. They are looked for once in each tree."""
    known = _TABLES.get(syntax)
    if known is None:
        known = _TABLES[syntax] = Names(syntax)
    return known


def inner_parent(node: Node) -> Node:
    """Return the node around a node; a root is its own."""
    return node.parent if node.parent is not None else node


def is_class(node: Node) -> bool:
    """Return whether a node declares a type with members, or adds members to one."""
    return bool(node.children) and node.parent is not None and _CLASS.search(node.kind) is not None


def class_around(node: Node) -> Node | None:
    """Return the type whose declaration has a node; None if none has."""
    return next((above for above in node.ancestors() if is_class(above)), None)


def owner_around(node: Node) -> str:
    """Return the name of the type whose method or declaration has a node; "" if there is none."""
    for above in node.ancestors():
        if is_class(above):
            return class_name(above)
        receiver = above.child("receiver") if above.kind == "method_declaration" else None
        if receiver is not None:
            last = last_name(receiver)
            return last.text if last is not None else ""
        declarator = above.child("declarator") if above.kind == "function_definition" else None
        if declarator is not None and declarator.children and declarator.children[0].kind == "qualified_identifier":
            return _scope_name(declarator.children[0])
    return ""


def class_name(node: Node) -> str:
    """Return the name of a type's declaration: of an `impl` the type that it is for."""
    name = node.child("name") or node.child("type")
    leaves = name.leaves() if name is not None else ()
    return next((leaf.text for leaf in leaves if is_name(leaf) and not _is_lifetime(leaf)), "")


def trait_name(node: Node) -> str:
    """Return the trait that an `impl` of Rust is for; "" if it is for none."""
    trait = node.child("trait")
    last = last_name(trait.child("type") or trait) if trait is not None else None
    return last.text if last is not None else ""


def _is_lifetime(leaf: Node) -> bool:
    return leaf.parent is not None and leaf.parent.kind == "lifetime"


def bases_of(node: Node) -> frozenset[str]:
    """Return the types that the header of a type's declaration names; of an `impl` the trait alone."""
    if node.kind == "impl_item":
        return frozenset({trait_name(node)} - {""})
    parts = [child for child in node.children if child.field not in ("name", "body", "type") or child.kind == "trait"]
    parts = [child for child in parts if child.kind != "modifiers" and "decorator" not in child.kind]
    parts = [child for child in parts if not re.search("(?<!base_)list$|body$", child.kind) or "super" in child.field]
    names = {leaf.text for part in parts for leaf in part.leaves() if is_name(leaf) and not _is_lifetime(leaf)}
    return frozenset(names - {class_name(node)})


def _scope_name(qualified: Node) -> str:
    names = [leaf.text for leaf in qualified.leaves() if is_name(leaf)]
    return names[-2] if len(names) > 1 else ""


def _climbed(leaf: Node) -> tuple[Node, str, bool]:
    """Return the outermost declarator of a name, its qualifier, and whether it is a function's."""
    node, qualifier, is_called = leaf, "", False
    while (parent := node.parent) is not None and _DECLARATOR.search(parent.kind) and parent.kind != "as_pattern":
        is_pair = parent.kind == "pair_pattern" and node.field == "value"
        if node.field in _NOT_A_NAME and not is_pair:
            break
        if parent.kind == "qualified_identifier":
            qualifier = _scope_name(parent)
        is_called = is_called or parent.kind == "function_declarator"
        node = parent
    return node, qualifier, is_called


def _is_parameter(node: Node, holder: Node) -> bool:
    if is_parameters(holder) or node.field in ("parameter", "parameters"):
        return True
    return "parameter" in holder.kind and not holder.kind.startswith("type")


def _rank(one: Declaration) -> tuple[int, bool, int]:
    """Return how far a declaration is from its uses. One beside an import of the same name hides that."""
    return one.scope.end - one.scope.start, one.sort == "import", -one.start


def strings_with(name: str, syntax: Syntax) -> Iterator[Node]:
    """Yield the strings whose text takes the value of a name in: "{name}" of Rust, "$name" where nothing parses it."""
    pattern = re.compile(rf"[$#]\{{?{re.escape(name)}\b|\{{{re.escape(name)}\b")
    for leaf in syntax.root.leaves():
        if "string" in leaf.kind and pattern.search(leaf.text):
            yield leaf
