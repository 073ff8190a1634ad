"""The widest form of a rule: only what the edit changes is constant. `assert.X` becomes `require.X` for any X."""

import itertools
import os
import re
from collections.abc import Iterator, Sequence

import attrs

from lsp_server.refactor.change.difference import Change, changed_children
from lsp_server.refactor.change.generalise import Side, Sides
from lsp_server.refactor.change.libraries import library_of
from lsp_server.refactor.code.declarations import names_of
from lsp_server.refactor.code.grammar import (
    SELF,
    arguments_of,
    callee_of,
    is_access,
    is_arguments,
    is_call,
    is_callee,
    is_expression,
    is_keyword_literal,
    is_list,
    is_name,
    is_operator,
    receiver_of,
)
from lsp_server.refactor.code.node import Node, same
from lsp_server.refactor.code.syntax import Syntax
from lsp_server.refactor.places.doubts import is_syntax_alone
from lsp_server.refactor.places.spellings import DEFAULTED, is_null_macro, is_sound
from lsp_server.refactor.rules.pattern import Branch, Hole, Leaf, Pattern, Rest, Tail, items, texts_of, variables
from lsp_server.refactor.rules.rule import Rule, changed_words, has_same_sides

_RAISE = re.compile(r"^(raise|throw)_(statement|expression)$")
_OPTIONAL = re.compile(r"(?:\w+\.)?Optional\[(.+)\]|(?:\w+\.)?Union\[(.+),None\]|(.+)\|None")
_PLAIN_PHP = frozenset({"primitive_type", "named_type"})
_LIST = re.compile(r"array|list|tuple|dictionary")


@attrs.frozen(eq=False)
class Widest:
    """The widest form of a change: its sides, and the nodes that they were made from.

    `words` say what its places have in common.
    """

    sides: Sides
    before: Node
    after: Node
    words: str


def widest(change: Change, before: Syntax, after: Syntax) -> Widest | None:
    """Return the widest form of a change, whatever is around and inside; None if nothing would tell what is meant."""
    if len(change.before) != 1 or len(change.after) != 1:
        return None
    old, new = _smallest(change.before[0], change.after[0])
    if (optional := _optional(old, new, before, after)) is not None:
        return optional
    joined = _joined(change.before[0], change.after[0], before, after) or _plain_super(old, new, before, after)
    if (known := joined or _nullable(old, new, before, after) or _of_library(old, new, before, after)) is not None:
        return known
    leaf = None
    is_word = is_null_macro(before.language.id, old.text, new.tokens)
    if not old.children and not _is_telling(old) and not is_word and old.parent is not None and new.parent is not None:
        if is_callee(old) and not any(same(old, one) for one in new.walk()):
            return None  # another function with the same arguments: the rule itself says so
        old, new, leaf = old.parent, new.parent, new
    if is_arguments(old) and is_arguments(new):
        return _more_arguments(old, new, before, after)
    is_same_list = _is_same_list(old, new)
    if old.parent is None or (is_list(old) and not is_same_list):
        return None
    by_keywords = _by_keywords(old, new, before, after)
    if by_keywords is not None:
        return by_keywords
    shared = _shared(old, new)
    receiver = old.children[0].digest if old.children and (is_access(old) or is_call(old)) else 0
    if is_access(old) and receiver in shared and old.children[-1].digest not in shared:
        return None  # another member of any receiver: the rule itself says so
    # A receiver that stays tells what is meant if nothing else does.
    kind = old.kind if is_same_list else ""
    others = {digest: hole for digest, hole in shared.items() if digest != receiver}
    of_value = _of_value(old, new, before)
    for holes in (of_value or shared, shared, others):
        pattern = _Reader(before, shared=holes, list_kind=kind).read(old)
        template = _Reader(after, shared=holes, list_kind=kind, fixed=leaf).read(new)
        old_items, holes_there = list(items((pattern,))), variables((pattern,))
        words = [item.text for item in old_items if isinstance(item, Leaf) and _is_word(item)]
        is_wide = bool(holes_there) or len(old_items) == 1
        if words and is_wide and pattern != template and variables((template,)) <= holes_there:
            return Widest(Sides((pattern,), (template,)), old, new, _quoted(words))
    return None


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
    sides = [_Reader(before, shared=shared).read(tops[0]), _Reader(after, shared=shared).read(tops[1])]
    return Widest(Sides((sides[0],), (sides[1],)), tops[0], tops[1], "`= None`")


