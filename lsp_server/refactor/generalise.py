"""One change becomes a rule: what stayed is pattern, what varies is a variable, what the edit adds is template."""

from collections.abc import Callable, Sequence

import attrs

from lsp_server.refactor.bindings import Scopes
from lsp_server.refactor.difference import Change
from lsp_server.refactor.grammar import argument_name, is_arguments, is_call, is_container, is_string_content
from lsp_server.refactor.imports import imports_of
from lsp_server.refactor.lists import Alignment, Run, align, elements
from lsp_server.refactor.node import Node, same
from lsp_server.refactor.pattern import Branch, Hole, Leaf, Limit, Pattern, Rest, Text
from lsp_server.refactor.precedence import level, level_of_place
from lsp_server.refactor.syntax import Syntax
from lsp_server.refactor.targets import spread_value
from lsp_server.refactor.variables import END_TAGS, Variables, is_role, key_of
from lsp_server.refactor.weight import ENOUGH, has_anchor, weight


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
    for more in ((), ("definition", "target"), ("content",), ("thing", "literal"), ("all",)):
        fixed += more
        sides = _Generaliser(change, before, after, scopes, frozenset(fixed)).sides()
        if weight(sides.pattern) >= ENOUGH and (fixed or has_anchor(sides.pattern)):
            break
    return sides


def _is_same_statement(change: Change) -> bool:
    """Return whether an edit only makes a statement return, or the like, what it was: nothing says which others do."""
    if len(change.before) != 1 or len(change.after) != 1 or change.before[0].kind != "expression_statement":
        return False
    inner = [child for child in change.after[0].children if child.named]
    return (
        change.after[0].kind != "expression_statement"
        and len(inner) == 1
        and any(same(inner[0], child) for child in change.before[0].children)
    )


