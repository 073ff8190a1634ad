"""Which syntax nodes an example changed: the smallest ones on both sides that say enough for a rule."""

from collections.abc import Sequence
from difflib import SequenceMatcher

import attrs

from lsp_server.refactor.code.annotations import is_annotation
from lsp_server.refactor.code.grammar import (
    arguments_of,
    binder_at,
    callee_of,
    is_call,
    is_container,
    is_definition,
    is_expression,
    is_import,
    is_list,
    is_several,
    is_unit,
    level,
    level_of_place,
    receiver_of,
)
from lsp_server.refactor.code.node import Node, same
from lsp_server.refactor.code.syntax import Syntax


@attrs.frozen(eq=False)
class Change:
    """A run of sibling nodes before and after an edit."""

    before: tuple[Node, ...]
    after: tuple[Node, ...]


@attrs.frozen(eq=False)
class Added:
    """A run of sibling nodes that an edit only added. `old` is what was in its place: the nodes before and after it.

    `new` are the same two nodes after the edit. None is the start or the end of the nodes' parent, `body`.
    """

    nodes: tuple[Node, ...]
    body: Node
    old_body: Node
    old: tuple[Node | None, Node | None]
    new: tuple[Node | None, Node | None]


@attrs.define
class Difference:
    """The changes of an example. `insertions` counts runs of nodes that were only added; `added` are those of them
    that may be statements."""

    changes: list[Change] = attrs.field(factory=list)
    insertions: int = 0
    added: list[Added] = attrs.field(factory=list)


def difference(before: Syntax, after: Syntax) -> Difference:
    """Return the smallest changed nodes of two texts. Changed imports are left out."""
    found = Difference()
    _compare(before.root, after.root, found)
    added = {node.digest for one in found.added for node in one.nodes if node.named}
    kept = [one for one in found.changes if not _is_added_in_macro(one) and not _is_moved(one, added)]
    found.insertions += len(found.changes) - len(kept)
    found.changes = kept
    return found


def _is_moved(change: Change, added: set[int]) -> bool:
    """Return whether some of what a change takes away was added elsewhere, so that it is not gone."""
    kept = {node.digest for node in change.after}
    return any(node.digest in added - kept for node in change.before)


def _is_added_in_macro(change: Change) -> bool:
    """Return whether a change only adds tokens to a body in a macro, where nothing says what is a statement."""
    if [node.kind for node in (*change.before, *change.after)] != ["macro_invocation"] * 2:
        return False
    bodies = [
        [body for body in top.walk() if body.kind == "token_tree" and body.children[0].text == "{"]
        for top in (*change.before, *change.after)
    ]
    pairs = [pair for pair in zip(*bodies, strict=False) if not same(*pair)]
    return bool(pairs) and len(bodies[0]) <= len(bodies[1]) and all(_has_all(*pair) for pair in pairs)


def _has_all(old: Node, new: Node) -> bool:
    """Return whether a text has all tokens of another one, in their order."""
    leaves = iter([leaf.text for leaf in new.leaves()])
    return all(leaf.text in leaves for leaf in old.leaves())


def _compare(before: Node, after: Node, found: Difference) -> None:
    if same(before, after):
        return
    if before.kind == after.kind and is_container(before):
        _compare_runs(before, after, found)
        return
    if gone := _annotations_gone(before, after):
        found.changes += [Change((one,), ()) for one in gone]
        return
    is_inside = _is_within(before, after)
    is_around = not is_inside and _is_within(after, before)
    is_whole = is_inside or (is_around and not is_expression(before))
    if not (is_inside or is_around) and is_call(before) and is_call(after):
        before = _without_inner(before, after, found)
    pairs = None if is_whole else changed_children(before, after)
    if pairs is None:
        _add(before, after, found)
    elif len(pairs) == 1:
        _compare(*pairs[0], found)
    elif _moves_bodies(pairs):
        _add(before, after, found)
    elif _is_each_apart(before, after, pairs):
        for first, second in pairs:
            _compare(first, second, found)
    else:
        _add_without_bodies(before, after, pairs, found)


def _annotations_gone(before: Node, after: Node) -> list[Node]:
    """Return the annotations, attributes or decorators of a declaration that went, if nothing else changed."""
    ones = [one for child in before.children for one in (child, *child.children) if is_annotation(one)]
    kept = {node.digest for node in after.walk()} if ones else set()
    gone = [one for one in ones if one.digest not in kept]
    if not gone:
        return []
    inside = {id(leaf) for one in gone for leaf in one.leaves()}
    rest = [leaf.text for leaf in before.leaves() if id(leaf) not in inside]
    return gone if rest == [leaf.text for leaf in after.leaves()] else []


def _is_within(inner: Node, outer: Node) -> bool:
    """Return whether an expression or a statement is a part of another one: `if (a) f()` of `if (b) if (a) f()`."""
    is_whole = is_expression(inner) or (inner.kind == outer.kind and is_unit(inner))
    return is_whole and any(same(inner, one) for one in outer.walk())


