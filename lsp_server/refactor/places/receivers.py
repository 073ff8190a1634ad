"""What the receivers that vary are, in the example and at a place: how they are called, and of which types."""

import re
from collections.abc import Iterator

from lsp_server.refactor.code.declarations import names_of
from lsp_server.refactor.code.grammar import receiver_of
from lsp_server.refactor.code.node import Node
from lsp_server.refactor.code.syntax import Syntax
from lsp_server.refactor.places.namesakes import called
from lsp_server.refactor.rules.matching import Match
from lsp_server.refactor.rules.pattern import Hole
from lsp_server.refactor.rules.rule import Rule

_SEVERAL_WORDS = re.compile(r"[a-z0-9](_[A-Za-z]|[A-Z])")
_CLASS = re.compile(r"[:&*]*(?:mut)?([A-Z]\w*)")


def receivers_of(match: Match | None) -> frozenset[str]:
    """Return what the receivers that vary are called in a place: `sock` for `self.sock`, `get()` for `a.get(1)`."""
    return frozenset(called(node) for node in _receivers(match)) if match is not None else frozenset()


def receiver_types(match: Match | None, syntax: Syntax) -> frozenset[str]:
    """Return the types that the file writes for the receivers that vary, each behind a colon; empty if one has none."""
    types: list[str] = []
    for node in _receivers(match) if match is not None else ():
        *_, leaf = node.leaves()
        found = names_of(syntax).resolved(leaf) if node.kind == "variable_name" or leaf is node else None
        around = (found.holder, found.holder.parent) if found is not None else ()
        kind = next((one for above in around if above is not None and (one := above.child("type"))), None)
        name = _CLASS.fullmatch(kind.tokens) if kind is not None else None
        if name is None or name[1].isupper():
            return frozenset()
        types.append(f": {name[1]}")
    return frozenset(types)


def has_called(rule: Rule, match: Match) -> bool:
    """Return whether a method of the result of a function goes, of the same one as in the example: its result is new.

    A function's name of several words says so: `a.read_all(x).unwrap()` becomes `a.read_all(x)`.
    """
    names = receivers_of(match)
    are_called = all(name.endswith("()") and _SEVERAL_WORDS.search(name) for name in names)
    return bool(names) and names <= rule.values.receivers and are_called


def _receivers(match: Match) -> Iterator[Node]:
    """Yield what a place has for the receivers that vary."""
    for bound in match.bounds:
        if isinstance(bound.item, Hole) and len(bound.nodes) == 1:
            node = bound.nodes[0]
            if node.parent is not None and node.parent.kind == "variable_name":  # PHP's $x has two tokens
                node = node.parent
            if node.parent is not None and receiver_of(node.parent) is node:
                yield node
