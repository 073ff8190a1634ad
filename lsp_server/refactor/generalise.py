"""One change becomes a rule: what stayed is pattern, what varies is a variable, what the edit adds is template."""

from collections.abc import Iterable, Sequence

import attrs

from lsp_server.refactor.bindings import Scopes
from lsp_server.refactor.difference import Change
from lsp_server.refactor.grammar import (
    is_access,
    is_arguments,
    is_call,
    is_callee,
    is_container,
    is_definition,
    is_expression,
    is_fixed_name,
    is_keyword_literal,
    is_list,
    is_literal,
    is_name,
    is_parameters,
    is_string_content,
    receiver_of,
)
from lsp_server.refactor.lists import Alignment, Run, align, elements
from lsp_server.refactor.pattern import Branch, Hole, Item, Leaf, Pattern, Rest, Text, items
from lsp_server.refactor.precedence import level, level_of_place
from lsp_server.refactor.syntax import Node, Syntax, same

ENOUGH = 2
"""The least weight of a pattern. A lower one, such as `return $X`, fits nearly everywhere."""
_SELF = frozenset({"self", "cls", "this"})
_END_TAGS = frozenset({">", "/>"})


@attrs.frozen
class Sides:
    """The generalised pattern and template of a change."""

    pattern: tuple[Pattern, ...]
    template: tuple[Pattern, ...]


def generalise(change: Change, before: Syntax, after: Syntax, scopes: Scopes) -> Sides:
    """Return the pattern and template of a change. `scopes` are those of the text before.

    Names that are defined vary only if the pattern has another name. Nothing varies if the pattern would say too little.
    """
    for fixed in ((), ("definition", "target"), ("definition", "target", "all")):
        sides = _Generaliser(change, before, after, scopes, frozenset(fixed)).sides()
        if weight(sides.pattern) >= ENOUGH and (fixed or _has_anchor(sides.pattern)):
            break
    return sides


def weight(patterns: Sequence[Pattern]) -> int:
    """Return how much a pattern says: 2 for a name or literal, 1 for a keyword, operator or repeated variable."""
    total, seen = 0, set[str]()
    for item in items(patterns):
        if isinstance(item, Leaf) and item.text not in _SELF:
            total += 2 if item.named else int(item.text.isalpha() or item.text[:1] in "=!<>+-*/%&|?@^~")
        elif isinstance(item, Hole):
            total += int(item.name in seen) + 2 * bool(item.prefix)
            seen.add(item.name)
    return total


def is_constant(patterns: Sequence[Pattern]) -> bool:
    """Return whether a pattern has no variables, and more than one token."""
    found = list(items(patterns))
    return len(found) > 1 and all(isinstance(item, Leaf) for item in found)


def _has_anchor(patterns: Sequence[Pattern]) -> bool:
    """Return whether a pattern has a name, so that names which are defined in it may vary."""
    return any(
        (isinstance(item, Leaf) and item.named and item.text not in _SELF and item.kind not in ("none", "true", "false"))
        or (isinstance(item, Hole) and item.prefix)
        for item in items(patterns)
    )


