"""Where a pattern fits in a tree."""

from collections.abc import Iterator, Sequence

import attrs

from lsp_server.refactor.code.call import element_name
from lsp_server.refactor.code.grammar import is_call, is_container, is_expression
from lsp_server.refactor.code.node import Node, leaf_text, same
from lsp_server.refactor.code.syntax import Syntax
from lsp_server.refactor.rules.pattern import Branch, Hole, Item, Leaf, Pattern, Rest, Tail, items

_TRIES = 20_000
"""The most steps that matching a place may take: several Rests in a long list have many ways to fit."""


@attrs.frozen(eq=False)
class Bound:
    """What an item of a pattern is in a place: UTF-8 bytes and nodes. An empty Rest has no nodes."""

    item: Item
    start: int
    end: int
    nodes: tuple[Node, ...]


@attrs.frozen(eq=False)
class Match:
    """A place that fits: the nodes in the pattern's place, and what each of its items is, in their order.

    `lines` are the bytes from its start to its end, if these are not those of the nodes. `has_added` says that its
    block has what its rule adds.
    """

    nodes: tuple[Node, ...]
    bounds: tuple[Bound, ...]
    lines: tuple[int, int] | None = None
    has_added: bool = False

    @property
    def start(self) -> int:
        return self.nodes[0].start if self.lines is None else self.lines[0]

    @property
    def end(self) -> int:
        return self.nodes[-1].end if self.lines is None else self.lines[1]

    def variable(self, name: str) -> Bound | None:
        """Return what a hole or rest is; None if the pattern does not have it."""
        return next((b for b in self.bounds if isinstance(b.item, Hole | Rest) and b.item.name == name), None)


def matches(pattern: Sequence[Pattern], syntax: Syntax) -> Iterator[Match]:
    """Yield all places that fit, outer places before those inside of them."""
    needed = _literal(pattern)
    if len(pattern) == 1 and not isinstance(pattern[0], Rest):
        kind = pattern[0].kind if isinstance(pattern[0], Leaf | Branch) else ""
        for node in syntax.root.walk():
            if node.kind == kind and (not needed or needed in syntax.data[node.start : node.end]):
                match = match_at(pattern[0], node)
                if match is not None:
                    yield with_comments(match, syntax)
        return
    for container in syntax.root.walk():
        if is_container(container) and (not needed or needed in syntax.data[container.start : container.end]):
            for match in _runs(pattern, container):
                yield with_comments(match, syntax)


def match_at(pattern: Pattern, node: Node) -> Match | None:
    """Return the match of one pattern with one node; None if it does not fit."""
    state = _Matcher().run((pattern, None), (node,), _State(node.start))
    return Match((node,), state.bounds) if state is not None else None


def _runs(pattern: Sequence[Pattern], container: Node) -> Iterator[Match]:
    statements = container.parts
    index = 0
    while index < len(statements):
        state = _Matcher().run(tuple(pattern), tuple(statements[index:]), _State(statements[index].start))
        if state is None or not state.used:
            index += 1
            continue
        yield Match(tuple(statements[index : index + state.used]), state.bounds)
        index += state.used


def _literal(pattern: Sequence[Pattern]) -> bytes:
    """Return the longest name of a pattern: a place that lacks it does not fit."""
    names = [item.text for item in items(pattern) if isinstance(item, Leaf) and item.named]
    return max((name for name in names if not {"'", '"'} & {*name}), key=len, default="").encode()


@attrs.frozen
class _State:
    """A part of a match: what is bound so far, the end of the last node, and how many nodes of the run it took."""

    end: int
    bounds: tuple[Bound, ...] = ()
    used: int = 0

    def with_bound(self, bound: Bound) -> "_State":
        return _State(bound.end, (*self.bounds, bound))