def _of_value(old: Node, new: Node, before: Syntax) -> dict[int, Hole]:
    """Return the receiver of a member that stays, as a variable, and its arguments; empty if it is no value.

    A member of a value may be meant of other values too, and what a module or a class has is its own.
    """
    callee = callee_of(old) if is_call(old) else None
    access = callee if callee is not None and is_access(callee) else old
    value, there = receiver_of(access), [node.digest for node in new.walk()]
    if value is None or access.digest not in there or not _is_value(value, before):
        return {}
    holes = {value.digest: Hole("W0", never_imported=True)}
    arguments = arguments_of(old) if is_call(old) else None
    if arguments is not None and there.count(arguments.digest) == 1:
        holes[arguments.digest] = Hole("W1", frozenset({arguments.kind}))
    return holes


def _is_value(receiver: Node, syntax: Syntax) -> bool:
    """Return whether a receiver is a local variable, or a member of the object itself."""
    names = [leaf for leaf in receiver.leaves() if leaf.named]
    if not names or names[0].text in SELF:
        return len(names) > 1
    found = names_of(syntax).resolved(names[0])
    return found is not None and found.sort == "local"


def sure_and_wide(rules: Sequence[Rule]) -> tuple[tuple[Rule, ...], tuple[Rule, ...]]:
    """Return the widest forms that two examples have, which are sure, and the others.

    Examples that have the same names say no more than the rule with these names. One of `var`, which may
    mean another scope, says that its function is meant.
    """
    sure: list[Rule] = []
    wide: list[Rule] = []
    for one in rules:
        if any(has_same_sides(one, other) for other in (*sure, *wide)):
            continue
        alike = [other for other in rules if has_same_sides(one, other)]
        names = {other.values.names for other in alike}
        if is_sound(one) or (len(alike) > 1 and (not one.values.names or len(names) > 1)):
            sides = Sides(one.pattern, one.template)
            home = None if is_sound(one) else home_of(sides, [other.path for other in alike])
            is_near = len(alike) == 1 and "var" in changed_words(one)[0]
            around = attrs.evolve(one.around, home=home, position=None)
            sure.append(attrs.evolve(one, wide="", is_syntax=is_near, around=around))
        else:
            wide.append(one)
    return tuple(sure), tuple(wide)


def home_of(sides: Sides, paths: Sequence[str]) -> str | None:
    """Return the folder that examples share, if their code says no more than its syntax; None for all folders.

    A file that is in no folder is a home of its own.
    """
    if not is_syntax_alone(sides.pattern, sides.template) or not all(paths):
        return None
    folders = [path.rpartition("/")[0] for path in paths]
    shared = os.path.commonpath(folders) if all(folders) else ""
    return shared or (paths[0] if len({*paths}) == 1 else None)


def _smallest(old: Node, new: Node) -> tuple[Node, Node]:
    """Return the smallest nodes that an edit changed, before and after it."""
    while True:
        pairs = changed_children(old, new)
        if pairs is None or len(pairs) != 1:
            return old, new
        old, new = pairs[0]


def _by_keywords(old: Node, new: Node, before: Syntax, after: Syntax) -> Widest | None:
    """Return the form of an edit that only changes the keywords at the start of a node; None if it does more."""
    tail = list(
        itertools.takewhile(lambda pair: same(*pair), zip(old.children[::-1], new.children[::-1], strict=False))
    )
    sizes = [len(node.children) - len(tail) for node in (old, new)]
    starts = [node.children[:size] for node, size in zip((old, new), sizes, strict=True)]
    if old.kind != new.kind or not tail or not all(_is_keyword(one) for start in starts for one in start):
        return None
    if len(tail) > 1 and _is_keyword(old.children[sizes[0]]):
        sizes = [size + 1 for size in sizes]  # a keyword that stays says what is meant
    elif not sizes[0]:
        return None
    sides: list[Pattern] = []
    for node, size, syntax in zip((old, new), sizes, (before, after), strict=True):
        reader = _Reader(syntax)
        first = tuple(reader.read(child) for child in node.children[:size])
        gap = reader.gap(node.children[size]) if first else ""
        sides.append(Branch(node.kind, (*first, Tail("WT", gap, " ")), node.field))
    words = texts_of(sides[:1])
    return Widest(Sides((sides[0],), (sides[1],)), old, new, _quoted(words))


