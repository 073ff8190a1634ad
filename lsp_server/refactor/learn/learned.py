"""The rule of one change of an example, and how a change that is alike widens it."""

import functools
from collections.abc import Sequence

import attrs

from lsp_server.refactor.change.difference import Sort
from lsp_server.refactor.code.syntax import Node
from lsp_server.refactor.learn.insertions import united, with_sides
from lsp_server.refactor.learn.wide import home_of
from lsp_server.refactor.rules.matching import match_at
from lsp_server.refactor.rules.pattern import Leaf, Limit, Pattern, Rest, items
from lsp_server.refactor.rules.rule import Need, Rule, Seen
from lsp_server.refactor.rules.values import joined, seen_of


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
        uses = old.rule.uses | new.rule.uses if old.rule.uses and new.rule.uses else frozenset[str]()
        position = old.rule.position if old.rule.position == new.rule.position else None
        is_equal = old.rule.pattern == new.rule.pattern and old.rule.template == new.rule.template
        if is_equal and _limits(old.rule) == _limits(new.rule):
            rule = attrs.evolve(
                _both(old.rule, new.rule),
                uses=uses,
                receivers=old.rule.receivers | new.rule.receivers,
                position=position,
                ending=old.rule.ending if old.rule.ending == new.rule.ending else None,
                seen=joined(old.rule.seen, new.rule.seen),
            )
            examples = old.examples + new.examples
            learned[index] = attrs.evolve(old, rule=rule, nodes=(*old.nodes, *new.nodes), examples=examples)
            return
        sides = united(old.rule, new.rule)
        if sides is not None:
            constants = {item.text for item in items(sides.pattern) if isinstance(item, Leaf)}
            nodes = (*old.nodes, *new.nodes) if old.nodes and new.nodes else ()
            names = tuple(name for name in old.rule.names if name.text in constants)
            rule = attrs.evolve(
                _both(old.rule, new.rule),
                pattern=sides.pattern,
                template=sides.template,
                names=names,
                repeats=old.rule.repeats or new.rule.repeats,
                brings=tuple(name for name in old.rule.brings if name in new.rule.brings),
                unbound=tuple(name for name in old.rule.unbound if name in new.rule.unbound),
                needs=old.rule.needs if old.rule.needs == new.rule.needs else _joined_needs(old.rule, new.rule),
                uses=uses,
                is_syntax=False,  # a second example says that more is meant
                receivers=frozenset(),
                position=position,
                seen=_seen_in(nodes, sides.pattern),
                home=home_of(attrs.evolve(old.rule, pattern=sides.pattern, template=sides.template), new.rule),
                in_annotation=old.rule.in_annotation and new.rule.in_annotation,
                ending=old.rule.ending if old.rule.ending == new.rule.ending else None,
                inserts=with_sides(old.rule.inserts, sides.template),
            )
            learned[index] = Learned(rule, old.sort, nodes, wide=old.wide, examples=old.examples + new.examples)
            return
    learned.append(new)


def _both(old: Rule, new: Rule) -> Rule:
    """Return the first rule with what both examples say of the code around them."""
    return attrs.evolve(
        old,
        members=tuple(name for name in old.members if name in new.members),
        trait=old.trait if old.trait == new.trait else None,
        spaces=old.spaces | new.spaces,
        jumps=old.jumps | new.jumps,
        drops_used=old.drops_used or new.drops_used,
    )


def _seen_in(nodes: Sequence[Node], pattern: Sequence[Pattern]) -> tuple[Seen, ...]:
    """Return what the variables of a pattern are in all its examples."""
    found = [seen_of(match_at(pattern[0], node)) for node in nodes] if len(pattern) == 1 else []
    return functools.reduce(joined, found) if found else ()


def _limits(rule: Rule) -> list[Limit | None]:
    return [item.limit for item in items(rule.pattern) if isinstance(item, Rest)]


def _joined_needs(old: Rule, new: Rule) -> tuple[Need, ...]:
    """Return what two examples ask of the function around a place. Where their functions differ, any will do."""
    others = {need.word: need for need in new.needs}
    both = [(need, others[need.word]) for need in old.needs if need.word in others]
    return tuple(one if one == other else Need(one.word, None, one.values) for one, other in both)
