"""`return`, `break`, `continue` and `this` in code that an edit moves into, or out of, a function or a loop."""

import functools
import re
from collections.abc import Iterator, Sequence

from lsp_server.refactor.code.node import Node
from lsp_server.refactor.rules.matching import Match
from lsp_server.refactor.rules.pattern import Branch, Hole, Pattern, Rest
from lsp_server.refactor.rules.rule import Rule

_FUNCTION = re.compile(
    r"^(arrow_function|function_expression|function|func_literal|closure_expression|lambda|lambda_expression"
    r"|lambda_literal|anonymous_function|anonymous_function_creation_expression|function_literal)$"
    r"|^(function|method|constructor)_(item|definition|declaration)$"
)
_LOOP = re.compile(r"^(for|while|do|loop|enhanced_for|foreach|repeat)_(\w+_)?(statement|expression)$")
_OWN_BREAK = re.compile(r"^(switch|expression_switch|type_switch|select)_(statement|expression)$")
_JUMP = re.compile(r"^(return|break|continue)_(statement|expression)$")
_IN_LOOP = frozenset({"break", "continue"})
_OWN_THIS = re.compile(r"^(generator_)?function(_declaration|_expression)?$|^method_definition$|^class_body$")
"""An arrow function and a lambda have the `this`, and the `arguments`, of what is around them."""
_ONE_THIS = frozenset({"java", "kotlin", "scala", "csharp"})
"""Where `arguments` is a name like any other."""
_THIS = frozenset({"this", "arguments"})


def moved_jumps(rule: Rule, match: Match) -> frozenset[str]:
    """Return the words of a place's code that would jump elsewhere, or be something else, after the edit."""
    moved = _moved(rule)
    bounds = ((bound.item.name, bound.nodes) for bound in match.bounds if isinstance(bound.item, Hole | Rest))
    return frozenset(
        word
        for name, nodes in bounds
        if name in moved
        for node in nodes
        for word in (*_jumps(node), *_things(node))
        if word in moved[name]
    )


def other_jump(rule: Rule, match: Match) -> str | None:
    """Return a reason if code of a place would jump elsewhere, or its `this` be another one, as no example's does."""
    words = moved_jumps(rule, match) - rule.allowed.jumps if _moved(rule) else frozenset[str]()
    does = "be" if words & _THIS else "leave"
    return f"`{min(words)}` is in it, and would {does} something else after the edit" if words else None


@functools.cache
def _moved(rule: Rule) -> dict[str, frozenset[str]]:
    """Return the variables that the edit moves into or out of a function or a loop, with the words that then differ."""
    old, new = (
        {name: frame for one in side for name, frame in _frames(one, (0, 0, 0))}
        for side in (rule.pattern, rule.template)
    )
    moved: dict[str, frozenset[str]] = {}
    for name in old.keys() & new.keys():
        (functions, loops, owners), (functions_then, loops_then, owners_then) = old[name], new[name]
        words = frozenset[str]()
        if owners != owners_then:
            words = frozenset({"this"}) if rule.language in _ONE_THIS else _THIS
        if functions != functions_then:
            words |= _IN_LOOP | {"return"}
        elif loops != loops_then:
            words |= _IN_LOOP
        if words:
            moved[name] = words
    return moved


def _frames(pattern: Pattern, frame: tuple[int, int, int]) -> Iterator[tuple[str, tuple[int, int, int]]]:
    """Yield the variables of a pattern, each with the functions around it, loops in the last one, and own `this`."""
    if isinstance(pattern, Hole | Rest):
        yield pattern.name, frame
    elif isinstance(pattern, Branch):
        functions, loops, owners = frame
        owners += bool(_OWN_THIS.search(pattern.kind))
        if _FUNCTION.search(pattern.kind):
            functions, loops = functions + 1, 0
        elif _LOOP.search(pattern.kind):
            loops += 1
        for child in pattern.children:
            yield from _frames(child, (functions, loops, owners))


def _jumps(node: Node, own: Sequence[str] = ()) -> Iterator[str]:
    """Yield the words that jump out of a node."""
    if _FUNCTION.search(node.kind):
        return
    found = _JUMP.search(node.kind)
    if found is not None and found[1] not in own:
        yield found[1]
    inside = own
    if _LOOP.search(node.kind):
        inside = (*own, *_IN_LOOP)
    elif _OWN_BREAK.search(node.kind):
        inside = (*own, "break")
    for child in node.children:
        yield from _jumps(child, inside)


def _things(node: Node) -> Iterator[str]:
    """Yield the words of a node whose meaning what is around it gives."""
    if _OWN_THIS.search(node.kind):
        return
    if not node.children and node.text in _THIS and (node.field not in ("property", "name", "key")):
        yield node.text
    for child in node.children:
        yield from _things(child)