def _more_arguments(old: Node, new: Node, before: Syntax, after: Syntax) -> Widest | None:
    """Return the form of an edit that adds arguments after those of a call; None if it does more.

    Other functions of its module are meant, or other errors that are raised.
    """
    kept = len(list(old.parts))
    calls = [one.parent for one in (old, new) if one.parent is not None]
    is_more = kept and len(list(new.parts)) > kept and all(map(same, old.parts, new.parts))
    callee = callee_of(calls[0]) if len(calls) == 2 else None
    if callee is None or not is_more:
        return None
    tops, varying = calls, callee
    if is_access(callee) and is_name(callee.children[0]) and callee.children[0].text not in SELF:
        varying = callee.children[-1]
    elif all(call.parent is not None and _RAISE.search(call.parent.kind) for call in calls):
        tops = [call.parent for call in calls if call.parent is not None]
    else:
        return None
    holes = {varying.digest: Hole("W0", frozenset({varying.kind}))}
    if tops is calls and is_access(callee) and _is_value(callee.children[0], before):
        holes = {callee.children[0].digest: Hole("W0", never_imported=True)}
    sides = [
        _Reader(syntax, shared=holes, arguments=one, kept=kept).read(top)
        for top, one, syntax in zip(tops, (old, new), (before, after), strict=True)
    ]
    words = [item.text for item in items(sides[:1]) if isinstance(item, Leaf) and _is_word(item)]
    return Widest(Sides((sides[0],), (sides[1],)), tops[0], tops[1], _quoted(words))


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
    inner, first, second = clause.children[1], _Reader(before), _Reader(after)
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
    pattern, template = _Reader(before, shared=shared).read(calls[0]), _Reader(after).read(calls[1])
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
    pattern, template = (_Reader(syntax, shared=shared).read(one) for one, syntax in ((top, before), (other, after)))
    return Widest(Sides((pattern,), (template,)), top, other, "a parameter with the default `null`")


def covers(wide: Rule, rule: Rule) -> bool:
    """Return whether the widest form makes a rule needless: it is sure where that is not, or writes `else if` as
    `elseif`: in a chain of them any other rule would hide some."""
    return changed_words(wide)[1] == {"elseif"} or (rule.is_syntax and is_sound(wide))


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
        reader = _Reader(syntax, shared=shared)
        first = tuple(map(reader.read, head))
        sides.append(Branch(call.kind, (*first, Tail("WT", reader.gap(call.children[len(head)]))), call.field))
    return Widest(Sides((sides[0],), (sides[1],)), calls[0], calls[1], known.words)


def _head(call: Node) -> tuple[Node, ...]:
    """Return what a call has before its arguments."""
    at = next((at for at, one in enumerate(call.children) if is_arguments(one) or one.kind == "token_tree"), 0)
    return call.children[:at]


def _quoted(words: Sequence[str]) -> str:
    return f"`{' '.join(words)}`"


def _is_keyword(node: Node) -> bool:
    leaves = list(node.leaves())
    return len(leaves) == 1 and ((not leaves[0].named and leaves[0].text.isalpha()) or leaves[0].text == "_")


def _is_same_list(old: Node, new: Node) -> bool:
    """Return whether two nodes are the same list in another spelling: `array(1, 2)` and `[1, 2]`."""
    parts, others = list(old.parts), list(new.parts)
    is_list_kind = old.kind == new.kind and _LIST.search(old.kind) is not None
    return is_list_kind and len(parts) == len(others) and all(map(same, parts, others))


def _is_telling(leaf: Node) -> bool:
    """Return whether a token alone says where an edit belongs: a keyword, `NULL`, and no name or number."""
    return is_keyword_literal(leaf) or (not leaf.named and leaf.text.isalpha() and leaf.field != "operator")


def _is_word(leaf: Leaf) -> bool:
    return leaf.text[:1].isalpha() or (leaf.text != "!" and is_operator(leaf.text))


def _shared(old: Node, new: Node) -> dict[int, Hole]:
    """Return a variable for each child that is there before and after the edit, by its digest."""
    there = [node for node in new.walk() if node.named]
    holes: dict[int, Hole] = {}
    for child in old.children:
        if child.named and any(same(child, other) for other in there):
            is_member = is_name(child) and (is_access(old) or is_call(old))
            is_type = child.kind.endswith("type") and child.field != "type"
            is_any = is_expression(child) and not is_type and not is_member
            holes.setdefault(child.digest, Hole(f"W{len(holes)}", frozenset() if is_any else frozenset({child.kind})))
    return holes


@attrs.define
class _Reader(Side):
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
