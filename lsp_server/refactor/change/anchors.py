"""The statement beside those that an example adds, or the function around them: whichever shares names with them."""

import re
from bisect import bisect_left
from collections.abc import Collection, Iterator, Sequence
from typing import Literal

import attrs

from lsp_server.refactor.change.difference import Added
from lsp_server.refactor.change.variables import Key, is_role, key_of
from lsp_server.refactor.code.bindings import BROUGHT, Scopes, binds, is_function
from lsp_server.refactor.code.grammar import (
    SELF,
    is_access,
    is_call,
    is_callee,
    is_container,
    is_name,
    is_parameters,
    receiver_of,
)
from lsp_server.refactor.code.node import Node, same

NAMES = frozenset({"identifier", "simple_identifier", "variable_name"})
BODIES = re.compile(
    r"^(module|program|block|statement_block|statement_list|statements|compound_statement|constructor_body|function_body)$"
)
_INNER_BODIES = frozenset({"statement_list", "statements"})
_LEAVES = re.compile(r"^(return|throw|raise|break|continue|goto)_(statement|expression)$")
_SELF_ALONE = 1
_NAME = 2


@attrs.frozen(eq=False)
class Anchor:
    """What is beside added statements, before and after the edit, and the names that they `shared`.

    The statements are "before" it or "after" it, or "first" in its body. It is one node, or a statement and the `if`
    after it that asks for what it binds. The highest `score` says most.
    """

    side: Literal["before", "after", "first"]
    old: tuple[Node, ...]
    new: tuple[Node, ...]
    shared: frozenset[Key]
    score: int


def anchors_of(added: Added, scopes: Scopes) -> list[Anchor]:
    """Return what shares names with added statements, what shares most of them first; of equal ones what is above."""
    used = {key for node in added.nodes for key in _values(node, scopes, has_callees=True)}
    found = sorted(_beside(added, used, scopes), key=lambda one: -one.score)
    return [one for one in found if one.score]


def leaves_block(node: Node) -> bool:
    """Return whether nothing after a statement runs: `return x`."""
    inner = node.parts[0] if node.kind == "expression_statement" and node.parts else node
    return _LEAVES.search(inner.kind) is not None


def is_text(node: Node) -> bool:
    """Return whether a statement is a string alone: a docstring, or "use strict"."""
    return node.kind == "expression_statement" and len(node.children) == 1 and "string" in node.children[0].kind


def inner_body(body: Node) -> Node:
    """Return the node whose children are the statements of a body: Go has a list of them in its blocks."""
    return body.parts[0] if len(body.parts) == 1 and body.parts[0].kind in _INNER_BODIES else body


def body_of(function: Node) -> Node | None:
    """Return the node whose children are the statements of a function; None for another sort of body."""
    body = function.child("body")
    return inner_body(body) if body is not None and BODIES.search(body.kind) else None


def is_value(node: Node, scopes: Scopes) -> bool:
    """Return whether a node is a variable, or a member of one or of the object that a method is of."""
    if node.kind in NAMES:
        return _is_variable(node.children[-1] if node.children else node, scopes)
    first = next(node.leaves())
    return is_path(node) and (first.text in SELF | {"$"} or _is_variable(first, scopes))


def is_path(node: Node) -> bool:
    """Return whether a node is a name, or members of one: to read it twice does nothing else."""
    inner = (one for one in node.walk() if one.children)
    return node.kind in NAMES or (is_access(node) and all(map(_is_step, inner)))


def own_receivers(node: Node) -> set[str]:
    """Return the names of the object that a method is of, of which a statement calls a method: `self`."""
    calls = (one for one in _header(node) if is_call(one))
    first = (receiver_of(call) or next(call.leaves()) for call in calls)
    return {leaf.text for one in first for leaf in one.leaves() if leaf.text in SELF}


def _beside(added: Added, used: Collection[Key], scopes: Scopes) -> Iterator[Anchor]:
    (old_above, old_below), (above, below) = added.old, added.new
    if above is not None and old_above is not None and not is_text(above):
        if not leaves_block(above):
            one = _anchor("after", old_above, above, added, used, scopes)
            if (both := _with_guard(one, added, used, scopes)) is not None:
                yield both
            yield one
    elif (function := _function_of(added.body)) and (old := _function_of(added.old_body)):
        names = {key_of(one) for each in _parameters(function) for one in each.walk() if one.kind in NAMES}
        shared = frozenset(names.intersection(used))
        yield Anchor("first", (old,), (function,), shared, _NAME * len(shared))
    if below is not None and old_below is not None and not is_text(below):
        yield _anchor("before", old_below, below, added, used, scopes)


