"""What the variables of a rule were in its examples, and how the values of a place differ from them."""

import functools
import re
from collections.abc import Iterator, Sequence

from lsp_server.refactor.code.call import element_name
from lsp_server.refactor.code.grammar import argument_name, is_access, is_call, is_literal, is_name
from lsp_server.refactor.code.node import Node
from lsp_server.refactor.rules.matching import Bound, Match
from lsp_server.refactor.rules.pattern import Branch, Hole, Leaf, Pattern, Rest, items, texts_of, variables
from lsp_server.refactor.rules.rule import Rule, Seen

_SORTS = {
    "a function": re.compile(
        r"^(arrow_function|lambda|closure_expression|lambda_expression|lambda_literal|func_literal|function_expression"
        r"|anonymous_function|anonymous_function_creation_expression|function_literal)$"
    ),
    "an object": re.compile(r"^(object|dictionary|hash|table_constructor)$"),
    "a list": re.compile(r"^(list|array|tuple|set|array_expression|array_creation_expression|initializer_list)$"),
}
_LITERALS = {
    "a number": re.compile(r"(^|_)(int|integer|float|floating|number|real)(_|$)"),
    "a text": re.compile(r"string|heredoc"),
}
_STRUCTURES = frozenset({*_SORTS, *_LITERALS, "a literal"})
_LITERAL = frozenset({*_LITERALS, "a literal"})
_FUNCTION = frozenset({"a function"})
_DONE = frozenset({"an object"})
"""What an edit that puts something around a value may have made already."""
_CLASS_NAME = re.compile(r"[A-Z]\w*[a-z]\w*")
_CAST = re.compile(r"cast_expression$|^as_expression$|^type_assertion$|^(compound_literal|type_conversion)_expression$")
_OPERATION = frozenset({"an operation"})
_IS_OPERATION = re.compile(r"^(binary|boolean|infix|additive|multiplicative|comparison)_(expression|operator)$")
_WITH_TYPE = frozenset({"", "an operation", "a call", "a class"})
"""A literal has no type of its own, and such values have one."""
_OBJECT = re.compile(r"^(object|dictionary|hash)$")
_SHORT = re.compile(r"[\d.]+|[\"'`][^\s\"'`]*(\s[^\s\"'`]*)?[\"'`]")
COMPARES = re.compile(
    r"(assert_?)?(is_?)?(not_?)?(deep_?)?(strict_?|loosely_?)?"
    r"(same|equals?|eql|to_?(be|have|match_?object)|match|compare|contains?)(_?deep|_?strict|_?equals?)*",
    re.IGNORECASE,
)
"""The names of functions that compare a value with the one that is expected."""
_AWAITS = ("await", "await_expression")
_WRAPPERS = ("argument", "value_argument")


def seen_of(match: Match | None) -> tuple[Seen, ...]:
    """Return what the variables of a pattern are in an example."""
    return tuple(_seen(*one) for one in _variables(match)) if match is not None else ()


def joined(one: Sequence[Seen], other: Sequence[Seen]) -> tuple[Seen, ...]:
    """Return what the variables of two examples of one pattern are."""
    by_name = {seen.name: seen for seen in other}
    pairs = [(seen, by_name[seen.name]) for seen in one if seen.name in by_name]
    return tuple(
        Seen(a.name, _by_index(a.sorts, b.sorts), min(a.fewest, b.fewest), tuple(p for p in a.pairs if p in b.pairs))
        for a, b in pairs
    )


def _by_index(one: Sequence[frozenset[str]], other: Sequence[frozenset[str]]) -> tuple[frozenset[str], ...]:
    return tuple(a | b for a, b in zip(one, other, strict=False))


def other_value(rule: Rule, match: Match, *, has_short_name: bool) -> str:
    """Return how a value of a place differs from those of the examples so that more may be meant; "" if none does."""
    known = {seen.name: seen for seen in rule.values.seen}
    for variable, bound in _variables(match):
        seen, here = known.get(variable.name), _seen(variable, bound)
        if seen is None:
            continue
        if has_short_name and _is_arguments(variable) and here.fewest < seen.fewest:
            return "it has fewer arguments than the example"
        if _is_arguments(variable) and len(here.sorts) != len(seen.sorts) and _is_other_format(rule):
            return "the example formats more or fewer arguments"
        others = _STRUCTURES if variable.name in _wrapped(rule) else _FUNCTION
        if variable.name in _converted(rule) and all(old <= _LITERAL for old in seen.sorts):
            others = others | _WITH_TYPE
        if [getattr(one, "name", "") for one in rule.template] == [variable.name]:
            others |= _OPERATION  # a wrapper's value may be of another type than what a function returns
        if any(one.kind in _AWAITS for one in (match.nodes[0], match.nodes[0].parent) if one is not None):
            others -= _FUNCTION  # an awaited call may take a function as well as its promise
        for sorts, old in zip(here.sorts, seen.sorts, strict=False):
            is_known = old <= _STRUCTURES | {"a call", "a class"}
            is_done = variable.name in _wrapped(rule) and sorts <= _DONE
            if sorts <= others and not sorts & old and (is_known or is_done):
                known_as = " or ".join(sorted(old - {""})) or "a name"
                return f"it has {min(sorts) or 'another value'} where the example has {known_as}"
    return _other_object(rule, match)