class _Generaliser:
    """Builds both sides. `fixed` names what does not vary: "definition", "target", "all"."""

    def __init__(
        self, change: Change, before: Syntax, after: Syntax, scopes: Scopes, fixed: frozenset[str]
    ) -> None:
        self._change, self._before, self._after = change, before, after
        self._scopes, self._fixed = scopes, fixed
        self._new = list(_all(change.after))
        self._alignments = align(change.before, change.after)
        self._holes: dict[int, Hole] = {}
        self._fragments: dict[str, Hole] = {}
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
        hole = self._hole_for(node)
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

    def _hole_for(self, node: Node) -> Hole | None:
        if node in self._change.before or self._is_all(node):
            return None
        if is_name(node) and node.text.startswith("test_") and node.field == "name":
            self._holes[node.digest] = Hole(f"X{len(self._holes)}", frozenset({node.kind}), prefix="test_")
            return self._holes[node.digest]
        if node.digest in self._holes and self._may_vary(node):
            return self._holes[node.digest]
        if not self._varies(node):
            return self._fragment(node)
        hole = Hole(f"X{len(self._holes)}", frozenset(), self._is_value_receiver(node))
        if is_string_content(node) or node.text in _END_TAGS:
            hole = attrs.evolve(hole, kinds=frozenset({node.kind, *(_END_TAGS if node.text in _END_TAGS else ())}))
        elif is_name(node) and node.field == "name":
            hole = attrs.evolve(hole, kinds=frozenset({node.kind}))
        self._holes[node.digest] = hole
        return hole

    def _is_all(self, node: Node) -> bool:
        """Return whether a node is all there is: a rule for whatever is there says nothing."""
        before = self._change.before
        return len(before) == 1 and bool(node.children) and _tokens(node) == _tokens(before[0])

    def _varies(self, node: Node) -> bool:
        if node.text in _END_TAGS and node.parent is not None and node.parent.kind == "jsx_opening_element":
            return any(other.text in _END_TAGS for other in self._new)
        return self._may_vary(node) and any(same(node, other) and not _is_role(other) for other in self._new)

    def _may_vary(self, node: Node) -> bool:
        """Return whether a node is an argument, an operand or the like, and no callee, member, keyword or type."""
        if not is_expression(node) or is_callee(node) or is_parameters(node):
            return False
        if is_container(node) and node.kind != "object_type":
            return False
        parent = node.parent
        if "all" in self._fixed:
            return False
        if parent is None or is_literal(node):
            return self._literal_may_vary(node)
        if is_definition(parent) and node.field == "name":
            return "definition" not in self._fixed
        if _is_target(node):
            return "target" not in self._fixed
        if is_fixed_name(node) or node.field == "type" or parent.kind == "type_annotation" or is_access(parent):
            return receiver_of(parent) is node and self._receiver_varies(node)
        if parent.kind == "type":
            return parent.parent is not None and is_list(parent.parent)
        if parent.kind in ("decorator", "dotted_name", "superclasses", "import_spec") or node.kind == "decorator":
            return False
        if node.field == "superclasses" or parent.field == "superclasses":
            return False
        if parent.kind == "jsx_opening_element" or parent.kind == "jsx_closing_element":
            return False
        return receiver_of(parent) is not node or self._receiver_varies(node)

    def _literal_may_vary(self, node: Node) -> bool:
        if not is_literal(node):
            return True
        parent = node.parent
        return not is_keyword_literal(node) or (parent is not None and is_arguments(parent))

    def _receiver_varies(self, node: Node) -> bool:
        """Return whether a receiver may be another one: it moves, or its method gets another name."""
        names = [leaf for leaf in node.leaves() if leaf.named]
        if not names or (not node.children and names[0].text in _SELF):
            return False
        stays = [other for other in self._new if same(other, node) and _is_receiver(other)]
        if all(map(_is_plain, node.walk())) and self._is_thing(names[0], bool(stays)):
            return False
        return not any(_same_member(node, other) for other in stays)

    def _is_thing(self, name: Node, stays: bool) -> bool:
        """Return whether a name is a module or a class. Of a name that nothing explains this is likely."""
        binding = self._scopes.binding(name.text, name).kind
        if binding == "unknown" and not self._scopes.has_imports and name.text not in _SELF:
            return stays or name.text[:1].isupper()
        is_class = name.text[:1].isupper() and not name.text.isupper()
        return binding == "import" or (is_class and binding != "parameter")

    def _is_value_receiver(self, node: Node) -> bool:
        return _is_receiver(node)

    def _fragment(self, node: Node) -> Hole | None:
        """Return a hole for the content of a string that is a part of another string after the edit."""
        if not is_string_content(node) or "name" in self._fixed :
            return None
        if not any(is_string_content(other) and _contains(other.text, node.text) for other in self._new):
            return None
        if node.text not in self._fragments:
            hole = Hole(f"S{len(self._fragments)}", frozenset({node.kind}))
            self._fragments[node.text] = hole
        return self._fragments[node.text]

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
        if inner is not None and inner.digest in self._holes and node.digest not in self._holes:
            self._ends["after"] = node.end
            return attrs.evolve(self._holes[inner.digest], gap=gap, level=level_of_place(node))
        hole = self._holes.get(node.digest)
        if hole is not None and not _is_role(node):
            self._ends["after"] = node.end
            return attrs.evolve(hole, gap=gap, level=level_of_place(node))
        if not node.children:
            self._ends["after"] = node.end
            if node.text in _END_TAGS and node.parent is not None and node.parent.kind == "jsx_opening_element":
                end = next((one for one in self._holes.values() if one.kinds & _END_TAGS), None)
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
        for text, hole in sorted(self._fragments.items(), key=lambda pair: -len(pair[0])):
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
        gap = self._gap(nodes[0], side, end)
        self._ends[end] = nodes[-1].end
        return Rest(run.name, gap, separator)

    def _gap(self, node: Node, side: Syntax, end: str) -> str:
        previous = self._ends[end]
        return side.text(previous, node.start) if previous and previous <= node.start else ""


def _contains(text: str, part: str) -> bool:
    """Return whether a text has another one in it, so that it is no chance."""
    return part in text and (len(part) > 1 or text.startswith(part) or text.endswith(part))


def _tokens(node: Node) -> int:
    return sum(1 for _ in node.leaves())


def _all(nodes: Iterable[Node]) -> Iterable[Node]:
    return (inner for node in nodes for inner in node.walk())


def _in_needed_parentheses(node: Node) -> Node | None:
    """Return what is in parentheses, if only its place needs them."""
    if node.kind != "parenthesized_expression":
        return None
    inner = next((child for child in node.children if child.named), None)
    return inner if inner is not None and level(inner) < level_of_place(node) else None


def _is_role(node: Node) -> bool:
    """Return whether a name is what something is called, and not a value: a member, a keyword."""
    return is_fixed_name(node) and not (node.parent is not None and is_definition(node.parent))


def _is_receiver(node: Node) -> bool:
    return node.parent is not None and receiver_of(node.parent) is node


def _is_plain(node: Node) -> bool:
    return not is_call(node) and not is_list(node) and "subscript" not in node.kind


def _same_member(node: Node, other: Node) -> bool:
    assert node.parent is not None
    assert other.parent is not None
    return same(node.parent, other.parent)


def _is_target(node: Node) -> bool:
    """Return whether a node is assigned to, or is a part of what is assigned to."""
    parent = node.parent
    if parent is None:
        return False
    if parent.kind in ("expression_list", "pattern_list"):
        return parent.field == "left"
    assigns = "assign" in parent.kind or "declarator" in parent.kind or parent.kind in (
        "short_var_declaration",
        "typed_parameter",
        "default_parameter",
        "typed_default_parameter",
        "required_parameter",
        "named_expression",
    )
    return assigns and (node.field in ("left", "name", "pattern") or node is parent.children[0])


def _starts(run: Run, nodes: Sequence[Node], index: int, owner: Node | None) -> bool:
    """Return whether statements that the edit moved into another body start at `index`."""
    if not run.before or not (owner is None or is_container(owner)):
        return False
    part = nodes[index : index + len(run.before)]
    return len(part) == len(run.before) and all(map(same, part, run.before))
