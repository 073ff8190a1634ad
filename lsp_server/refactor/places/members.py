"""The uses of a member that got another name: which are its, and which may be those of another type's."""

import functools
import re
from collections.abc import Iterable, Iterator

from lsp_server.refactor.code.bindings import BROUGHT, imports_of
from lsp_server.refactor.code.declarations import Declaration, Names, bases_of, class_around, inner_parent, owner_around
from lsp_server.refactor.code.grammar import SELF, callee_of, is_call, is_callee, is_import, is_name, is_string_content
from lsp_server.refactor.code.import_parts import path_before
from lsp_server.refactor.code.member import is_bare_member, is_member, last_name, receiver
from lsp_server.refactor.code.node import Node
from lsp_server.refactor.rules.task import Rename

_SEVERAL_WORDS = re.compile(r"[a-z0-9][A-Z]|\w_[A-Za-z]")
_SELF = SELF | {"Self", "$this", "super", "base", "static", "parent"}
_TYPE_PARAMETERS = re.compile(
    r"^(type_parameters?|type_parameter_list|where_clause|type_constraints|type_parameter_constraints_clause)$"
)
_BOUND = re.compile(r"^(type_parameter(_declaration|_constraints_clause)?|where_predicate|type_constraint)$")
KEYED = frozenset({"pair", "field_initializer", "keyed_element", "literal_element"})
"""What has a key, and its value, in a value of several members."""
_PARTS_OF_KEYS = frozenset(
    {"field_initializer_list", "field_initializer", "shorthand_field_initializer", "field_pattern", "literal_value"}
    | {"keyed_element", "literal_element", "identifier", "field_identifier", "shorthand_field_identifier"}
    | {"keyword_argument", "property_identifier", "type_identifier"}
)


def rivalry(old: str, rename: Rename, own: Declaration | None) -> str:
    """Return the doubt that other files have of a name: another declaration may have it; "" if none does."""
    if own is None and old in BROUGHT:
        return f"the language has `{old}` too"
    if rename.rivals is None:
        return "" if own is not None else "nobody looked for other declarations of this name"
    return f"`{rename.rivals[0]}` declares `{old}` too" if rename.rivals else ""


