"""Where a rule adds statements: on which lines of a place, why not there, and why something else may be meant."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence

import attrs

from lsp_server.refactor.change.anchors import BODIES, beside, body_of, is_path, is_text, own_receivers
from lsp_server.refactor.code.bindings import Scopes
from lsp_server.refactor.code.grammar import GOES_ON, SELF, is_container, is_fixed_name, is_name
from lsp_server.refactor.code.node import Node, same
from lsp_server.refactor.code.syntax import Syntax
from lsp_server.refactor.code.traits import traits_of
from lsp_server.refactor.places.surroundings import function_around
from lsp_server.refactor.rules.matching import Match, match_at, matches
from lsp_server.refactor.rules.pattern import Hole, Leaf, Rest, as_pattern, items
from lsp_server.refactor.rules.rule import Rule
from lsp_server.refactor.rules.task import Inserts

_Key = tuple[tuple[int, ...], ...]
_CASE = re.compile(r"^(switch_(case|default|block_statement_group)|case_statement|default_statement)$")
_CLASS = re.compile(r"^(class|impl|trait|object|struct)(_(definition|declaration|item|specifier))?$")
_NO_BLOCK = re.compile(r"^(if|else|while|do|for|foreach|enhanced_for|for_in|for_range|with|labeled|control)(_\w+)?$")
_FILE_START = re.compile(rb"(\xef\xbb\xbf)?(#![^\n]*\n)?")
_NO_ROOM = "it is a body without a block, where no other statement has room"
_MAY_GO_ON = ("expression_statement", "lexical_declaration", "variable_declaration", "return_statement")
_ATTRIBUTE, _INNER_ATTRIBUTE = "attribute_item", "inner_attribute_item"


def line_matches(rule: Rule, syntax: Syntax) -> Iterator[Match]:
    """Yield all places that fit a rule. One that adds statements has whole lines as its places."""
    inserts, blocks = rule.task, dict[int, _Block]()
    for match in matches(rule.pattern, syntax):
        if not isinstance(inserts, Inserts):
            yield match
            continue
        block, has_added = _statement(match).parent, False
        if inserts.side != "first" and block is not None:
            if id(block) not in blocks:
                blocks[id(block)] = _Block.of(rule, inserts, block)
            has_added = blocks[id(block)].has_added(match)
        yield attrs.evolve(match, lines=_lines(inserts, match, syntax), has_added=has_added)


def position_of(inserts: Inserts, match: Match) -> int:
    """Return the byte at which statements are added: the start of a line, or the end of one."""
    return match.start if inserts.side == "before" else match.end


def first_line_beside(match: Match, inserts: Inserts) -> int:
    """Return a byte of the line whose indentation the added statements get."""
    return _statements(match.nodes[0])[0].start if inserts.side == "first" else _statement(match).start


def node_beside(rule: Rule, match: Match) -> Node:
    """Return the node in whose function an edit is: where a rule adds statements to a body, one that is in it."""
    is_first = isinstance(rule.task, Inserts) and rule.task.side == "first"
    return next(iter(_statements(match.nodes[0])), match.nodes[0]) if is_first else match.nodes[0]


def tails_of(inserts: Inserts, match: Match, syntax: Syntax) -> list[str]:
    """Return how the added statements end: as the statement beside them, or as in the example."""
    own = ";" if syntax.tail(match.nodes[0] if len(match.nodes) > 1 else _statement(match)).endswith(";") else ""
    return [own if tail is None else tail for tail in inserts.tails]


def with_line_ends(inserts: Inserts, match: Match, added: Sequence[str], syntax: Syntax) -> str:
    """Return the lines that are added, with the empty lines around them that the example has."""
    above, below = _is_apart(inserts, match, syntax)
    first, *others, last = inserts.blanks
    gaps = ["\n" * (1 + is_blank) for is_blank in others]
    lines = "".join(text + gap for text, gap in zip(added, [*gaps, ""], strict=True))
    if inserts.side == "before":
        return "\n" * (first and not above) + lines + "\n" * (1 + last)
    return "\n" * (1 + first) + lines + "\n" * (last and not below)


@attrs.frozen(eq=False)
class _Block:
    """Where a block has the first of the added statements, by the digests of its variables, `names`.

    Statements have numbers from the start of the block, or from its end where the edit adds before a statement.
    `apart` has the last number that is not right after a place, and `runs` the first of the places right before each.
    """

    names: list[str]
    numbers: dict[int, int] = attrs.field(factory=dict)
    found: dict[_Key, list[int]] = attrs.field(factory=dict)
    apart: dict[_Key, int] = attrs.field(factory=dict)
    runs: list[int] = attrs.field(factory=list)

    @classmethod
    def of(cls, rule: Rule, inserts: Inserts, block: Node) -> "_Block":
        """Look at each statement of a block once: it may have thousands of places."""
        is_after = inserts.side == "after"
        statement, first = as_pattern(inserts.statements[0 if is_after else -1]), 0
        made = cls([item.name for item in items((statement,)) if isinstance(item, Hole | Rest)])
        for number, one in enumerate(block.parts if is_after else reversed(block.parts)):
            made.numbers[id(one)] = number
            made.runs.append(first)
            if (key := made.key(match_at(statement, one))) is not None:
                made.found.setdefault(key, []).append(number)
                made.apart.update({key: number} if first == number else {})
            if match_at(rule.pattern[-1], one) is None:
                first = number + 1
        return made

    def key(self, match: Match | None) -> _Key | None:
        """Return the digests of the variables; None if a match does not have them all."""
        bounds = [match.variable(name) for name in self.names] if match is not None else [None]
        known = [bound for bound in bounds if bound is not None]
        return tuple(tuple(one.digest for one in each.nodes) for each in known) if len(known) == len(bounds) else None

    def has_added(self, match: Match) -> bool:
        """Return whether the block has the statement for a place too, and not beside another place.

        If only such places are between them, the statement may be there for all of these.
        """
        number, key = self.numbers[id(_statement(match))], self.key(match)
        if key is None or key not in self.found:
            return False
        found = self.found[key]
        at = bisect_right(found, number)
        is_in_run = at < len(found) and self.runs[found[at]] <= number + 1
        return is_in_run or self.apart.get(key, -1) > number


def unplaced(rule: Rule, match: Match, scopes: Scopes) -> str | None:
    """Return a reason if statements cannot be added at a place."""
    inserts, node, syntax = rule.task, _statement(match), scopes.syntax
    if not isinstance(inserts, Inserts):
        return None
    return (
        (_no_body(inserts, match, syntax) if inserts.side == "first" else _no_line(node, syntax))
        or _no_name(inserts, match)
        or _never_run(inserts, node)
        or _goes_on(inserts, match, syntax)
        or _bound_there(rule, inserts, node, syntax)
    )


def other_meaning(rule: Rule, match: Match, own: Sequence[tuple[int, int]], *, is_own: bool) -> str:
    """Return why the statements that a rule adds may not belong to a place; "" if nothing says so.

    `own` are the parts of its text that are examples. `is_own` says that the place is in the same function as one of
    them. Authors who add a line beside one statement leave out most of its like in other functions.
    """
    inserts, node = rule.task, match.nodes[0]
    if not isinstance(inserts, Inserts):
        return ""
    if match.has_added:
        return "what the edit adds is already there, on another line"
    if is_own:
        return ""
    if other := next(iter(sorted(inserts.variables)), ""):
        return f"`{other}`, which the edit uses, may be another variable here"
    if inserts.side != "first" and own_receivers(node) and not _is_in_class_of(own, node):
        return "its object may be of another class"
    return "nothing here says that it needs what the edit adds"


def _statement(match: Match) -> Node:
    """Return the last statement of a place: Rust has an expression where the value of a block is."""
    node, parent = match.nodes[-1], match.nodes[-1].parent
    is_inner = parent is not None and parent.kind == "expression_statement" and len(parent.children) == 1
    return parent if is_inner and parent is not None else node


def _is_in_class_of(own: Sequence[tuple[int, int]], node: Node) -> bool:
    """Return whether the class around a node has an example."""
    around = next((one for one in node.ancestors() if _CLASS.search(one.kind)), None)
    return around is not None and any(around.start <= start and end <= around.end for start, end in own)


def _lines(inserts: Inserts, match: Match, syntax: Syntax) -> tuple[int, int]:
    """Return the bytes of a place from the start or up to the end of which statements are added."""
    node = _statement(match)
    if inserts.side == "before":
        start = node.start if inserts.is_below_comments else _comments_above(node, syntax)
        bodies = (one.start for one in node.children if is_container(one))
        return syntax.data.rfind(b"\n", 0, start) + 1, min(bodies, default=node.end)
    start = node.end if inserts.side == "after" else _head_end(node)
    end = _line_end(start, syntax)
    return match.start, start if end is None else end


def _head_end(function: Node) -> int:
    """Return the end of what comes before the first statement of a function: its bracket or colon, a docstring."""
    body = function.child("body")
    assert body is not None
    end = next((text.end for text in reversed(_texts(function))), None)
    first = body.children[0] if body.children else body
    colon = max((one.end for one in function.children if one.end <= body.start), default=body.start)
    return end or (first.end if first.text == "{" else colon)


def _texts(function: Node) -> list[Node]:
    """Return the docstring of a function, or its directives and inner attributes."""
    body, texts = body_of(function), list[Node]()
    for one in body.parts if body is not None else ():
        if not (is_text(one) or one.kind == _INNER_ATTRIBUTE):
            break
        texts.append(one)
    return texts


def _statements(function: Node) -> list[Node]:
    """Return the statements of a function, without a docstring."""
    body = body_of(function)
    return body.parts[len(_texts(function)) :] if body is not None else []


def _line_end(start: int, syntax: Syntax) -> int | None:
    """Return the end of the line that ends with a byte, but for comments; None if other code is on it."""
    data = syntax.data
    line = data.find(b"\n", start)
    line = len(data) if line == -1 else line
    position = start
    while True:
        rest = data[position:line].lstrip(b" \t;")
        at = line - len(rest)
        comment = _comment_at(at, syntax)
        if not rest.strip():
            return start + len(data[start:line].rstrip())
        if comment is None or comment > line + 1:
            return None
        position = min(comment, line)


def _comment_at(byte: int, syntax: Syntax) -> int | None:
    """Return the end of the comment that begins at a byte."""
    at = bisect_left(syntax.comments, byte, key=lambda one: one.start)
    found = at < len(syntax.comments) and syntax.comments[at].start == byte
    return syntax.comments[at].end if found else None


def _comments_above(node: Node, syntax: Syntax) -> int:
    """Return the start of the comments that are on the lines right above a node, its own start if there are none.

    Those at the start of a file are the file's, as `#!` or the encoding.
    """
    start = node.start
    count = bisect_left(syntax.comments, start, key=lambda one: one.start)
    for comment in (syntax.comments[at] for at in range(count - 1, -1, -1)):
        gap = syntax.data[comment.end : start]
        is_whole = not syntax.data[syntax.data.rfind(b"\n", 0, comment.start) + 1 : comment.start].strip()
        is_right_above = not gap.strip() and (gap.count(b"\n") == 1 or syntax.data[start - 1 : start] == b"\n")
        if not (is_whole and is_right_above and gap.count(b"\n") <= 1):
            break
        start = comment.start
        if _FILE_START.fullmatch(syntax.data, 0, start):
            return node.start
    return start


def _is_apart(inserts: Inserts, match: Match, syntax: Syntax) -> tuple[bool, bool]:
    """Return whether no empty line is needed above and below what is added: there is one, or nothing else."""
    at, data, node = position_of(inserts, match), syntax.data, _statement(match)
    is_first, is_last = _is_end(node, -1), _is_end(node, 1) and inserts.side != "first"
    line, following = data[data.rfind(b"\n", 0, max(at - 1, 0)) + 1 : at], data.find(b"\n", at) + 1 or len(data)
    end = data.find(b"\n", following)
    below = data[following : end if end >= 0 else len(data)]
    return is_first or not line.strip(), is_last or not below.strip()


def _is_end(node: Node, step: int) -> bool:
    return beside(node, step) is None


def _no_line(node: Node, syntax: Syntax) -> str | None:
    parent = node.parent
    if parent is None or not (BODIES.search(parent.kind) or _CASE.search(parent.kind) or parent.parent is None):
        is_body = parent is not None and _NO_BLOCK.search(parent.kind)
        return _NO_ROOM if is_body else "it is a part of an expression here, and the edit is a statement"
    start = syntax.data.rfind(b"\n", 0, node.start) + 1
    if syntax.data[start : node.start].strip() or _line_end(node.end, syntax) is None:
        return "other code is on its line"
    above = beside(node, -1)
    is_marked = above is not None and (above.kind == _ATTRIBUTE or next(above.leaves()).text == "#pragma")
    return "an attribute or a `#pragma` is above it" if is_marked else None


def _no_body(inserts: Inserts, match: Match, syntax: Syntax) -> str | None:
    function = match.nodes[0]
    statements = _statements(function)
    if not statements:
        return "its body is empty"
    added = as_pattern(inserts.statements[0])
    if any(_is_same(match, match_at(added, one)) for one in statements):
        return "its body has what the edit adds"
    if _line_end(_head_end(function), syntax) is None:
        return "its body is on the line of its head"
    return "its first statement must stay the first" if _is_first_alone(statements[0]) else None


def _is_first_alone(statement: Node) -> bool:
    """Return whether a statement calls the constructor of a base class or another one."""
    return statement.kind == "explicit_constructor_invocation" or next(statement.leaves()).text == "super"


def _no_name(inserts: Inserts, match: Match) -> str | None:
    """Return a reason if a variable that the added statements use has no name here: a call would be made twice."""
    used = {item.name for item in items(inserts.statements) if isinstance(item, Hole)}
    for bound in match.bounds:
        if isinstance(bound.item, Hole) and bound.item.name in used:
            node = bound.nodes[0]
            if node.text == "_" or not (is_path(node) or node.text in SELF):
                return "it has no variable where the example has the one that the edit uses"
    return None


def _never_run(inserts: Inserts, node: Node) -> str | None:
    """Return a reason if code would come after a `return` that the example has at the end of a block."""
    kinds = (leaf for leaf in items(inserts.statements[-1:]) if isinstance(leaf, Leaf))
    leaves = next(kinds, None)
    is_end = leaves is not None and leaves.text in ("return", "throw", "raise", "break", "continue")
    is_dead = is_end and inserts.side == "after" and inserts.is_last and not _is_end(node, 1)
    return "what follows it would never run" if is_dead else None


def _goes_on(inserts: Inserts, match: Match, syntax: Syntax) -> str | None:
    """Return a reason if a line of JavaScript would go on with the one above it, which has no ";"."""
    if not traits_of(syntax.language.id).is_script:
        return None
    firsts = [next(items((one,))) for one in inserts.statements]
    above = beside(_statement(match), -1) if inserts.side == "before" else None
    if all(";" in tail for tail in tails_of(inserts, match, syntax)):
        if above is None or above.kind not in _MAY_GO_ON or syntax.tail(above).endswith(";"):
            return None
        firsts = firsts[:1]
    texts = [one.text for one in firsts if isinstance(one, Leaf)]
    texts.append(next(match.nodes[0].leaves()).text if inserts.side == "before" else "")
    is_one = any(text.startswith(GOES_ON) for text in texts)
    return "without a `;` its lines would be one statement" if is_one else None


def _bound_there(rule: Rule, inserts: Inserts, node: Node, syntax: Syntax) -> str | None:
    """Return a reason if a name that the added statements bind is in use in the function of a place."""
    bound = rule.new_names.binds
    if not bound:
        return None
    function = node if inserts.side == "first" else function_around(node)
    around = function if function is not None else next(reversed([node, *node.ancestors()]))
    if all(syntax.data.find(name.encode(), around.start, around.end) < 0 for name in bound):
        return None  # most places: to look at all names for each of them takes seconds in a long file
    template = as_pattern(inserts.statements[0])
    for leaf in around.leaves():
        if leaf.text not in bound or not is_name(leaf) or is_fixed_name(leaf):
            continue
        is_other = any(match_at(template, above) for above in leaf.ancestors())
        if traits_of(rule.language).declares or not is_other:
            return f"`{leaf.text}`, which the edit binds, is in use here"
    return None


def _is_same(match: Match, other: Match | None) -> bool:
    """Return whether the variables of a statement are those of a place."""
    if other is None:
        return False
    pairs = [(match.variable(one.item.name), one) for one in other.bounds if isinstance(one.item, Hole | Rest)]
    return all(mine is not None and all(map(same, mine.nodes, one.nodes)) for mine, one in pairs)