def _is_other_format(rule: Rule) -> bool:
    """Return whether an edit calls `Fatal` instead of `Fatalf`, or the reverse."""
    old, new = (set(texts_of(side)) for side in (rule.pattern, rule.template))
    return any(f"{one}f" == other or one == f"{other}f" for one in old - new for other in new - old)


def lost(rule: Rule, match: Match) -> str:
    """Return the code that a place would lose: the example had nothing in its place."""
    kept = variables(rule.template)
    empty = {seen.name for seen in rule.values.seen if not seen.fewest and not seen.sorts} - kept
    nodes = [node for bound in match.bounds if isinstance(bound.item, Rest) and bound.item.name in empty
             for node in bound.nodes]  # fmt: skip
    return nodes[0].tokens if nodes else ""


def _variables(match: Match) -> Iterator[tuple[Hole | Rest, Bound]]:
    return ((bound.item, bound) for bound in match.bounds if isinstance(bound.item, Hole | Rest))


def _is_arguments(variable: Hole | Rest) -> bool:
    return isinstance(variable, Rest) and variable.separator != "\n"


def _seen(item: Hole | Rest, bound: Bound) -> Seen:
    sorts = tuple(frozenset({_sort(node)}) for node in bound.nodes)
    pairs = tuple(filter(None, map(_pair, bound.nodes))) if isinstance(item, Rest) else ()
    return Seen(item.name, sorts, sum(not argument_name(node) for node in bound.nodes), pairs)


def _pair(node: Node) -> tuple[str, str] | None:
    """Return the key and the value of an element of an object, as code; None for other nodes."""
    is_pair = node.kind == "pair" and len(node.children) > 1
    return (element_name(node), node.children[-1].tokens) if is_pair else None


def _other_object(rule: Rule, match: Match) -> str:
    """Return how an object that gets a key at a place differs from the example's so that it may need none; else "".

    A call says what its object is for, if that has a key of the example's. What a value is compared with may be
    anything, unless the same numbers and texts of one word or two say what it is.
    """
    known = {key: value for seen in rule.values.seen for key, value in seen.pairs}
    nodes = (node for item, bound in _variables(match) if isinstance(item, Rest) for node in bound.nodes)
    here = dict(pair for node in nodes if (pair := _pair(node)))
    if not known or not _gets_key(rule):
        return ""
    is_compared = any(isinstance(item, Leaf) and COMPARES.fullmatch(item.text) for item in items(rule.pattern))
    if here.keys().isdisjoint(known) and (here or is_compared):
        return "its object has no key of the example's"
    telling = {key for key, value in known.items() if _SHORT.fullmatch(value)}
    if is_compared and any(here.get(key) != known[key] for key in telling):
        return "it is compared with other values than in the example"
    return ""


def _gets_key(rule: Rule) -> bool:
    """Return whether an edit adds a key to an object of which only a call says what it is for."""
    old, new = ([*_objects(side)] for side in (rule.pattern, rule.template))
    return any(not [*_constant(one)] and [*_constant(other)] for one, other in zip(old, new, strict=False))


def _objects(patterns: Sequence[Pattern]) -> Iterator[Branch]:
    for one in patterns:
        if isinstance(one, Branch):
            yield from [one] if _OBJECT.search(one.kind) else _objects(one.children)


def _constant(pattern: Branch) -> Iterator[Pattern]:
    return (one for one in pattern.children if isinstance(one, Branch))


def _sort(node: Node) -> str:
    """Return what sort of value a node is; "" for a name, which may be anything."""
    while node.kind in _WRAPPERS and node.parts:
        node = node.parts[-1]
    for name, kinds in _SORTS.items():
        if kinds.search(node.kind):
            return name
    if is_literal(node):
        return next((name for name, kinds in _LITERALS.items() if kinds.search(node.kind)), "a literal")
    if (is_name(node) or is_access(node)) and _CLASS_NAME.fullmatch([*node.leaves()][-1].text):
        return "a class"
    return "a call" if is_call(node) else "an operation" if _IS_OPERATION.search(node.kind) else ""


@functools.cache
def _wrapped(rule: Rule) -> frozenset[str]:
    """Return the arguments that an edit puts something around, in a call that stays: `f($X)` becomes `f({a: $X})`."""
    return _deeper(rule, is_conversion=False)


@functools.cache
def _converted(rule: Rule) -> frozenset[str]:
    """Return those that it puts a call or a cast around: `f($X)` becomes `f(g($X))` or `f((long) $X)`."""
    return _deeper(rule, is_conversion=True)


def _deeper(rule: Rule, *, is_conversion: bool) -> frozenset[str]:
    calls = [side for side in rule.branches if is_call(side)]
    if len(calls) != 2 or calls[0].children[0] != calls[1].children[0]:
        return frozenset()
    old, new = (dict(_depths(call, 0, is_conversion=is_conversion)) for call in calls)
    return frozenset(name for name, depth in new.items() if depth > old.get(name, depth))


def _depths(pattern: Pattern, depth: int, *, is_conversion: bool) -> Iterator[tuple[str, int]]:
    """Yield the variables of a pattern, each with how many nodes are around it, or how many calls and casts."""
    if isinstance(pattern, Hole):
        yield pattern.name, depth
    for child in pattern.children if isinstance(pattern, Branch) else ():
        is_around = isinstance(child, Branch) and (not is_conversion or _converts(child))
        yield from _depths(child, depth + is_around, is_conversion=is_conversion)


def _converts(pattern: Branch) -> bool:
    return is_call(pattern) or _CAST.search(pattern.kind) is not None
