"""One change becomes a rule: what stayed is pattern, what varies is a variable, what the edit adds is template."""

from collections.abc import Callable, Sequence

import attrs

from lsp_server.refactor.change.difference import Change
from lsp_server.refactor.change.lists import Alignment, Run, align, elements
from lsp_server.refactor.change.variables import END_TAGS, Variables, binds_literal, is_role, key_of, spread_value
from lsp_server.refactor.code.bindings import Scopes, imports_of
from lsp_server.refactor.code.call import element_name
from lsp_server.refactor.code.grammar import (
    argument_name,
    is_arguments,
    is_call,
    is_container,
    is_expression,
    is_list,
    is_literal,
    is_name,
    is_string_content,
    level,
    level_of_place,
)
from lsp_server.refactor.code.node import Node, leaf_text, same
from lsp_server.refactor.code.syntax import Syntax
from lsp_server.refactor.rules.pattern import (
    ENOUGH,
    Branch,
    Hole,
    Leaf,
    Limit,
    Pattern,
    Rest,
    Text,
    has_anchor,
    items,
    names_in,
    weight,
)

_MOST_WORDS = 3
"""A longer text is prose."""


@attrs.frozen
class Sides:
    """The generalised pattern and template of a change."""

    pattern: tuple[Pattern, ...]
    template: tuple[Pattern, ...]


def generalise(change: Change, before: Syntax, after: Syntax, scopes: Scopes) -> Sides:
    """Return the pattern and template of a change. `scopes` are those of the text before.

    Names that are defined vary only if the pattern has another name. If it would say too little, nothing varies.
    """
    fixed: list[str] = []
    value = spread_value(change)
    if _is_same_statement(change) or (value is not None and not any(map(is_call, value.walk()))):
        return _Generaliser(change, before, after, scopes, frozenset({"all", "runs"})).sides()
    literal = is_other_literal(change)
    if literal and any(map(binds_literal, change.before)):
        runs = frozenset[str]() if is_list(change.before[0]) else frozenset({"runs"})
        return _Generaliser(change, before, after, scopes, frozenset({"all"}) | runs).sides()
    for more in ((), ("definition", "target"), ("content",), ("thing", "literal"), ("all",)):
        fixed += more
        generaliser = _Generaliser(change, before, after, scopes, frozenset(fixed))
        sides = generaliser.sides()
        says_enough = weight(sides.pattern) >= ENOUGH and (fixed or has_anchor(sides.pattern))
        if says_enough and not (generaliser.is_torn or (literal and _has_no_name(sides.pattern, change.before))):
            break
    return sides


def is_other_literal(change: Change) -> bool:
    """Return whether an edit only puts literals in the place of literals: `x = 1` becomes `x = 2`."""
    old, new = ([leaf for top in side for leaf in top.leaves()] for side in (change.before, change.after))
    if len(old) != len(new):
        return False
    pairs = [pair for pair in zip(old, new, strict=True) if leaf_text(pair[0]) != leaf_text(pair[1])]
    return bool(pairs) and all(is_literal(leaf) or is_string_content(leaf) for pair in pairs for leaf in pair)


def is_prose(change: Change) -> bool:
    """Return whether an edit only changes texts of several words, such as docstrings and messages."""
    old, new = ([leaf for top in side for leaf in top.leaves()] for side in (change.before, change.after))
    if not is_other_literal(change):
        return False
    pairs = [(one, other) for one, other in zip(old, new, strict=True) if one.text != other.text]
    return all(len(one.text.split()) > _MOST_WORDS and "string" in one.kind for pair in pairs for one in pair)


def _has_no_name(pattern: Sequence[Pattern], nodes: Sequence[Node]) -> bool:
    """Return whether no name of the code is in the pattern: it would fit wherever the literal is."""
    names = {leaf.text for node in nodes for leaf in node.leaves() if is_name(leaf)}
    return not any(isinstance(item, Leaf) and item.text in names for item in items(pattern))


def _is_same_statement(change: Change) -> bool:
    """Return whether an edit only makes a statement return, or the like, what it was: nothing says which others do."""
    if len(change.before) != 1 or len(change.after) != 1 or change.before[0].kind != "expression_statement":
        return False
    inner = change.after[0].parts
    return (
        change.after[0].kind != "expression_statement"
        and len(inner) == 1
        and any(same(inner[0], child) for child in change.before[0].children)
    )