class _Matcher:
    """Matches patterns with nodes. None among the patterns is the end of a list: no node may be left there."""

    def __init__(self) -> None:
        self._tries = 0

    def run(self, patterns: tuple[Pattern | None, ...], nodes: tuple[Node, ...], state: _State) -> _State | None:
        """Match patterns with sibling nodes, from the first one on."""
        self._tries += 1
        if self._tries > _TRIES:
            return None
        if not patterns:
            return attrs.evolve(state, used=0)
        first, others = patterns[0], patterns[1:]
        if first is None:
            return None if nodes else attrs.evolve(state, used=0)
        if isinstance(first, Rest):
            return self._rest(first, others, nodes, state)
        if not nodes:
            return None
        after = self._node(first, nodes[0], state)
        if after is None:
            return None
        done = self.run(others, nodes[1:], after)
        return attrs.evolve(done, used=done.used + 1) if done is not None else None

    def _rest(
        self, rest: Rest, others: tuple[Pattern | None, ...], nodes: tuple[Node, ...], state: _State
    ) -> _State | None:
        most = next((index for index, node in enumerate(nodes) if not node.named), len(nodes))
        most = len(nodes) if isinstance(rest, Tail) else most
        # A Rest at the end takes all; the first of several takes as little as possible.
        counts: Sequence[int] = (
            range(most, -1, -1) if not any(isinstance(one, Rest) for one in others) else range(most + 1)
        )
        if rest.last:
            counts = sorted(counts, key=lambda one: not (one and element_name(nodes[one - 1]) == rest.last))
        for count in counts:
            taken = nodes[:count]
            start = taken[0].start if taken else state.end
            bound = Bound(rest, start, taken[-1].end if taken else state.end, taken)
            if not self._agrees(bound, state):
                continue
            done = self.run(others, nodes[count:], state.with_bound(bound))
            if done is not None:
                return attrs.evolve(done, used=done.used + count)
        return None

    def _node(self, pattern: Pattern, node: Node, state: _State) -> _State | None:
        if isinstance(pattern, Branch):
            if pattern.kind != node.kind or not node.children:
                return None
            return self.run((*pattern.children, None), _comparable(pattern, node), state)
        if isinstance(pattern, Leaf):
            if node.children or node.kind != pattern.kind or leaf_text(node) != leaf_text(pattern):
                return None
            return state.with_bound(Bound(pattern, node.start, node.end, (node,)))
        if not isinstance(pattern, Hole) or not _fits(pattern, node):
            return None
        bound = Bound(pattern, node.start, node.end, (node,))
        return state.with_bound(bound) if self._agrees(bound, state) else None

    def _agrees(self, bound: Bound, state: _State) -> bool:
        """Return whether a variable is what it is elsewhere in the place."""
        name = bound.item.name if isinstance(bound.item, Hole | Rest) else ""
        for other in state.bounds:
            if isinstance(other.item, Hole | Rest) and other.item.name == name:
                return len(other.nodes) == len(bound.nodes) and all(map(same, other.nodes, bound.nodes))
        return True


def _comparable(pattern: Branch, node: Node) -> tuple[Node, ...]:
    """Return the children of a node, without the type arguments of a call if the pattern's call has none."""
    if not is_call(node) or any(
        child.field == "type_arguments" for child in pattern.children if isinstance(child, Branch)
    ):
        return node.children
    return tuple(child for child in node.children if child.field != "type_arguments")


def with_comments(match: Match, syntax: Syntax) -> Match:
    """Return a match whose runs of statements have the comments around them: these belong to the statements."""
    bounds = list(match.bounds)
    for index, bound in enumerate(bounds):
        if not (isinstance(bound.item, Rest) and bound.item.separator == "\n" and bound.nodes):
            continue
        low = bounds[index - 1].end if index else match.start
        high = bounds[index + 1].start if index + 1 < len(bounds) else match.end
        around = [comment for comment in syntax.comments if low <= comment.start and comment.end <= high]
        above = [one for one in around if one.end <= bound.start and b"\n" in syntax.data[low : one.start]]
        indent = syntax.line_indent(bound.start)
        below = [one for one in around if one.start >= bound.end and syntax.line_indent(one.start) == indent]
        start = min((one.start for one in above), default=bound.start)
        end = max((one.end for one in below), default=bound.end)
        bounds[index] = attrs.evolve(bound, start=start, end=end)
    return attrs.evolve(match, bounds=tuple(bounds))


def _fits(hole: Hole, node: Node) -> bool:
    if hole.kinds:
        if node.kind not in hole.kinds and not (not node.named and node.text in hole.kinds):
            return False
    elif not is_expression(node) or "splat" in node.kind or "spread" in node.kind or node.kind == "keyword_argument":
        return False
    return node.text.startswith(hole.prefix) and (not hole.words or node.text in hole.words)
