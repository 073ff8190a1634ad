"""Another thing of the same name: a function of the place's own file or package, a method of its own class."""

import re
from collections.abc import Sequence

from lsp_server.refactor.code.bindings import BROUGHT, Scopes, is_function
from lsp_server.refactor.code.declarations import class_around, is_class, is_prototype, names_of
from lsp_server.refactor.code.grammar import SELF, callee_of, is_call, is_callee, receiver_of
from lsp_server.refactor.code.member import is_member
from lsp_server.refactor.code.node import Node
from lsp_server.refactor.code.traits import traits_of
from lsp_server.refactor.code.type_parameters import generic_around
from lsp_server.refactor.rules.matching import Match
from lsp_server.refactor.rules.pattern import Leaf, names_in
from lsp_server.refactor.rules.rule import Rule

_WITH_EXPORTED = frozenset({"selector_expression", "member_access_expression"})
_STEP = re.compile(r"[\w-]+")
_SUFFIXES = frozenset({"js", "mjs", "cjs", "jsx", "ts", "tsx"})


def namesake(rule: Rule, match: Match, scopes: Scopes, *, has_package: bool) -> str:
    """Return why a name of a place in another file than the example's is another thing; "" if nothing says so.

    `has_package` says that it may be a file of the same package of Go.
    """
    if name := _own_definition(rule, match, scopes):
        return f"this file defines `{name}` too, as that of the example does"
    if traits_of(rule.language).names_all and (name := _imported(rule, match, scopes)):
        return f"`{name}` is imported from another module than the example's"
    name = "" if has_package or rule.language != "go" else _of_package(match, scopes)
    return f"another package has another `{name}`" if name else ""


def other_generic(rule: Rule, match: Match, own: Sequence[tuple[int, int]] | None) -> str:
    """Return the type parameter that is all that a place shares with the example, in another declaration; else ""."""
    known = {name.text for name in rule.names if name.binding == "type parameter"}
    if not known or not names_in(rule.pattern) <= known:
        return ""
    name = min(known)
    around = generic_around(name, match.nodes[0])
    is_own = around is not None and any(around.start <= start and end <= around.end for start, end in own or ())
    return "" if is_own else name


def is_in_class(node: Node, own: Sequence[tuple[int, int]]) -> bool:
    """Return whether an example is in the class of a place."""
    body = class_around(node)
    return body is not None and any(body.start <= start and end <= body.end for start, end in own)


def _own_definition(rule: Rule, match: Match, scopes: Scopes) -> str:
    """Return the name of a function or type that a place uses, and that its file defines, as the example's does."""
    known = {name.text for name in rule.names if name.binding == "global"}
    for leaf in (leaf for leaf in _constants(match) if leaf.text in known):
        found = names_of(scopes.syntax).resolved(leaf)
        value = found.holder.child("value") if found is not None else None
        if found is None or found.sort != "global" or found.start == leaf.start or is_prototype(found):
            continue
        if found.is_function or is_class(found.holder) or (value is not None and is_function(value)):
            return leaf.text
    return ""


def _imported(rule: Rule, match: Match, scopes: Scopes) -> str:
    """Return the name of a function that a place calls, that the example's file has itself, and the place's imports."""
    known = {name.text for name in rule.names if name.binding == "global"}
    steps = {*_STEP.findall(rule.path)}
    for leaf in (leaf for leaf in _constants(match) if leaf.text in known and is_callee(leaf)):
        binding = scopes.binding(leaf.text, leaf)
        module = [step for step in _STEP.findall(binding.source.rpartition(".")[0]) if step not in _SUFFIXES]
        if binding.kind == "import" and module and module[-1] not in steps:
            return leaf.text
    return ""


def _of_package(match: Match, scopes: Scopes) -> str:
    """Return a name of a place in Go that its package has, wherever in its folder; "" if there is none."""
    for leaf in _constants(match) if not scopes.imports_everything() else ():
        is_free = (
            leaf.kind in ("identifier", "type_identifier") and leaf.text not in BROUGHT | {"_"} and not is_member(leaf)
        )
        if is_free and scopes.binding(leaf.text, leaf).kind in ("global", "unknown"):
            return leaf.text
    return ""


def _constants(match: Match) -> list[Node]:
    """Return the leaves of a place that are the same in the example."""
    return [bound.nodes[0] for bound in match.bounds if isinstance(bound.item, Leaf)]


def own_method(rule: Rule, match: Match) -> str:
    """Return the name of the method that a place calls of itself, if the class around it has it, and not for all."""
    node = match.nodes[0]
    callee = callee_of(node) if is_call(node) else None
    if callee is None:
        return ""
    receiver = receiver_of(node) or receiver_of(callee)
    if called(receiver) not in SELF if receiver is not None else not traits_of(rule.language).bare_fields:
        return ""
    names = [leaf.text for leaf in callee.leaves() if leaf.named]
    body = next((above for above in node.ancestors() if "class" in above.kind and above.child("body")), None)
    members = body.child("body") if body is not None else None
    for one in members.children if members is not None and names else ():
        name, head = one.child("name"), (part for part in one.children if part.field != "body")
        if name is not None and name.text == names[-1]:
            return "" if any(leaf.text == "static" for part in head for leaf in part.leaves()) else name.text
    return ""


def called(receiver: Node) -> str:
    """Return what a receiver is called: `sock` for `self.sock`, `get()` for `a.get(1)`."""
    callee = callee_of(receiver) if is_call(receiver) else None
    whole = callee if callee is not None else receiver
    names = [leaf.text for leaf in whole.leaves() if leaf.named]
    # `sock2` is what `sock` is, once more, and a field that others see is called `Sock` in Go and C#.
    name = names[-1].rstrip("0123456789") if names else receiver.text
    name = name[:1].lower() + name[1:] if whole.kind in _WITH_EXPORTED else name
    return name + ("()" if callee is not None else "")