def changed_children(before: Node, after: Node) -> list[tuple[Node, Node]] | None:
    """Return the pairs of children that differ; None if the nodes are of different shapes."""
    if before.kind != after.kind or len(before.children) != len(after.children) or not before.children:
        return None
    pairs = list(zip(before.children, after.children, strict=True))
    if any(first.field != second.field for first, second in pairs):
        return None
    return [(first, second) for first, second in pairs if not same(first, second)]


def _compare_runs(before: Node, after: Node, found: Difference) -> None:
    first = [child for child in before.children if not is_import(child)]
    second = [child for child in after.children if not is_import(child)]
    matcher = SequenceMatcher(None, [node.digest for node in first], [node.digest for node in second], autojunk=False)
    for tag, low, high, new_low, new_high in matcher.get_opcodes():
        if tag == "equal":
            continue
        old, new = first[low:high], second[new_low:new_high]
        if not old:
            found.insertions += 1
            found.added.append(_added((before, first, low), (after, second, new_low), len(new)))
        elif len(old) == len(new) and all(map(_are_versions, old, new)):
            for one, other in zip(old, new, strict=True):
                _compare(one, other, found)
        else:
            _split_run(old, new, found)


def _added(old: tuple[Node, list[Node], int], new: tuple[Node, list[Node], int], count: int) -> Added:
    """Return `count` nodes of a parent that were added. Both sides are a parent, its children, and where that was."""
    (old_body, olds, at), (body, news, new_at) = old, new
    before = (_named_at(olds, at - 1), _named_at(olds, at))
    after = (_named_at(news, new_at - 1), _named_at(news, new_at + count))
    return Added(tuple(news[new_at : new_at + count]), body, old_body, before, after)


def _named_at(nodes: Sequence[Node], index: int) -> Node | None:
    """Return the node at an index, if there is one and it is no bracket."""
    return nodes[index] if 0 <= index < len(nodes) and nodes[index].named else None


def _are_versions(before: Node, after: Node) -> bool:
    """Return whether one node can be the other after an edit: some of their tokens are the same."""
    old = {leaf.text for leaf in before.leaves()}
    return before.kind == after.kind or any(leaf.text in old for leaf in after.leaves() if leaf.named)


def _split_run(old: list[Node], new: list[Node], found: Difference) -> None:
    """Pair the nodes of a definition with its new version; what remains is one change."""
    kinds = [node.kind for node in old], [node.kind for node in new]
    if len(old) < 2 or not any(map(is_definition, old)):
        found.changes.append(Change(tuple(old), tuple(new)))
        return
    for tag, low, high, new_low, new_high in SequenceMatcher(None, *kinds, autojunk=False).get_opcodes():
        if tag == "equal":
            for one, other in zip(old[low:high], new[new_low:new_high], strict=True):
                _compare(one, other, found)
        elif high > low:
            found.changes.append(Change(tuple(old[low:high]), tuple(new[new_low:new_high])))
        else:
            found.insertions += 1


def _moves_bodies(pairs: Sequence[tuple[Node, Node]]) -> bool:
    """Return whether the body of one child is that of another one after the edit."""
    old = {id(first): {node.digest for node in first.walk() if is_container(node)} for first, _ in pairs}
    return any(
        node.digest in old[id(other)]
        for first, second in pairs
        for other, _ in pairs
        if other is not first
        for node in second.walk()
        if is_container(node) and node.children
    )


def _is_each_apart(before: Node, after: Node, pairs: Sequence[tuple[Node, Node]]) -> bool:
    """Return whether each pair of children has an edit of its own: nothing moved, and each is below a call."""
    if any(is_definition(node) for node in (before, after)) and not any(is_container(first) for first, _ in pairs):
        return all(_holds_units(first, second) for first, second in pairs)
    if is_call(before) and any(not second.children for _, second in pairs):
        return False
    olds = {node.digest for first, _ in pairs for node in (first, *first.children)}
    moved = any(second.digest in olds for _, second in pairs)
    inferred = any(_is_type(first) and second.tokens in ("auto", "var") for first, second in pairs)
    return not (moved or inferred) and all(_holds_units(first, second) for first, second in pairs)


def _holds_units(before: Node, after: Node) -> bool:
    inside = Difference()
    if same(before, after):
        return True
    if before.kind != after.kind:
        return is_unit(before) and is_unit(after) and bool(before.children) and bool(after.children)
    _compare(before, after, inside)
    return all(
        change.before and before in (change.before[0], *change.before[0].ancestors()) for change in inside.changes
    )


def _add_without_bodies(before: Node, after: Node, pairs: Sequence[tuple[Node, Node]], found: Difference) -> None:
    """Add a change of a node's header, and the changes in its body by themselves."""
    bodies = [(first, second) for first, second in pairs if is_container(first) and first.kind == second.kind]
    rest = [pair for pair in pairs if pair not in bodies]
    if not bodies or not rest:
        _add(before, after, found)
        return
    for first, second in bodies:
        _compare(first, second, found)
    if is_definition(before) or len(bodies) == 1:
        _add(_with_bodies(before, bodies), after, found)
    else:
        _add(before, after, found)