class Members:
    """The uses of a member in one file; `own` is its declaration if the file has it."""

    def __init__(self, old: str, rename: Rename, names: Names, own: Declaration | None) -> None:
        self._old, self._rename, self._names, self._own = old, rename, names, own
        self._imports, self._traits = imports_of(names.syntax), names.traits
        self._rivalry = rivalry(old, rename, own)

    def doubt(self, leaf: Node) -> str | None:
        """Return the doubt of a use, as in Use; None if it is none."""
        if is_string_content(leaf):
            return None
        found = None if is_shorthand(leaf) else self._names.resolved(leaf)
        if found is not None:
            return self._declared(found)
        key = self._key_owner(leaf)
        if key is not None:
            return "" if key in self._rename.family else None
        if is_shorthand(leaf):
            return "it is a key here" if self._own is not None else None
        if not is_member(leaf):
            return self._bare(leaf)
        is_called = _is_called(leaf)
        if self._traits.fields_apart and is_called != self._rename.is_function:
            what = "method" if is_called else "field"
            return f"it is a {what} here, and none in the example" if self._own is not None else None
        return self._of_receiver(leaf)

    def _declared(self, found: Declaration) -> str | None:
        if found.sort == "import":
            return self._in_path(found.leaf)
        if found.sort != "member":
            holder = found.holder if found.sort == "local" else None
            is_of_member = holder is not None and any(map(is_member, self._named_in(holder)))
            return "it is a variable that has its value" if is_of_member else None
        is_same = not self._traits.fields_apart or found.is_function == self._rename.is_function
        is_known = bool(found.bases & self._rename.family) and not found.owner
        if is_same and (is_known or found.owner in self._rename.family):
            return ""
        return f"`{found.owner}` has one of its own" if self._own is not None else None

    def _named_in(self, node: Node) -> Iterator[Node]:
        return (leaf for leaf in self._names.leaves(self._old) if node.start <= leaf.start < node.end)

    def _bare(self, leaf: Node) -> str | None:
        """Return the doubt of a name alone, where methods name the members of their class so."""
        if any(map(is_import, leaf.ancestors())):
            return self._in_path(leaf)
        if self._imports_all or inner_parent(leaf).kind == "switch_label":
            return self._rivalry
        if not self._traits.bare_fields:
            return None
        if owner_around(leaf) in self._rename.family or self._is_heir(leaf):
            return ""
        return self._rivalry if self._own is not None and self._traits.is_c else None

    def _in_path(self, leaf: Node) -> str | None:
        """Return the doubt of a name in the path of an import: it is a use behind a type of the family."""
        return None if self._rename.family.isdisjoint(path_before(leaf)[-1:]) else ""

    @functools.cached_property
    def _imports_all(self) -> bool:
        """Whether an import brings all members of a type of the family."""
        words = (re.findall(r"[\w*]+", one.source) for one in self._imports.all if one.kind == "text")
        return any(
            one[-2:] == [owner, each] or (one[:2] == ["using", "static"] and one[-1] == owner)
            for one in words
            for owner in self._rename.family
            for each in "*_"
        )

    def _is_heir(self, leaf: Node) -> bool:
        around = class_around(leaf)
        return around is not None and bool(bases_of(around) & self._rename.family)

    def _key_owner(self, leaf: Node) -> str | None:
        """Return the type whose value has a name as a key; None if it is no key, or nothing says which type."""
        above = leaf.parent
        for node in (leaf, *leaf.ancestors()):
            above = node.parent
            if above is None or node.kind in ("arguments", "block"):
                return None
            if above.kind in ("struct_expression", "struct_pattern", "composite_literal"):
                name = above.child("name") or above.child("type")
                last = last_name(name)
                is_key = is_member(leaf) or is_shorthand(leaf)
                owner = last.text if last is not None else None
                owner = owner_around(leaf) if owner == "Self" else owner
                return owner if is_key and receiver(leaf) is None else None
            if above.kind == "field_initializer" and self._traits.is_c:
                return owner_around(leaf) if leaf.field != "value" and above.children[0] is leaf else None
            if above.kind == "keyword_argument":
                call = above.parent.parent if above.parent is not None else None
                return call.children[0].text if call is not None and above.children[0] is leaf else None
            if node.kind not in _PARTS_OF_KEYS:
                return None
        return None

    def _of_receiver(self, leaf: Node) -> str | None:
        owner = receiver(leaf)
        if owner is None and is_bare_member(leaf):
            is_named = _SEVERAL_WORDS.search(self._old)
            return self._rivalry or ("" if is_named else "its type is not written here")
        if owner is None:
            is_meant = self._rename.is_key and not self._rename.rivals and _SEVERAL_WORDS.search(self._old)
            return "" if is_meant else None if self._rivalry else "it is a key here"
        if owner.tokens in _SELF:
            return self._of_self(leaf)
        last, made = last_name(owner), last_name(callee_of(owner))
        if any(one is not None and one.text in self._rename.family for one in (last, made)):
            return ""
        if last is None or self._imports.binding(last.text) is not None:
            return None
        types = self._types(last) if not is_call(owner) else set()
        if types & self._rename.family:
            return ""
        if types & {*(self._rename.rivals or ())}:
            return None
        if self._rename.rivals is None or self._rename.rivals:
            return self._rivalry or "its receiver may have another type"
        return "" if _SEVERAL_WORDS.search(self._old) else "its receiver may have another type"

    def _of_self(self, leaf: Node) -> str | None:
        around = owner_around(leaf)
        if around in self._rename.family or self._is_heir(leaf):
            return ""
        return None if around in (self._rename.rivals or ()) else "its class may have another one of this name"

    def _types(self, name: Node) -> set[str]:
        """Return the names in the declaration of a name: its type is one of them."""
        known = self._names.resolved(name)
        if known is None:
            fields = [one for one in self._names.declared(name.text).values() if one.sort == "member"]
            known = fields[0] if len(fields) == 1 else None
        if known is None:
            return set()
        holder = known.holder
        above = holder.parent if holder.kind == "variable_declarator" else None  # the type is before it
        parts = [one for top in (holder, above) if top is not None for one in top.children if one.field != "body"]
        return _with_bounds({leaf.text for part in parts for leaf in part.leaves() if is_name(leaf)}, name)


def _with_bounds(types: set[str], node: Node) -> set[str]:
    """Return names of types, and the bounds of those that are type parameters around a node: `T: Read` of Rust."""
    found = set(types)
    for above in node.ancestors():
        for child in (one for one in above.children if _TYPE_PARAMETERS.search(one.kind)):
            for part in child.walk():
                names = [leaf.text for leaf in part.leaves() if is_name(leaf)] if _BOUND.search(part.kind) else []
                found.update(names[1:] if names and names[0] in types else ())
    return found


def member_of_keys(declared: Iterable[Declaration]) -> Declaration | None:
    """Return the member that the keys of a name mean: of the only type of a file that declares one."""
    members = {one.owner: one for one in declared if one.sort == "member"}
    return next(iter(members.values())) if len(members) == 1 else None


def is_shorthand(leaf: Node) -> bool:
    """Return whether a name stands for a key and for a value: `{ name }`."""
    return any(one is not None and one.kind.startswith("shorthand_") for one in (leaf, leaf.parent))


def _is_called(leaf: Node) -> bool:
    """Return whether a member is called where it is named."""
    access = leaf.parent
    if access is None:
        return False
    if access.kind == "token_tree":
        at = leaf.index
        return access.children[at + 1 : at + 2] != () and access.children[at + 1].kind == "token_tree"
    return is_call(access) or is_callee(access) or "call" in access.kind or access.kind == "method_reference"
