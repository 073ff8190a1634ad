"""The widest forms of edits that are known to write the same otherwise: `T $x = null` becomes `?T $x = null`."""

import re
from collections.abc import Iterator

import attrs

from lsp_server.refactor.change.difference import Change
from lsp_server.refactor.change.generalise import Side, Sides
from lsp_server.refactor.change.libraries import library_of
from lsp_server.refactor.code.grammar import is_arguments, is_call
from lsp_server.refactor.code.node import Node, same
from lsp_server.refactor.code.syntax import Syntax
from lsp_server.refactor.places.spellings import DEFAULTED
from lsp_server.refactor.rules.pattern import Branch, Hole, Leaf, Pattern, Rest, Tail

_PLAIN_PHP = frozenset({"primitive_type", "named_type"})
_OPTIONAL = re.compile(r"(?:\w+\.)?Optional\[(.+)\]|(?:\w+\.)?Union\[(.+),None\]|(.+)\|None")


@attrs.frozen(eq=False)
class Widest:
    """The widest form of a change: its sides, and the nodes that they were made from.

    `words` say what its places have in common.
    """

    sides: Sides
    before: Node
    after: Node
    words: str


@attrs.define
class Reader(Side):
    """Reads one side. What both sides have is a variable, and all elements of a list of `list_kind` are one."""

    shared: dict[int, Hole] = attrs.field(factory=dict, kw_only=True)
    list_kind: str = attrs.field(default="", kw_only=True)
    arguments: Node | None = attrs.field(default=None, kw_only=True)
    fixed: Node | None = attrs.field(default=None, kw_only=True)
    """What took the place of another leaf: it is no variable, also if one has its text in the example."""
    kept: int = attrs.field(default=0, kw_only=True)
    """How many elements are one variable; the others of `arguments` are read."""

    def read(self, node: Node) -> Pattern:
        """Return a node as a pattern."""
        if node is self.arguments:
            return Branch(node.kind, tuple(self._first_elements(node)), node.field)
        if node.kind == self.list_kind:
            return Branch(node.kind, tuple(self._elements(node)), node.field)
        gap, hole = self.gap(node), self.shared.get(node.digest) if node is not self.fixed else None
        if hole is None and node.children:
            return Branch(node.kind, tuple(map(self.read, node.children)), node.field)
        self.end = node.end
        return attrs.evolve(hole, gap=gap) if hole is not None else Leaf(node.kind, node.text, node.named, gap)

    def _first_elements(self, node: Node) -> Iterator[Pattern]:
        parts = list(node.parts)[: self.kept]
        for child in node.children:
            if child is parts[0]:
                yield Rest("WS", self.gap(child), ", ")
                self.end = parts[-1].end
            elif not any(child is one for one in parts):
                yield self.read(child)

    def _elements(self, node: Node) -> Iterator[Pattern]:
        has_any = False
        for child in node.children:
            if child.named and not has_any:
                has_any = True
                yield Rest("WS", self.gap(child), ", ")
                self.end = list(node.parts)[-1].end
            elif not child.named and (child.text != "," or not has_any):
                yield self.read(child)


def known_form(change: Change, sides: tuple[Node, Node], texts: tuple[Syntax, Syntax]) -> Widest | None:
    """Return the form of an edit that writes the same otherwise, as it is known to; None for others.

    `sides` are the smallest nodes that changed.
    """
    nodes = (*sides, *texts)
    found = _optional(*nodes) or _undefined(*nodes) or _joined(change.before[0], change.after[0], *texts)
    return found or _plain_super(*nodes) or _nullable(*nodes) or _of_library(*nodes)


def _optional(old: Node, new: Node, before: Syntax, after: Syntax) -> Widest | None:
    """Return the form of an edit that says of a parameter of Python that it may be None, as its default is."""
    tops = [next((one for one in (node, *node.ancestors()) if one.kind == DEFAULTED), None) for node in (old, new)]
    if tops[0] is None or tops[1] is None or not same(tops[0].children[0], tops[1].children[0]):
        return None
    name, _, kind, *_, value = tops[0].children
    given = _OPTIONAL.fullmatch(tops[1].children[2].tokens)
    if not value.text == tops[1].children[-1].text == "None" or given is None or kind.tokens not in given.groups():
        return None
    shared = {name.digest: Hole("W0", frozenset({name.kind})), kind.children[0].digest: Hole("W1")}
    sides = [Reader(before, shared=shared).read(tops[0]), Reader(after, shared=shared).read(tops[1])]
    return Widest(Sides((sides[0],), (sides[1],)), tops[0], tops[1], "`= None`")


def _undefined(old: Node, new: Node, before: Syntax, after: Syntax) -> Widest | None:
    """Return the form of an edit of TypeScript that says of what may be missing (`?:`) that it may be undefined."""
    tops = [
        one for node in (old, new) for one in [*node.ancestors()][:2] if any(each.text == "?" for each in one.children)
    ]
    if len(tops) != 2:
        return None
    name, (kind, given) = tops[0].child("name") or tops[0].child("pattern"), (one.child("type") for one in tops)
    if name is None or kind is None or given is None or f"{kind.tokens}|undefined" != given.tokens:
        return None
    shared = {name.digest: Hole("W0", frozenset({name.kind})), kind.children[-1].digest: Hole("W1")}
    sides = [Reader(before, shared=shared).read(tops[0]), Reader(after, shared=shared).read(tops[1])]
    return Widest(Sides((sides[0],), (sides[1],)), tops[0], tops[1], "`?:`")


