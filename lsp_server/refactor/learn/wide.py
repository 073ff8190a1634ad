"""The widest form of a rule: only what the edit changes is constant. `assert.X` becomes `require.X` for any X."""

import itertools
import os
import re
from collections.abc import Sequence

import attrs

from lsp_server.refactor.change.difference import Change, changed_children
from lsp_server.refactor.change.generalise import Sides
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
from lsp_server.refactor.learn.forms import Reader, Widest, known_form
from lsp_server.refactor.places.doubts import is_syntax_alone
from lsp_server.refactor.places.spellings import is_null_macro, is_sound, is_undefined
from lsp_server.refactor.rules.pattern import Branch, Hole, Leaf, Pattern, Tail, items, texts_of, variables
from lsp_server.refactor.rules.rule import Rule, changed_words, has_same_sides

_RAISE = re.compile(r"^(raise|throw)_(statement|expression)$")
_LIST = re.compile(r"array|list|tuple|dictionary")


def widest(change: Change, before: Syntax, after: Syntax) -> Widest | None:
    """Return the widest form of a change, whatever is around and inside; None if nothing would tell what is meant."""
    if len(change.before) != 1 or len(change.after) != 1:
        return None
    old, new = _smallest(change.before[0], change.after[0])
    if (known := known_form(change, (old, new), (before, after))) is not None:
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
        pattern = Reader(before, shared=holes, list_kind=kind).read(old)
        template = Reader(after, shared=holes, list_kind=kind, fixed=leaf).read(new)
        old_items, holes_there = list(items((pattern,))), variables((pattern,))
        words = [item.text for item in old_items if isinstance(item, Leaf) and _is_word(item)]
        is_wide = bool(holes_there) or len(old_items) == 1
        if words and is_wide and pattern != template and variables((template,)) <= holes_there:
            return Widest(Sides((pattern,), (template,)), old, new, _quoted(words))
    return None


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
            is_meant = is_sound(one) and not is_undefined(one)  # authors write that in some folders
            home = None if is_meant else home_of(sides, [other.path for other in alike])
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
        reader = Reader(syntax)
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
        Reader(syntax, shared=holes, arguments=one, kept=kept).read(top)
        for top, one, syntax in zip(tops, (old, new), (before, after), strict=True)
    ]
    words = [item.text for item in items(sides[:1]) if isinstance(item, Leaf) and _is_word(item)]
    return Widest(Sides((sides[0],), (sides[1],)), tops[0], tops[1], _quoted(words))


def covers(wide: Rule, rule: Rule) -> bool:
    """Return whether the widest form makes a rule needless: it is sure where that is not, or writes `else if` as
    `elseif`: in a chain of them any other rule would hide some."""
    return changed_words(wide)[1] == {"elseif"} or is_undefined(wide) or (rule.is_syntax and is_sound(wide))


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