@attrs.define
class Side:
    """One side of an example while it is read: the gap before a node is the text after the node before it."""

    syntax: Syntax
    end: int = 0

    def gap(self, node: Node) -> str:
        """Return the text between the last node and this one."""
        return self.syntax.text(self.end, node.start) if 0 < self.end <= node.start else ""

    def rest(self, run: Run, nodes: Sequence[Node], owner: Node | None) -> Rest:
        """Return a run of nodes of a list as a variable."""
        separator = " " if owner is not None and owner.kind == "jsx_opening_element" else ", "
        if owner is None or is_container(owner):
            separator = "\n"
        if not nodes:
            return Rest(run.name, "", separator)
        # Comments before the first statement belong to it, and not to the edit.
        gap = self.gap(nodes[0])
        comment = next((one for one in self.syntax.comments if self.end <= one.start < nodes[0].start), None)
        if comment is not None and separator == "\n":
            gap = self.syntax.text(self.end, comment.start)
        self.end = nodes[-1].end
        return Rest(run.name, gap, separator, last=element_name(nodes[-1]))


def _list_of(
    node: Node, runs: Sequence[tuple[Run, Sequence[Node], int]], side: Side, build: Callable[[Node], Pattern]
) -> list[Pattern]:
    """Return the children of a list. `runs` have each run with its nodes on this side, and where they begin."""
    members = {id(child): index for index, child in enumerate(elements(node))}
    empty = {at: run for run, nodes, at in runs if not nodes}
    built: list[Pattern] = []
    for child in node.children:
        index = members.get(id(child), -1)
        at_end = child is node.children[-1] and not child.named
        room = empty.pop(index if index >= 0 else len(members) if at_end else -1, None)
        if room is not None:
            built.append(side.rest(room, (), node))
        run = next((one for one in runs if one[2] <= index < one[2] + len(one[1])), None)
        if run is None or index < 0:
            built.append(build(child))
        elif run[2] == index:
            built.append(side.rest(run[0], run[1], node))
    return built


