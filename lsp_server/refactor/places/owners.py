"""The type around a place: an edit may use members that only the example's has, or be of the methods of a trait."""

import itertools
import re
from collections.abc import Iterator, Sequence

from lsp_server.refactor.code.declarations import bases_of, class_around, class_name, is_class, names_of, trait_name
from lsp_server.refactor.code.grammar import SELF, is_access, is_name, receiver_of
from lsp_server.refactor.code.node import Node
from lsp_server.refactor.code.syntax import Syntax
from lsp_server.refactor.rules.pattern import Branch, Leaf, items
from lsp_server.refactor.rules.rule import Owner, Rule, changed_words

_SELF = SELF | {"$this"}
_CLASS_ITSELF = frozenset({"Self", "self", "static", "cls"})
_MAKES = frozenset({"object_creation_expression", "object_literal"})
_SPACE = re.compile(
    r"^(namespace|module|mod|class|struct|object|interface|enum|trait)_(definition|declaration|item|specifier)$"
)


def owner_of(rule: Rule, old: Sequence[Node], new: Sequence[Node], after: Syntax) -> Owner:
    """Return the type around the example of a rule: the members that the edit begins to use, the trait."""
    trait = _trait_of(old[0]) if _is_function_of_rust(rule) or _is_override_that_goes(rule) else None
    spaces, around = frozenset(_spaces(old[0])), class_around(new[0]) if new else None
    if around is None:
        return Owner(trait=trait, spaces=spaces)
    name, known = class_name(around), {*_own_members(old)}
    brought = dict.fromkeys(one for one in _own_members(new) if one not in known)
    return Owner(name, tuple(one for one in brought if _declares(name, one, after)), trait, spaces)


def _trait_of(node: Node) -> str:
    """Return the trait of Rust that a function is a method of, or the bases of its class; "" for other functions."""
    around = next((one for one in node.ancestors() if one.kind in _MAKES or is_class(one)), None)
    made = around.child("type") if around is not None and around.kind in _MAKES else None
    if made is not None:
        return made.tokens
    if around is not None and around.kind not in ("impl_item", "trait_item"):
        return ", ".join(sorted(bases_of(around)))
    if around is None or around.kind == "trait_item":
        return class_name(around) if around is not None else ""
    return trait_name(around)


def _is_function_of_rust(rule: Rule) -> bool:
    """Return whether a rule has a function by its name, which is another one in another trait."""
    first = rule.pattern[0] if len(rule.pattern) == 1 else None
    if rule.language != "rust" or not isinstance(first, Branch) or not first.kind.startswith("function_"):
        return False
    return any(isinstance(one, Leaf) and one.kind == "identifier" for one in first.children)


def _is_override_that_goes(rule: Rule) -> bool:
    """Return whether an edit takes a method away that overrides another one, which may be abstract elsewhere."""
    words = (one.text.lower() for one in items(rule.pattern) if isinstance(one, Leaf))
    return not rule.template and len(rule.pattern) == 1 and "override" in words


def _spaces(node: Node) -> Iterator[str]:
    """Yield the names of the namespaces, modules and types around a node."""
    for above in node.ancestors():
        name = above.child("name") if _SPACE.search(above.kind) else None
        if name is not None and not name.start <= node.start < name.end:
            yield name.tokens


def other_self(rule: Rule, node: Node) -> str | None:
    """Return a reason if `Self`, or the like, which the edit brings for a type, is no such type at a place."""
    owner, (gone, come, _) = rule.owner.name, changed_words(rule)
    if not owner or owner not in gone or not come & _CLASS_ITSELF:
        return None
    around = class_around(node)
    body = around.child("body") if around is not None else None
    if around is None or body is None or not body.start <= node.start < body.end or class_name(around) != owner:
        return f"it is not in `{owner}` here"
    inside = itertools.takewhile(lambda above: above is not body, node.ancestors())
    return (
        "a function in a function knows no `Self`" if sum(one.kind == "function_item" for one in inside) > 1 else None
    )


def other_owner(rule: Rule, node: Node, syntax: Syntax) -> str:
    """Return why the type around a place has not what the edit uses, or is for another trait; "" if nothing says so."""
    known = rule.owner
    here = _trait_of(node) if known.trait is not None else ""
    if known.trait is not None and {*here.split(", ")}.isdisjoint(known.trait.split(", ")):
        return f"it is a method of `{here}` here" if here else "it is no method of a trait here"
    words = changed_words(rule)[1] - known.spaces
    if inside := next((name for name in _spaces(node) if name in words), ""):
        return f"it is inside of `{inside}` here, which the edit names"
    unknown = next((name for name in rule.new_names.assumed if not names_of(syntax).declared(name)), "")
    if unknown and rule.language == "rust" and {*_spaces(node)} != known.spaces:
        return f"`{unknown}`, which the edit uses, may be known in the example's module alone"
    around = class_around(node) if known.members else None
    owner = class_name(around) if around is not None else known.name
    for name in known.members:
        uses = names_of(syntax).leaves(name)
        if owner != known.name and not _declares(owner, name, syntax) and not any(_is_used(one, owner) for one in uses):
            return f"its class declares no `{name}`, which the edit uses"
        if _is_set_around(name, node):
            return f"`{name}`, which the edit uses, is set here"
    return ""


def _is_set_around(name: str, node: Node) -> bool:
    """Return whether a node is in the value that a member gets: `x` in `self.x = f(x)`."""
    targets = (above.child("left") for above in node.ancestors())
    leaves = (leaf for target in targets if target is not None for leaf in target.children)
    return any(leaf.text == name and _is_own(leaf) for leaf in leaves)


def _declares(owner: str, name: str, syntax: Syntax) -> bool:
    names = names_of(syntax)
    members = (one for one in names.declared(name).values() if one.sort == "member")
    return any(one.owner == owner for one in members)


def _own_members(tops: Sequence[Node]) -> Iterator[str]:
    return (leaf.text for top in tops for leaf in top.leaves() if is_name(leaf) and _is_own(leaf))


def _is_own(leaf: Node) -> bool:
    """Return whether a name is that of a member of the object whose method has it: `x` of `self.x`."""
    access = leaf.parent
    receiver = receiver_of(access) if access is not None and (is_access(access) or leaf.field == "name") else None
    return receiver is not None and receiver is not leaf and receiver.tokens in _SELF


def _is_used(leaf: Node, owner: str) -> bool:
    return _is_own(leaf) and _owner(leaf) == owner


def _owner(node: Node) -> str:
    around = class_around(node)
    return class_name(around) if around is not None else ""