def _without_inner(before: Node, after: Node, found: Difference) -> Node:
    """Add the changes inside of the arguments of a call by themselves, if arguments of the call changed too.

    Returns the call as it is with its inner changes made.
    """
    lists = [arguments_of(call) for call in (before, after)]
    old, new = lists
    if old is None or new is None or len(old.children) == len(new.children):
        return before
    new_digests = {child.digest for child in new.children}
    old_digests = {child.digest for child in old.children}
    changed = [child for child in old.children if child.digest not in new_digests and child.children]
    versions = [child for child in new.children if child.digest not in old_digests and child.children]
    pairs = [
        (one, other)
        for one, other in zip(changed, versions, strict=False)
        if one.kind == other.kind and _holds_units(one, other)
    ]
    for one, other in pairs:
        _compare(one, other, found)
    return _with_bodies(before, [(old, _with_bodies(old, pairs))]) if pairs else before


def _with_bodies(node: Node, bodies: Sequence[tuple[Node, Node]]) -> Node:
    """Return a copy of a node with some children as they are after the edit, so that only the others differ."""
    replaced = {id(first): _at(second, first) for first, second in bodies}
    children = tuple(replaced.get(id(child), child) for child in node.children)
    copy = attrs.evolve(node, children=children)
    copy.digest = hash((node.kind, "", *(child.digest for child in children)))
    for child in children:
        if id(child) in {id(one) for one in replaced.values()}:
            child.parent = copy
    return copy


def _at(node: Node, place: Node) -> Node:
    """Return a copy of a tree as though it were in another place."""
    children = tuple(
        _at(child, place) if child.start < place.start or child.end > place.end else child for child in node.children
    )
    copy = attrs.evolve(node, children=children, start=place.start, end=place.end)
    for child in children:
        child.parent = copy
    return copy


def _add(before: Node, after: Node, found: Difference) -> None:
    """Add a change of the nearest nodes that say enough for a rule."""
    whole = after  # with its parentheses
    before, after = without_parentheses(before, whole)
    while not says_enough(before, after):
        if before.parent is None or whole.parent is None or is_container(before.parent):
            break
        before, after = before.parent, (whole := whole.parent)
    if is_container(before) and before.parent is None:
        before_run = tuple(child for child in before.children if not is_import(child))
        after_run = tuple(child for child in after.children if not is_import(child))
        found.changes.append(Change(before_run, after_run))
        return
    change = Change((before,), (after,))
    if not any(other.before == change.before for other in found.changes):
        found.changes.append(change)


def says_enough(before: Node, after: Node) -> bool:
    """Return whether an edit can be of these nodes alone."""
    is_plain_list = is_list(before) and before.kind != "jsx_opening_element"
    if not is_unit(before) or not _may_follow(before, after) or is_plain_list:
        return False
    if before.parent is not None and before.parent.kind == "reference_type" and before.kind != after.kind:
        return False  # a slice is no type by itself
    owner = receiver_of(before) or receiver_of(callee_of(before) or before)
    if owner is not None and same(owner, after) and receiver_of(before.parent or before) is before:
        return False  # the member that is now one of the receiver's says which of them moved
    if before.kind == "generic_type" and before.parent is not None and is_call(before.parent):
        return False  # only where a value is made may its type's arguments be left to the compiler
    if before.kind == "predefined_type" and before.children:
        return False  # `any` is everywhere: what has this type says which one is meant
    if is_several(after) and before.parent is not None and before in before.parent.children[: binder_at(before.parent)]:
        return False  # what the value is decides whether more can be taken out of it
    if "assignment" in after.kind and "assignment" not in before.kind:
        return False  # in an argument an assignment would be a keyword argument
    if before.parent is not None and before.parent.kind == "jsx_expression":
        # If the edit puts something around the value of an attribute, the attribute says which values it means.
        return not any(same(node, before) for node in after.walk())
    # A type that the edit only adds to says nothing of which types it means: its parameter does.
    leaves = list(before.leaves())
    return not (_is_type(before) and len(leaves) == 1 and any(same(leaf, leaves[0]) for leaf in after.leaves()))


def _is_type(node: Node) -> bool:
    return node.field == "type" or node.kind in ("type", "type_annotation") or node.kind.endswith("_type")


def _may_follow(before: Node, after: Node) -> bool:
    """Return whether a node can take the place of another: a leaf can, a part of a list cannot."""
    return before.kind == after.kind or is_unit(after) or is_expression(after)


def without_parentheses(before: Node, after: Node) -> tuple[Node, Node]:
    """Return the node after the edit without parentheses that only its place needs."""
    while after.kind == "parenthesized_expression" and before.kind != after.kind:
        inner = next(iter(after.parts), None)
        if inner is None or level(inner) >= level_of_place(after):
            break
        after = inner
    return before, after