class _Generaliser:
    """Builds both sides. `fixed` names what stays: "definition", "target", "content", "thing", "literal", "all"."""

    def __init__(self, change: Change, before: Syntax, after: Syntax, scopes: Scopes, fixed: frozenset[str]) -> None:
        self._change, self._scopes = change, scopes
        self._before, self._after = Side(before), Side(after)
        self._variables = Variables(change, scopes, fixed)
        self._alignments = align(change.before, change.after) if "runs" not in fixed else []
        self._runs: list[Run] = []
        self._varied: frozenset[str] = frozenset()
        self.is_torn = False
        """Whether the template has a name that varies in the pattern, as it is in the example."""

    def sides(self) -> Sides:
        pattern = tuple(map(self._old, self._change.before))
        names = (leaf.text for top in self._change.before for leaf in top.leaves() if is_name(leaf))
        self._varied = frozenset(names) - names_in(pattern)
        return Sides(pattern, tuple(self._build_new(self._change.after, None)))

    # The pattern.

    def _old(self, node: Node) -> Pattern:
        gap = self._before.gap(node)
        inner = _in_needed_parentheses(node) if node not in self._change.before else None
        hole = (self._variables.hole(inner) if inner is not None else None) or self._variables.hole(node)
        if hole is not None or not node.children:
            self._before.end = node.end
            return attrs.evolve(hole, gap=gap) if hole is not None else Leaf(node.kind, node.text, node.named, gap)
        alignment = next((one for one in self._alignments if one.before is node), None)
        if alignment is None:
            return Branch(node.kind, tuple(map(self._old, node.children)), node.field)
        self._runs.extend(alignment.runs)
        return Branch(node.kind, tuple(self._old_list(alignment)), node.field)

    def _old_list(self, alignment: Alignment) -> list[Pattern]:
        runs = [(run, run.before, run.before_at) for run in alignment.runs]
        built = _list_of(alignment.before, runs, self._before, self._old)
        # Room that has no place among the elements is at the end.
        known = {one.name for one in built if isinstance(one, Rest)}
        built += [self._before.rest(run, (), alignment.before) for run in alignment.runs if run.name not in known]
        limit = self._limit(alignment)
        if limit is None:
            return built
        return [attrs.evolve(one, limit=limit(one)) if isinstance(one, Rest) else one for one in built]

    def _limit(self, alignment: Alignment) -> "Callable[[Rest], Limit] | None":
        """Return what the Rests of a list of arguments may have; None if the edit calls the same function with them."""
        before, after = alignment.before.parent, alignment.after.parent
        if not is_arguments(alignment.before) or before is None or after is None:
            return None
        old, new = _callee(before), _callee(after)
        if old == new or not old or not new:
            return None
        modules = [
            scopes.binding(names[0], call).kind == "import" or names[0][:1].isupper()
            for scopes, names, call in (
                (self._scopes, old, before),
                (Scopes(self._after.syntax, imports_of(self._after.syntax)), new, after),
            )
        ]
        if _are_alike(old[-1], new[-1]) and len(old) > 1 and len(new) > 1 and not any(modules):
            return None
        runs = {run.name: run for run in alignment.runs}

        def limit(rest: Rest) -> Limit:
            return Limit(frozenset(filter(None, map(argument_name, runs[rest.name].before))))

        return limit

    # The template.

    def _build_new(self, nodes: Sequence[Node], owner: Node | None) -> list[Pattern]:
        built: list[Pattern] = []
        index = 0
        while index < len(nodes):
            run = next((run for run in self._runs if _starts(run, nodes, index, owner)), None)
            if run is not None:
                built.append(self._after.rest(run, nodes[index : index + len(run.before)], owner))
                index += len(run.before)
            else:
                built.append(self._new_node(nodes[index]))
                index += 1
        return built

    def _new_node(self, node: Node) -> Pattern:
        gap = self._after.gap(node)
        inner = _in_needed_parentheses(node)
        if inner is not None and key_of(inner) in self._variables.holes and key_of(node) not in self._variables.holes:
            self._after.end = node.end
            return attrs.evolve(self._variables.holes[key_of(inner)], gap=gap, level=level_of_place(node))
        hole = self._variables.holes.get(key_of(node))
        if hole is not None and not is_role(node) and (len(node.children) != 1 or is_expression(node)):
            self._after.end = node.end
            return attrs.evolve(hole, gap=gap, level=level_of_place(node))
        if not node.children:
            self._after.end = node.end
            if node.text in END_TAGS and node.parent is not None and node.parent.kind == "jsx_opening_element":
                end = next((one for one in self._variables.holes.values() if one.kinds & END_TAGS), None)
                if end is not None:
                    return attrs.evolve(end, gap=gap)
            self.is_torn |= node.text in self._varied and is_name(node) and not is_role(node)
            parts = self._parts(node) if is_string_content(node) else ()
            return Text(node.kind, parts, gap) if parts else Leaf(node.kind, node.text, node.named, gap)
        alignment = next((one for one in self._alignments if one.after is node), None)
        if alignment is None or not alignment.runs:
            return Branch(node.kind, tuple(self._build_new(node.children, node)), node.field)
        runs = [(run, run.after, run.after_at) for run in alignment.runs]
        return Branch(node.kind, tuple(_list_of(node, runs, self._after, self._new_node)), node.field)

    def _parts(self, node: Node) -> tuple[str | Hole, ...]:
        for text, hole in sorted(self._variables.fragments.items(), key=lambda pair: -len(pair[0])):
            first, found, last = node.text.partition(text)
            if found:
                return tuple(part for part in (first, hole, last) if part)
        return ()


def _callee(call: Node) -> list[str]:
    """Return the names that a call calls: receivers and members."""
    parts = [child for child in call.children if not is_arguments(child) and child.field != "type_arguments"]
    return [leaf.text for part in parts for leaf in part.leaves() if leaf.named]


def _are_alike(old: str, new: str) -> bool:
    """Return whether two methods have names that say that they take the same: `Query` and `QueryContext`."""
    one, other = (name.replace("_", "").lower() for name in (old, new))
    return one in other or other in one


def _in_needed_parentheses(node: Node) -> Node | None:
    """Return what is in parentheses, if only its place needs them."""
    if node.kind not in ("parenthesized_expression", "parenthesized_type"):
        return None
    inner = next(iter(node.parts), None)
    return inner if inner is not None and level(inner) < level_of_place(node) else None


def _starts(run: Run, nodes: Sequence[Node], index: int, owner: Node | None) -> bool:
    """Return whether statements that the edit moved into another body start at `index`."""
    if not run.before or not (owner is None or is_container(owner)):
        return False
    part = nodes[index : index + len(run.before)]
    return len(part) == len(run.before) and all(map(same, part, run.before))