def _joined(old: Node, new: Node, before: Syntax, after: Syntax) -> Widest | None:
    """Return the form of an edit that writes `else if` as `elseif`; None if it does something else."""
    leaves, others = list(old.leaves()), list(new.leaves())
    pairs = zip(leaves, others, strict=False)
    at = next((index for index, (one, other) in enumerate(pairs) if one.text != other.text), 0)
    is_rest_same = [one.text for one in leaves[at + 2 :]] == [one.text for one in others[at + 1 :]]
    clause, other = leaves[at].parent, others[at].parent
    texts = [one.text for one in (*leaves[at : at + 2], others[at])]
    if not is_rest_same or texts != ["else", "if", "elseif"] or clause is None or other is None:
        return None
    inner, first, second = clause.children[1], Reader(before), Reader(after)
    words = first.read(leaves[at]), first.read(leaves[at + 1])
    rest = Tail("WT", first.gap(inner.children[1]), " ")
    pattern = Branch(clause.kind, (words[0], Branch(inner.kind, (words[1], rest), inner.field)), clause.field)
    word, gap = second.read(others[at]), second.gap(other.children[1])
    template = Branch(other.kind, (word, Tail("WT", gap, " ")), other.field)
    return Widest(Sides((pattern,), (template,)), clause, other, "`else if`")


def _plain_super(old: Node, new: Node, before: Syntax, after: Syntax) -> Widest | None:
    """Return the form of an edit of Python that makes `super(A, self)` `super()`; None if it does something else."""
    calls = [one.parent for one in (old, new) if one.parent is not None and is_arguments(one)]
    parts = list(old.parts)
    if before.language.id != "python" or len(calls) < 2 or calls[0].children[0].text != "super":
        return None
    if len(parts) != 2 or list(new.parts):
        return None
    shared = {parts[0].digest: Hole("W0", frozenset({parts[0].kind}))}
    pattern, template = Reader(before, shared=shared).read(calls[0]), Reader(after).read(calls[1])
    return Widest(Sides((pattern,), (template,)), calls[0], calls[1], "`super`")


def _nullable(old: Node, new: Node, before: Syntax, after: Syntax) -> Widest | None:
    """Return the form of an edit of PHP that makes `T $x = null` `?T $x = null`; None if it does something else."""
    top, other = old.parent, new.parent
    if new.kind != "optional_type" or top is None or other is None or len(new.children) != 2:
        return None
    if not same(old, new.children[1]) or len(top.children) != 4 or top.children[-1].kind != "null":
        return None
    kinds = (_PLAIN_PHP, *(frozenset({child.kind}) for child in top.children[1:]))
    pairs = zip(top.children, kinds, strict=True)
    shared = {one.digest: Hole(f"W{at}", kind) for at, (one, kind) in enumerate(pairs) if one.text != "="}
    pattern, template = (Reader(syntax, shared=shared).read(one) for one, syntax in ((top, before), (other, after)))
    return Widest(Sides((pattern,), (template,)), top, other, "a parameter with the default `null`")


def _of_library(old: Node, new: Node, before: Syntax, after: Syntax) -> Widest | None:
    """Return the form of an edit that writes something else before a library's function; None if it does more."""
    calls = [node if is_call(node) else node.parent for node in (old, new)]
    heads = [_head(call) for call in calls if call is not None and is_call(call)]
    if len(heads) < 2 or calls[0] is None or calls[1] is None or not all(heads):
        return None
    tails = [call.children[len(head) :] for call, head in zip(calls, heads, strict=True) if call is not None]
    leaves = [[leaf for one in head for leaf in one.leaves() if leaf.text != "!"] for head in heads]
    names = [one[-1] for one in leaves]
    texts = ["".join(leaf.text for leaf in one[:-1]) for one in leaves]
    known = library_of(before.language.id, names[0].text, texts[0], texts[1])
    if known is None or not same(*names) or len(tails[0]) != len(tails[1]) or not all(map(same, *tails)):
        return None
    shared = {names[0].digest: Hole("W0", frozenset({names[0].kind}), words=known.names)}
    sides: list[Pattern] = []
    for call, head, syntax in zip(calls, heads, (before, after), strict=True):
        assert call is not None
        reader = Reader(syntax, shared=shared)
        first = tuple(map(reader.read, head))
        sides.append(Branch(call.kind, (*first, Tail("WT", reader.gap(call.children[len(head)]))), call.field))
    return Widest(Sides((sides[0],), (sides[1],)), calls[0], calls[1], known.words)


def _head(call: Node) -> tuple[Node, ...]:
    """Return what a call has before its arguments."""
    at = next((at for at, one in enumerate(call.children) if is_arguments(one) or one.kind == "token_tree"), 0)
    return call.children[:at]
