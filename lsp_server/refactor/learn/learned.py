"""The rule of one change of an example, and how a change that is alike widens it."""

import functools
import itertools
import re
from collections.abc import Sequence

import attrs

from lsp_server.refactor.change.sort import Sort
from lsp_server.refactor.code.grammar import is_list_kind
from lsp_server.refactor.code.node import Node
from lsp_server.refactor.learn.insertions import united, with_sides
from lsp_server.refactor.learn.wide import home_of
from lsp_server.refactor.rules.matching import match_at
from lsp_server.refactor.rules.pattern import Branch, Hole, Leaf, Limit, Pattern, Rest, items, texts_of
from lsp_server.refactor.rules.rule import Rule, Seen, Values
from lsp_server.refactor.rules.values import joined, seen_of

_EQUAL = re.compile(r"(assert_?)?(are_?|is_?)?(not_?)?((deep|strict)_?)*(equals?|same|eq)", re.IGNORECASE)
"""The names of functions that say whether two values are equal."""


@attrs.frozen(eq=False)
class Learned:
    """The rule of one change, with what is needed to widen it by another one."""

    rule: Rule
    sort: Sort
    nodes: tuple[Node, ...]
    """The code of the examples before their edits, where each is one node."""
    unknown: tuple[str, ...] = ()
    """Names that the edit adds as values, and that nothing in the file binds: it is hardly finished."""
    wide: Rule | None = None
    """The widest form of the rule."""
    examples: int = 1
    after: tuple[Node, ...] = ()
    """The code of an inserted statement and of what it is beside, after the edit."""


def put(learned: list[Learned], new: Learned) -> None:
    """Widen the first rule that has a common pattern with the new one, or add the new one."""
    for index, old in enumerate(learned):
        one, other, examples = old.rule, new.rule, old.examples + new.examples
        is_equal = one.pattern == other.pattern and one.template == other.template
        if is_equal and _limits(one) == _limits(other):
            receivers = one.values.receivers | other.values.receivers
            values = Values(joined(one.values.seen, other.values.seen), receivers)
            rule = attrs.evolve(_both(one, other), around=one.around.joined(other.around), values=values)
            learned[index] = attrs.evolve(old, rule=rule, nodes=(*old.nodes, *new.nodes), examples=examples)
            return
        sides = united(one, other)
        if sides is not None:
            constants = set(texts_of(sides.pattern))
            nodes = (*old.nodes, *new.nodes) if old.nodes and new.nodes else ()
            rule = attrs.evolve(
                _both(one, other),
                pattern=sides.pattern,
                template=sides.template,
                task=with_sides(one.task, sides.template),
                names=tuple(name for name in one.names if name.text in constants),
                new_names=one.new_names.joined(other.new_names),
                repeats=one.repeats or other.repeats,
                around=one.around.widened(other.around, home_of(sides, (one.path, other.path))),
                is_syntax=False,  # a second example says that more is meant
                values=Values(_seen_in(nodes, sides.pattern)),
            )
            learned[index] = Learned(rule, old.sort, nodes, wide=old.wide, examples=examples)
            return
    learned.append(new)


def swapped(rule: Rule) -> list[Rule]:
    """Return the rule with what a function compares in the other order, if one is a value and the other varies.

    `Equal(t, $X, false)` says what `Equal(t, false, $X)` does.
    """
    is_one = len(rule.pattern) == 1 and not rule.repeats
    found = _swapped(rule.pattern[0], rule.language) if is_one else None
    return [attrs.evolve(rule, pattern=(found,))] if found is not None and (found,) != rule.template else []


def _swapped(pattern: Pattern, language: str) -> Branch | None:
    """Return a pattern with what its first comparison compares in the other order; None if it has no such one."""
    if not isinstance(pattern, Branch):
        return None
    children = list(pattern.children)
    named = [item.text for item in items(children[:-1]) if isinstance(item, Leaf) and item.named]
    last = children[-1]
    if named and _EQUAL.fullmatch(named[-1]) and isinstance(last, Branch) and is_list_kind(last.kind):
        turned = _turned(last, language)
        return attrs.evolve(pattern, children=(*children[:-1], turned)) if turned is not None else None
    for at, child in enumerate(children):
        if (inner := _swapped(child, language)) is not None:
            return attrs.evolve(pattern, children=(*children[:at], inner, *children[at + 1 :]))
    return None


def _turned(pattern: Branch, language: str) -> Branch | None:
    """Return a list of arguments with its first variable and the value beside it in the other order.

    None if it has no such two. The first argument of three in Go is that of the test, `t`.
    """
    children = list(pattern.children)
    values = [at for at, one in enumerate(children) if not isinstance(one, Leaf) or one.named]
    for one, other in itertools.pairwise(values[language == "go" and len(values) > 2 :]):
        inside = [[*items((children[at],))] for at in (one, other)]
        varies = [len(some) == 1 and isinstance(some[0], Hole | Rest) for some in inside]
        stays = [all(isinstance(item, Leaf) for item in some) for some in inside]
        if sorted(varies) == sorted(stays) == [False, True]:
            gaps = [next(items((children[at],))).gap for at in (one, other)]
            first, second = _after(children[other], gaps[0]), _after(children[one], gaps[1])
            children[one], children[other] = first, second
            return attrs.evolve(pattern, children=tuple(children))
    return None


def _after(pattern: Pattern, gap: str) -> Pattern:
    """Return a pattern with another gap before it."""
    if isinstance(pattern, Branch):
        return attrs.evolve(pattern, children=(_after(pattern.children[0], gap), *pattern.children[1:]))
    return attrs.evolve(pattern, gap=gap)


def _both(old: Rule, new: Rule) -> Rule:
    """Return the first rule with what both examples say of the code around them."""
    return attrs.evolve(
        old,
        edges=old.edges.joined(new.edges),
        owner=old.owner.joined(new.owner),
        allowed=old.allowed.joined(new.allowed),
    )


def _seen_in(nodes: Sequence[Node], pattern: Sequence[Pattern]) -> tuple[Seen, ...]:
    """Return what the variables of a pattern are in all its examples."""
    found = [seen_of(match_at(pattern[0], node)) for node in nodes] if len(pattern) == 1 else []
    return functools.reduce(joined, found) if found else ()


def _limits(rule: Rule) -> list[Limit | None]:
    return [item.limit for item in items(rule.pattern) if isinstance(item, Rest)]
