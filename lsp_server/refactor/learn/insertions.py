"""Statements that an example only adds: beside which statement they belong, or in the body of which function."""

import re
from collections.abc import Sequence

import attrs

from lsp_server.refactor.change.anchor_pattern import AddedReader, AnchorReader
from lsp_server.refactor.change.anchors import BODIES, NAMES, Anchor, anchors_of, is_text
from lsp_server.refactor.change.difference import Added, Change
from lsp_server.refactor.change.generalise import Sides
from lsp_server.refactor.change.unify import unify
from lsp_server.refactor.change.variables import is_role
from lsp_server.refactor.code.bindings import Scopes, binds, declares
from lsp_server.refactor.code.grammar import SELF, is_access, is_definition, is_name
from lsp_server.refactor.code.node import Node
from lsp_server.refactor.code.syntax import Syntax
from lsp_server.refactor.code.traits import Traits, traits_of
from lsp_server.refactor.places.surroundings import needs_of
from lsp_server.refactor.rules.matching import match_at
from lsp_server.refactor.rules.pattern import ENOUGH, Branch, Pattern, Rest, variables, weight
from lsp_server.refactor.rules.rule import Need, Rule
from lsp_server.refactor.rules.task import Inserts, Task

_MOST = 4
"""The statements that an example may add in one place."""
_FILES = frozenset({"module", "program"})
_BLANK_LINE = re.compile(r"\n[ \t\r]*\n")


@attrs.frozen(eq=False)
class Insertion:
    """Statements that an example adds, as a change of the node beside them."""

    change: Change
    sides: Sides
    inserts: Inserts
    indent: str
    """The white space before the first of them."""
    needs: tuple[Need, ...]
    is_syntax: bool
    """Whether no name says what is meant."""


def insertion_of(added: Added, before: Scopes, after: Scopes) -> Insertion | None:
    """Return what an example adds beside a statement; None if it shares no name with the code beside it.

    That is the statement before or after it, whichever shares more names, or the function around it whose parameters it
    uses, if it is the first of its body. Of equal ones it is what says most, or what is above.
    """
    if not _may_be_example(added, traits_of(before.syntax.language.id)):
        return None
    found = [(one, _insertion(one, added, before, after)) for one in anchors_of(added, after)]
    ranked = [(-anchor.score, one.is_syntax, at, one) for at, (anchor, one) in enumerate(found) if one is not None]
    return min(ranked, key=lambda one: one[:3])[3] if ranked else None


def _may_be_example(added: Added, traits: Traits) -> bool:
    """Return whether some added nodes are statements of a body, or of a file that has such."""
    body = added.body
    is_body = BODIES.search(body.kind) is not None and (body.parent is not None or body.kind in _FILES)
    is_known = traits != Traits() and is_body and 1 <= len(added.nodes) <= _MOST
    return is_known and all(node.named and not is_definition(node) and _is_whole(node) for node in added.nodes)


def _is_whole(node: Node) -> bool:
    """Return whether a node is a statement without syntax errors, and no text or name alone."""
    inner = node.children[0] if node.kind == "expression_statement" and len(node.children) == 1 else node
    is_name_alone = inner.kind in NAMES or is_access(inner)
    has_errors = any(one.kind == "ERROR" or one.start == one.end for one in node.walk())
    return not (is_text(node) or is_name_alone or has_errors)


def united(first: Rule, second: Rule) -> Sides | None:
    """Return the least general sides of two rules that insert statements; None if they do so in different ways.

    A callee of the statement beside them may differ only if the statements that are added have it.
    """
    old, new = (rule.task if isinstance(rule.task, Inserts) else None for rule in (first, second))
    if old is None or new is None or old.side != new.side or len(old.statements) != len(new.statements):
        return unify(first, second) if old is new else None
    if old.side == "first":
        return unify(first, second)
    added = (attrs.evolve(rule, template=side.statements) for rule, side in ((first, old), (second, new)))
    sides = unify(*added)
    if sides is None or len(sides.pattern) != len(first.pattern) or weight(sides.pattern) < ENOUGH:
        return None
    return Sides(sides.pattern, _joined(old.side == "before", sides.pattern, sides.template))


def with_sides(inserts: Task, template: Sequence[Pattern]) -> Task:
    """Return what an edit does, with the statements that it adds as they are in a template that was widened."""
    if not isinstance(inserts, Inserts):
        return inserts
    count = len(inserts.statements)
    if inserts.side == "first":
        return attrs.evolve(inserts, statements=_first_in(template[0], count))
    statements = template[:count] if inserts.side == "before" else template[len(template) - count :]
    return attrs.evolve(inserts, statements=tuple(statements))


def _joined(is_before: bool, anchor: tuple[Pattern, ...], statements: tuple[Pattern, ...]) -> tuple[Pattern, ...]:
    """Return statements in their order, as they are shown."""
    first, *others = (*statements, *anchor) if is_before else (*anchor, *statements)
    return (first, *(_apart(one, "; ") for one in others))


def _first_in(function: Pattern, count: int) -> tuple[Pattern, ...]:
    """Return the statements that a template adds to a body: they are above the rest of it."""
    waiting: list[Pattern] = [function]
    while waiting:
        one = waiting.pop()
        children = one.children if isinstance(one, Branch) else ()
        at = next((at for at, child in enumerate(children) if isinstance(child, Rest) and child.separator == "\n"), -1)
        if at >= count:
            return children[at - count : at]
        waiting.extend(children)
    return ()