def _anchor(
    side: Literal["before", "after"], old: Node, new: Node, added: Added, used: Collection[Key], scopes: Scopes
) -> Anchor:
    shared = _outermost([key for key in _values(new, scopes) if key in used])
    own = {name for node in added.nodes for name in own_receivers(node)}
    alone = _SELF_ALONE if own & own_receivers(new) else 0
    return Anchor(side, (old,), (new,), shared, _NAME * len(shared) or alone)


def _with_guard(guard: Anchor, added: Added, used: Collection[Key], scopes: Scopes) -> Anchor | None:
    """Return the statement above an `if` together with that, if the `if` asks for what the statement binds."""
    old, new = beside(guard.old[0], -1), beside(guard.new[0], -1)
    if old is None or new is None or not same(old, new) or not guard.new[0].kind.startswith("if_"):
        return None
    asked = _values(guard.new[0], scopes)
    bound = {key_of(one) for one in new.walk() if is_bound(one)}
    one = _anchor("after", old, new, added, used, scopes)
    if not one.shared or bound.isdisjoint(asked):
        return None
    return attrs.evolve(one, old=(old, *guard.old), new=(new, *guard.new))


def is_bound(node: Node) -> bool:
    """Return whether a node is a variable that a statement binds."""
    if node.kind not in NAMES or node.parent is None:
        return False
    *_, top = node.ancestors()
    return node.field == "declarator" or binds(node, top) == "local"


def beside(node: Node, step: int) -> Node | None:
    """Return the named node before (-1) or after (1) another one in its parent."""
    siblings = node.parent.children if node.parent is not None else (node,)
    at = bisect_left(siblings, node.start, key=lambda one: one.start) + step
    while 0 <= at < len(siblings) and not siblings[at].named:
        at += step
    return siblings[at] if 0 <= at < len(siblings) else None


def _header(node: Node) -> Iterator[Node]:
    """Yield the nodes of a statement without those of its bodies and of the functions in it."""
    waiting = [node]
    while waiting:
        one = waiting.pop()
        yield one
        if one is node or not (is_container(one) or is_function(one)):
            waiting.extend(reversed(one.children))


def _values(top: Node, scopes: Scopes, *, has_callees: bool = False) -> list[Key]:
    """Return the variables, and the members of variables, that the header of a statement names.

    With `has_callees` those of its bodies too, and variables that are called.
    """
    found: list[Key] = []
    for node in top.walk() if has_callees else _header(top):
        is_called = is_callee(node) and not (has_callees and not node.children)
        if not is_called and not is_role(node) and is_value(node, scopes):
            found.append(key_of(node))
    return found


def _is_step(node: Node) -> bool:
    return is_access(node) or node.kind == "variable_name"


def _is_variable(leaf: Node, scopes: Scopes) -> bool:
    if leaf.text in BROUGHT | SELF or leaf.text == "_" or "type" in leaf.field or not is_name(leaf):
        return False
    if leaf.parent is not None and leaf.parent.kind == "variable_name":
        return True
    kind = scopes.binding(leaf.text, leaf).kind
    return kind in ("parameter", "local") or (kind != "import" and not leaf.text[:1].isupper())


def _outermost(keys: Sequence[Key]) -> frozenset[Key]:
    """Return keys without those of variables that are there for a member alone, which is one of the keys."""
    owners = [key[0] for key in keys if len(key) > 2]
    return frozenset(key for key in keys if len(key) != 2 or owners.count(key[1]) < keys.count(key))


def _function_of(body: Node) -> Node | None:
    """Return the function that a body is all of."""
    owner = body.parent
    while owner is not None and is_container(owner):
        owner = owner.parent
    return owner if owner is not None and is_function(owner) and body_of(owner) is body else None


def _parameters(function: Node) -> Iterator[Node]:
    """Yield the lists of a function's parameters, and the one that has no list."""
    for node in _header(function):
        if is_parameters(node) or (node.field == "parameter" and node.parent is function):
            yield node
