"""Anti-unification: two rules become one that has both, and nothing wider than both need."""

import itertools
from collections.abc import Sequence

import attrs

from lsp_server.refactor.change.generalise import Sides
from lsp_server.refactor.code.grammar import is_expression_kind, is_list_kind
from lsp_server.refactor.rules.pattern import Branch, Hole, Leaf, Limit, Pattern, Rest, Text, variables, weight
from lsp_server.refactor.rules.rule import Rule

Pair = tuple[tuple[Pattern, ...], tuple[Pattern, ...]]


_INSIDE = "in a list: "


class _Differ(Exception):
    """The two sides have no common pattern."""


@attrs.define
class _Table:
    """The variables by the two subtrees that they are in the examples."""

    holes: dict[Pair, Hole | Rest] = attrs.field(factory=dict)
    needed: set[str] = attrs.field(factory=set)
    """Variables that the template must have: a callee or a member may vary only if it is carried over."""

    def copy(self) -> "_Table":
        return _Table(dict(self.holes), set(self.needed))

    def take(self, other: "_Table") -> None:
        self.holes, self.needed = other.holes, other.needed

    def hole(self, first: Pattern, second: Pattern) -> Hole:
        key = (first,), (second,)
        known = self.holes.get(key)
        if isinstance(known, Hole):
            return known
        hole = Hole(f"V{len(self.holes)}", _kinds(first, second), _both_values(first, second), _prefix(first, second))
        self.holes[key] = hole
        return hole

    def hole_of_texts(self, first: str, second: str) -> Hole:
        """Return the hole for two tokens of any kind with these texts. Raises _Differ if there is none."""
        for (one, other), hole in self.holes.items():
            texts = [side[0].text for side in (one, other) if len(side) == 1 and isinstance(side[0], Leaf)]
            if texts == [first, second] and isinstance(hole, Hole):
                return hole
        raise _Differ

    def rest(self, first: tuple[Pattern, ...], second: tuple[Pattern, ...], separator: str) -> Rest:
        known = self.holes.get((first, second))
        if isinstance(known, Rest):
            return known
        rest = Rest(f"W{len(self.holes)}", "", separator)
        self.holes[first, second] = rest
        return rest


def unify(first: Rule, second: Rule) -> Sides | None:
    """Return the least general sides that have those of both rules; None if there are none that say enough."""
    table = _Table()
    try:
        pattern = _run(first.pattern, second.pattern, table, "")
        template = _new_run(first.template, second.template, table)
    except _Differ:
        return None
    used = variables(template)
    if not table.needed <= used or not used <= variables(pattern) or weight(pattern) < 1:
        return None
    return Sides(pattern, template)


def _one(first: Pattern, second: Pattern, table: _Table, parent: str) -> Pattern:
    """Unify two patterns. `parent` is the kind of the node around them, after _INSIDE within an element of a list."""
    if isinstance(first, Rest) or isinstance(second, Rest):
        if isinstance(first, Rest) and isinstance(second, Rest):
            rest = table.rest((first,), (second,), first.separator or second.separator)
            limits = first.limit, second.limit
            limit = Limit(limits[0].names | limits[1].names) if limits[0] and limits[1] else None
            return attrs.evolve(rest, gap=first.gap, limit=limit)
        raise _Differ
    if isinstance(first, Leaf) and first == second:
        return first
    if isinstance(first, Branch) and isinstance(second, Branch) and first.kind == second.kind:
        trial = table.copy()
        try:
            children = _run(first.children, second.children, trial, _within(parent) + first.kind)
        except _Differ:
            if not is_expression_kind(first.kind):
                raise
        else:
            table.take(trial)
            return attrs.evolve(first, children=children)
    return _hole(first, second, table, parent)


def _within(parent: str) -> str:
    """Return the mark of what is inside of an element of a list: it may vary, and the edit may drop it."""
    return _INSIDE if parent.startswith(_INSIDE) or is_list_kind(parent) else ""


def _hole(first: Pattern, second: Pattern, table: _Table, parent: str) -> Hole:
    for side in (first, second):
        if isinstance(side, Branch) and not is_expression_kind(side.kind):
            raise _Differ
    both_leaves = isinstance(first, Leaf) and isinstance(second, Leaf)
    if both_leaves and not (first.named and second.named) and first.named != second.named:  # type: ignore[union-attr]
        raise _Differ
    is_known = ((first,), (second,)) in table.holes
    hole = table.hole(first, second)
    if not is_known and not (isinstance(first, Hole) and isinstance(second, Hole)) and not _within(parent):
        table.needed.add(hole.name)
    gap = first.gap if not isinstance(first, Branch) else _first_gap(first)
    return attrs.evolve(hole, gap=gap)


def _run(first: tuple[Pattern, ...], second: tuple[Pattern, ...], table: _Table, parent: str) -> tuple[Pattern, ...]:
    """Unify two lists of children. Elements that only one side has become a Rest."""
    if len(first) == len(second):
        trial = table.copy()
        try:
            built = tuple(_one(one, other, trial, parent) for one, other in zip(first, second, strict=True))
        except _Differ:
            pass
        else:
            table.take(trial)
            return built
    kind = parent.removeprefix(_INSIDE)
    if kind and not is_list_kind(kind):
        raise _Differ
    head, tail = _ends(first, second)
    middle = first[head : len(first) - tail], second[head : len(second) - tail]
    if any(isinstance(one, Leaf) and not one.named for side in middle for one in side):
        raise _Differ  # a bracket is no element
    built_head = tuple(_one(one, other, table, parent) for one, other in zip(first[:head], second[:head], strict=True))
    separator = " " if kind == "jsx_opening_element" else ", "
    rest = attrs.evolve(table.rest(*middle, separator), gap=_first_gap(*middle[0]))
    last = zip(first[len(first) - tail :], second[len(second) - tail :], strict=True)
    return (*built_head, rest, *(_one(one, other, table, parent) for one, other in last))