def _insertion(anchor: Anchor, added: Added, old: Scopes, new: Scopes) -> Insertion | None:
    """Return the insertion at an anchor; None if the anchor says too little, or fits what is inserted."""
    before, after = old.syntax, new.syntax
    reader = AnchorReader(before, anchor.shared, old)
    is_first = anchor.side == "first"
    pattern = tuple(reader.head(one) if is_first else reader.read(one) for one in anchor.old)
    if not reader.is_telling and not is_first:
        return None
    statements = tuple(AddedReader(after, reader.holes).read(node) for node in added.nodes)
    is_again = any(match_at(pattern[0], one) for node in added.nodes for one in node.walk())
    is_again = is_again or _binds_again(added, anchor, after)
    if weight(pattern) < ENOUGH or is_again or not variables(statements) <= variables(pattern):
        return None
    is_before = anchor.side == "before"
    template = (_with_first(pattern[0], statements),) if is_first else _joined(is_before, pattern, statements)
    nodes = () if is_first else added.nodes
    nodes = (*nodes, *anchor.new) if is_before else (*anchor.new, *nodes)
    inserts = _inserts(anchor, added, before, after, statements)
    inserts = attrs.evolve(inserts, variables=_own_variables(added, anchor, new))
    return Insertion(
        Change(anchor.old, nodes),
        Sides(pattern, template),
        inserts,
        after.line_indent(added.nodes[0].start),
        needs_of((), added.nodes, after.language.id, added.nodes[0]),
        is_syntax=is_first and not reader.is_telling,
    )


def _binds_again(added: Added, anchor: Anchor, after: Syntax) -> bool:
    """Return whether added statements declare a name of their anchor, where each name is declared once."""
    names = {leaf.text for node in anchor.new for leaf in node.leaves() if anchor.side != "first"}
    bound = (leaf for node in added.nodes for leaf in node.leaves() if is_name(leaf) and leaf.text in names)
    id_ = after.language.id
    return traits_of(id_).declares and any(declares(leaf, after.root, id_) for leaf in bound)


def _own_variables(added: Added, anchor: Anchor, scopes: Scopes) -> frozenset[str]:
    """Return the local names that the added statements use, and neither bind nor share with their anchor."""
    leaves = [leaf for node in added.nodes for leaf in node.leaves() if is_name(leaf) and not is_role(leaf)]
    bound = {leaf.text for leaf in leaves if binds(leaf, added.body)}
    known = {text for key in anchor.shared for text in key} | bound
    names = {leaf.text for leaf in leaves if scopes.binding(leaf.text, leaf).kind in ("parameter", "local")}
    return frozenset(names - known - SELF)


def _apart(statement: Pattern, gap: str) -> Pattern:
    """Return a statement of a template as it is shown after something else."""
    if isinstance(statement, Branch):
        return attrs.evolve(statement, children=(_apart(statement.children[0], gap), *statement.children[1:]))
    return attrs.evolve(statement, gap=gap)


def _with_first(function: Pattern, statements: tuple[Pattern, ...]) -> Pattern:
    """Return the pattern of a function with statements before the rest of its body."""
    if not isinstance(function, Branch):
        return function
    children: list[Pattern] = []
    for child in function.children:
        is_rest = isinstance(child, Rest) and child.separator == "\n"
        gaps = (" ", *("; " for _ in statements))
        added = [_apart(one, gap) for one, gap in zip((*statements, child), gaps, strict=True)] if is_rest else []
        children += added or [_with_first(child, statements)]
    return attrs.evolve(function, children=tuple(children))


def _inserts(anchor: Anchor, added: Added, before: Syntax, after: Syntax, statements: tuple[Pattern, ...]) -> Inserts:
    above, below = added.new
    start = above.end if above is not None else _body_start(added.body)
    end = below.start if below is not None else added.nodes[-1].end
    edges = [start, *(edge for node in added.nodes for edge in (node.start, node.end)), end]
    gaps = [after.text(low, high) for low, high in zip(edges[::2], edges[1::2], strict=True)]
    blanks = [_BLANK_LINE.search(gap) is not None for gap in gaps]
    old_above, old_below = added.old
    old_start = old_above.end if old_above is not None else _body_start(added.old_body)
    old_gap = before.text(old_start, old_below.start) if old_below is not None else ""
    if _BLANK_LINE.search(old_gap):  # one of the empty lines was there
        blanks[0 if anchor.side == "before" else -1] = False
    tails = [after.tail(node) for node in added.nodes]
    own = after.tail(anchor.new[0])
    follows = anchor.side != "first" and traits_of(after.language.id).is_script
    return Inserts(
        anchor.side,
        statements,
        tuple(None if follows and tail == own and _has_tail(node) else tail
              for tail, node in zip(tails, added.nodes, strict=True)),
        tuple(blanks),
        anchor.side == "before" and bool(_comment(old_gap.partition("\n")[2])) and not _comment(gaps[-1]),
        below is None,
    )  # fmt: skip


def _comment(gap: str) -> str:
    """Return what is in a gap beside white space and the ends of statements."""
    return gap.strip(" \t\r\n;")


def _has_tail(node: Node) -> bool:
    """Return whether a statement may end with a semicolon."""
    *_, last = node.leaves()
    return last.text != "}" or node.kind in ("expression_statement", "lexical_declaration", "variable_declaration")


def _body_start(body: Node) -> int:
    """Return the byte after the bracket that opens a body, or its start."""
    first = body.children[0] if body.children else None
    return first.end if first is not None and first.text == "{" else body.start
