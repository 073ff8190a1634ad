"""Parameters that an edit adds to a function or takes from it: which places it is meant for."""

import re
from collections.abc import Sequence

from lsp_server.refactor.code.grammar import is_name
from lsp_server.refactor.rules.matching import Match
from lsp_server.refactor.rules.pattern import Branch, Hole, Leaf, Pattern, Rest, items, variables
from lsp_server.refactor.rules.rule import Rule

_FUNCTION = re.compile(r"parameter|^(singleton_)?method$")


def is_asked_for(rule: Rule, match: Match) -> bool:
    """Return whether the body of a place uses each parameter that the edit adds."""
    added = added_parameters(rule)
    inner = (node for bound in match.bounds if isinstance(bound.item, Rest) for node in bound.nodes)
    return bool(added) and added <= {leaf.text for node in inner for leaf in node.leaves() if is_name(leaf)}


def is_unasked(rule: Rule) -> bool:
    """Return whether an edit takes a parameter away that nobody hands over by its place.

    So are those of tests in Python, and the only one of an arrow function. What uses it is left out by checks.py.
    """
    first = rule.pattern[0]
    if not isinstance(first, Branch) or len(rule.template) != 1:
        return False
    gone = variables(rule.pattern) - variables(rule.template)
    if first.kind == "arrow_function":
        other = rule.template[0]
        lists = [one for one in getattr(other, "children", ()) if getattr(one, "kind", "") == "formal_parameters"]
        return bool(gone) and any(not variables((one,)) and not parameters((one,)) for one in lists)
    is_test = any(isinstance(item, Hole) and item.prefix for item in items(rule.pattern))
    is_less = parameters(rule.template) < parameters(rule.pattern)
    return rule.language == "python" and is_test and is_less and not gone


def added_parameters(rule: Rule) -> set[str]:
    """Return the names of the parameters that an edit adds to a function, without those of their types and defaults.

    Those of a function that the edit itself brings are none.
    """
    if not any(map(_has_function, rule.pattern)):
        return set()
    return parameter_names(rule.template) - parameters(rule.pattern)


def _has_function(pattern: Pattern) -> bool:
    inner = pattern.children if isinstance(pattern, Branch) else ()
    return _FUNCTION.search(getattr(pattern, "kind", "")) is not None or any(map(_has_function, inner))


def parameter_names(patterns: Sequence[Pattern], *, is_inside: bool = False) -> set[str]:
    """Return the constant names of parameters, without those of their types and defaults."""
    found: set[str] = set()
    for one in patterns:
        if isinstance(one, Branch) and one.field != "type":
            found |= parameter_names(one.children, is_inside=is_inside or "parameter" in one.kind)
        elif isinstance(one, Leaf) and is_inside:
            if one.text == "=":
                break
            found |= {one.text} if one.named and "type" not in one.kind else set()
    return found


def parameters(patterns: Sequence[Pattern], *, is_inside: bool = False) -> set[str]:
    """Return the constant names in lists of parameters."""
    found: set[str] = set()
    for one in patterns:
        if isinstance(one, Branch):
            found |= parameters(one.children, is_inside=is_inside or "parameter" in one.kind)
        elif isinstance(one, Leaf) and one.named and is_inside:
            found.add(one.text)
    return found