def _new_run(first: tuple[Pattern, ...], second: tuple[Pattern, ...], table: _Table) -> tuple[Pattern, ...]:
    if len(first) == len(second):
        try:
            return tuple(_new(one, other, table) for one, other in zip(first, second, strict=True))
        except _Differ:
            pass
    for head in range(min(len(first), len(second)) + 1):
        for tail in range(min(len(first), len(second)) - head + 1):
            key = first[head : len(first) - tail], second[head : len(second) - tail]
            rest = table.holes.get(key)
            if not isinstance(rest, Rest):
                continue
            try:
                built_head = tuple(
                    _new(one, other, table) for one, other in zip(first[:head], second[:head], strict=True)
                )
                last = zip(first[len(first) - tail :], second[len(second) - tail :], strict=True)
                built_tail = tuple(_new(one, other, table) for one, other in last)
            except _Differ:
                continue
            return (*built_head, attrs.evolve(rest, gap=_first_gap(*key[0])), *built_tail)
    raise _Differ


def _new(first: Pattern, second: Pattern, table: _Table) -> Pattern:
    known = table.holes.get(((first,), (second,)))
    if known is not None:
        gap = _first_gap(first)
        if isinstance(known, Rest):
            return attrs.evolve(known, gap=gap)
        levels = [one.level for one in (first, second) if isinstance(one, Hole)]
        return attrs.evolve(known, gap=gap, level=max(levels, default=-1))
    if isinstance(first, Leaf) and first == second:
        return first
    if isinstance(first, Leaf) and isinstance(second, Leaf) and first.kind == second.kind and first.named:
        # A name may become the content of a string.
        return Text(first.kind, (table.hole_of_texts(first.text, second.text),), first.gap)
    if isinstance(first, Branch) and isinstance(second, Branch) and first.kind == second.kind:
        return attrs.evolve(first, children=_new_run(first.children, second.children, table))
    if isinstance(first, Text) and isinstance(second, Text) and len(first.parts) == len(second.parts):
        parts = tuple(_part(one, other, table) for one, other in zip(first.parts, second.parts, strict=True))
        return attrs.evolve(first, parts=parts)
    raise _Differ


def _part(first: str | Hole, second: str | Hole, table: _Table) -> str | Hole:
    if isinstance(first, str) or isinstance(second, str):
        if first != second:
            raise _Differ
        return first
    known = table.holes.get(((first,), (second,)))
    if not isinstance(known, Hole):
        raise _Differ
    return known


def _ends(first: Sequence[Pattern], second: Sequence[Pattern]) -> tuple[int, int]:
    """Return how many patterns at the start and at the end of two lists are of one sort."""
    shorter = min(len(first), len(second))
    tail = 0
    while tail < shorter and _alike(first[-1 - tail], second[-1 - tail]) and not isinstance(first[-1 - tail], Hole):
        tail += 1
    head = 0
    while head < shorter - tail and _alike(first[head], second[head]):
        head += 1
    while tail < shorter - head and _alike(first[-1 - tail], second[-1 - tail]):
        tail += 1
    return head, tail


def _alike(first: Pattern, second: Pattern) -> bool:
    if isinstance(first, Branch) and isinstance(second, Branch):
        return first.kind == second.kind
    if isinstance(first, Leaf) and isinstance(second, Leaf):
        return first.named == second.named and (first.named or first.text == second.text)
    return not isinstance(first, Rest) and type(first) is type(second)


def _kinds(first: Pattern, second: Pattern) -> frozenset[str]:
    sides = [_kinds_of(first), _kinds_of(second)]
    if not all(sides) or (sides[0] != sides[1] and all(is_expression_kind(kind) for kind in sides[0] | sides[1])):
        return frozenset()  # expressions of two kinds: any will do
    return sides[0] | sides[1]


def _kinds_of(pattern: Pattern) -> frozenset[str]:
    if isinstance(pattern, Hole):
        return pattern.kinds
    return frozenset({pattern.kind}) if isinstance(pattern, Leaf | Branch) else frozenset()


def _both_values(first: Pattern, second: Pattern) -> bool:
    return any(isinstance(side, Hole) and side.never_imported for side in (first, second))


def _prefix(first: Pattern, second: Pattern) -> str:
    """Return what two names begin with, up to the end of a word: "test_" of test_a and test_b."""
    if not (isinstance(first, Leaf) and isinstance(second, Leaf) and first.named and second.named):
        return ""
    pairs = zip(first.text, second.text, strict=False)
    common = "".join(one for one, _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))
    return common[: common.rfind("_") + 1]


def _first_gap(*patterns: Pattern) -> str:
    for pattern in patterns:
        if not isinstance(pattern, Branch):
            return pattern.gap
        if pattern.children:
            return _first_gap(*pattern.children)
    return ""