class _Generaliser:
    """Builds both sides. `fixed` names what stays: "definition", "target", "content", "thing", "literal", "all"."""

    def __init__(self, change: Change, before: Syntax, after: Syntax, scopes: Scopes, fixed: frozenset[str]) -> None:
        self._change, self._before, self._after, self._scopes = change, before, after, scopes
        self._variables = Variables(change, scopes, fixed)
        self._alignments = align(change.before, change.after) if "runs" not in fixed else []
        self._runs: list[Run] = []
        self._ends = {"before": 0, "after": 0}

    def sides(self) -> Sides:
        pattern = self._build_old(self._change.before)
        self._ends["after"] = 0
        template = self._build_new(self._change.after, None)
        return Sides(tuple(pattern), tuple(template))

    # The pattern.

    def _build_old(self, nodes: Sequence[Node]) -> list[Pattern]:
        return [self._old(node) for node in nodes]

    def _old(self, node: Node) -> Pattern:
        gap = self._gap(node, self._before, "before")
        inner = _in_needed_parentheses(node) if node not in self._change.before else None
        hole = (self._variables.hole(inner) if inner is not None else None) or self._variables.hole(node)
        if hole is not None:
            self._ends["before"] = node.end
            return attrs.evolve(hole, gap=gap)
        if not node.children:
            self._ends["before"] = node.end
            return Leaf(node.kind, node.text, node.named, gap)
        alignment = next((one for one in self._alignments if one.before is node), None)
        if alignment is None:
            return Branch(node.kind, tuple(self._build_old(node.children)), node.field)
        self._runs.extend(alignment.runs)
        return Branch(node.kind, tuple(self._old_list(alignment)), node.field)

    def _old_list(self, alignment: Alignment) -> list[Pattern]:
        node = alignment.before
        built = self._old_elements(alignment, node)
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
                (Scopes(self._after, imports_of(self._after)), new, after),
            )
        ]
        if _are_alike(old[-1], new[-1]) and len(old) > 1 and len(new) > 1 and not any(modules):
            return None
        runs = {run.name: run for run in alignment.runs}

        def limit(rest: Rest) -> Limit:
            return Limit(frozenset(filter(None, map(argument_name, runs[rest.name].before))))

        return limit

    def _old_elements(self, alignment: Alignment, node: Node) -> list[Pattern]:
        members = {id(child): index for index, child in enumerate(elements(node))}
        runs = {run.before_at: run for run in alignment.runs}
        built: list[Pattern] = []
        count = len(members)
        for child in node.children:
            if id(child) not in members:
                if child is node.children[-1] and count in runs and not child.named:
                    built.append(self._rest(runs.pop(count), (), self._before, "before", node))
                built.append(self._old(child))
                continue
            index = members[id(child)]
            if index in runs and not runs[index].before:
                built.append(self._rest(runs.pop(index), (), self._before, "before", node))
            run = next((r for r in alignment.runs if r.before_at <= index < r.before_at + len(r.before)), None)
            if run is None:
                built.append(self._old(child))
            elif run.before_at == index:
                built.append(self._rest(run, run.before, self._before, "before", node))
                runs.pop(index, None)
        built.extend(self._rest(run, (), self._before, "before", node) for at, run in runs.items() if not run.before)
        return built

    # The template.

    def _build_new(self, nodes: Sequence[Node], owner: Node | None) -> list[Pattern]:
        built: list[Pattern] = []
        index = 0
        while index < len(nodes):
            run = next((run for run in self._runs if _starts(run, nodes, index, owner)), None)
            if run is not None:
                built.append(self._rest(run, nodes[index : index + len(run.before)], self._after, "after", owner))
                index += len(run.before)
            else:
                built.append(self._new_node(nodes[index]))
                index += 1
        return built

    def _new_node(self, node: Node) -> Pattern:
        gap = self._gap(node, self._after, "after")
        inner = _in_needed_parentheses(node)
        if inner is not None and key_of(inner) in self._variables.holes and key_of(node) not in self._variables.holes:
            self._ends["after"] = node.end
            return attrs.evolve(self._variables.holes[key_of(inner)], gap=gap, level=level_of_place(node))
        hole = self._variables.holes.get(key_of(node))
        if hole is not None and not is_role(node):
            self._ends["after"] = node.end
            return attrs.evolve(hole, gap=gap, level=level_of_place(node))
        if not node.children:
            self._ends["after"] = node.end
            if node.text in END_TAGS and node.parent is not None and node.parent.kind == "jsx_opening_element":
                end = next((one for one in self._variables.holes.values() if one.kinds & END_TAGS), None)
                if end is not None:
                    return attrs.evolve(end, gap=gap)
            parts = self._parts(node) if is_string_content(node) else ()
            return Text(node.kind, parts, gap) if parts else Leaf(node.kind, node.text, node.named, gap)
        alignment = next((one for one in self._alignments if one.after is node), None)
        if alignment is None or not alignment.runs:
            return Branch(node.kind, tuple(self._build_new(node.children, node)), node.field)
        return Branch(node.kind, tuple(self._new_list(alignment)), node.field)

    def _new_list(self, alignment: Alignment) -> list[Pattern]:
        node = alignment.after
        members = {id(child): index for index, child in enumerate(elements(node))}
        empty = {run.after_at: run for run in alignment.runs if not run.before}
        built: list[Pattern] = []
        count = len(members)
        for child in node.children:
            if id(child) not in members:
                if child is node.children[-1] and count in empty and not child.named:
                    built.append(self._rest(empty.pop(count), (), self._after, "after", node))
                built.append(self._new_node(child))
                continue
            index = members[id(child)]
            if index in empty:
                built.append(self._rest(empty.pop(index), (), self._after, "after", node))
            run = next((r for r in alignment.runs if r.after_at <= index < r.after_at + len(r.after)), None)
            if run is None:
                built.append(self._new_node(child))
            elif run.after_at == index:
                built.append(self._rest(run, run.after, self._after, "after", node))
        return built

    def _parts(self, node: Node) -> tuple[str | Hole, ...]:
        for text, hole in sorted(self._variables.fragments.items(), key=lambda pair: -len(pair[0])):
            first, found, last = node.text.partition(text)
            if found:
                return tuple(part for part in (first, hole, last) if part)
        return ()

    def _rest(self, run: Run, nodes: Sequence[Node], side: Syntax, end: str, owner: Node | None) -> Rest:
        separator = " " if owner is not None and owner.kind == "jsx_opening_element" else ", "
        if owner is None or is_container(owner):
            separator = "\n"
        if not nodes:
            return Rest(run.name, "", separator)
        # Comments before the first statement belong to it, and not to the edit.
        gap = self._gap(nodes[0], side, end)
        comment = next((one for one in side.comments if self._ends[end] <= one.start < nodes[0].start), None)
        if comment is not None and separator == "\n":
            gap = side.text(self._ends[end], comment.start)
        self._ends[end] = nodes[-1].end
        return Rest(run.name, gap, separator)

    def _gap(self, node: Node, side: Syntax, end: str) -> str:
        previous = self._ends[end]
        return side.text(previous, node.start) if previous and previous <= node.start else ""


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
    inner = next((child for child in node.children if child.named), None)
    return inner if inner is not None and level(inner) < level_of_place(node) else None


def _starts(run: Run, nodes: Sequence[Node], index: int, owner: Node | None) -> bool:
    """Return whether statements that the edit moved into another body start at `index`."""
    if not run.before or not (owner is None or is_container(owner)):
        return False
    part = nodes[index : index + len(run.before)]
    return len(part) == len(run.before) and all(map(same, part, run.before))
