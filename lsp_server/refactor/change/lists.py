"""How the elements of a list before an edit correspond to those after it."""

from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import Match, SequenceMatcher

import attrs

from lsp_server.refactor.code.grammar import (
    arguments_of,
    callee_of,
    is_arguments,
    is_call,
    is_callee,
    is_container,
    is_fixed_name,
    is_list,
    is_name,
    is_named_element,
)
from lsp_server.refactor.code.node import Node, same


def elements(node: Node) -> list[Node]:
    """Return the elements of a list or the statements of a body, without brackets and the name of an element."""
    if node.kind == "jsx_opening_element":
        return [child for child in node.children if child.kind in ("jsx_attribute", "jsx_expression")]
    return node.parts


_KEYED = frozenset({"object", "dictionary", "literal_value", "hash"})


@attrs.frozen(eq=False)
class Run:
    """Elements next to each other on both sides that stay as they are: one Rest. Both are empty for room alone."""

    name: str
    before: tuple[Node, ...]
    after: tuple[Node, ...]
    before_at: int
    after_at: int


@attrs.frozen(eq=False)
class Alignment:
    """Two corresponding lists. Elements outside of the runs changed, moved, or must stay where they are."""

    before: Node
    after: Node
    runs: tuple[Run, ...]


def align(before: Sequence[Node], after: Sequence[Node]) -> list[Alignment]:
    """Return the corresponding lists of two runs of nodes."""
    old = [node for top in before for node in top.walk() if _is_aligned(node)]
    new = [node for top in after for node in top.walk() if _is_aligned(node)]
    used = {*(_values(after) - _values(before))}
    alignments: list[Alignment] = []
    # Arguments that are all the same are the same, wherever they are now.
    for one in sorted(old, key=lambda node: not any(len(elements(node)) > 1 and same(node, other) for other in new)):
        # A call that the edit put something around is still the same call.
        ranked = sorted(new, key=lambda node: not _same_callee(one, node))
        other = next((node for node in ranked if _correspond(one, node, before, after)), None)
        if other is not None:
            new.remove(other)
            alignments.append(_aligned(one, other, f"R{len(alignments)}", _outside(other, after), used))
        elif is_container(one) and _is_moved(elements(one), after):
            statements = tuple(elements(one))
            run = Run(f"R{len(alignments)}_0", statements, statements, 0, 0)
            alignments.append(Alignment(one, one, (run,)))
    return alignments


def _is_moved(statements: Sequence[Node], after: Sequence[Node]) -> bool:
    """Return whether the statements of a body are in a row after the edit, without a body of their own."""
    size = len(statements)
    rows = [after[at : at + size] for at in range(len(after) - size + 1)] if size else []
    return any(all(map(same, statements, row)) for row in rows)


def _is_aligned(node: Node) -> bool:
    """Return whether a node is a list or a body. The value of a binding is none, though Go has several in a list."""
    is_value = node.kind == "expression_list" and node.field in ("right", "value")
    return (is_list(node) or is_container(node)) and bool(node.children) and not is_value


def _correspond(before: Node, after: Node, old: Sequence[Node], new: Sequence[Node]) -> bool:
    if before.kind != after.kind:
        return False
    if is_arguments(before) and before.parent is not None and after.parent is not None:
        return _same_call(before.parent, after.parent, old, new)
    if before.kind in _KEYED:
        return _path(before, old) == _path(after, new)
    if before.kind == "jsx_opening_element":
        return before.parent is None or before in old or same(_name(before), _name(after))
    return same(before, after) or (is_list(before) and before.parent in old and after.parent in new)


def _name(element: Node) -> Node:
    return next((child for child in element.children if child.named), element)


def _same_call(before: Node, after: Node, old: Sequence[Node], new: Sequence[Node]) -> bool:
    """Return whether two calls are one before and after the edit: one callee, or both are the outermost call."""
    lists = [arguments_of(call) for call in (before, after)]
    if lists[0] is not None and lists[1] is not None and len(elements(lists[0])) > 1 and same(lists[0], lists[1]):
        return True
    if not (is_call(before) and is_call(after)):
        return before.kind == after.kind and before in old and after in new
    if lists[0] is not None and lists[1] is not None and _same_callee(lists[0], lists[1]):
        return True
    return len(old) == len(new) == 1 and before is _outermost_call(old[0]) and after is _outermost_call(new[0])


def _same_callee(before: Node, after: Node) -> bool:
    """Return whether two lists are the arguments of calls with one callee."""
    callees = [callee_of(node.parent) for node in (before, after) if node.parent is not None and is_arguments(node)]
    return len(callees) == 2 and callees[0] is not None and callees[1] is not None and same(callees[0], callees[1])


def _path(node: Node, tops: Sequence[Node]) -> list[int]:
    """Return the way to a node: the index of each child from the top."""
    way: list[int] = []
    while node.parent is not None and not any(node is top for top in tops):
        way.append(next(index for index, child in enumerate(node.parent.children) if child is node))
        node = node.parent
    return way


def _outermost_call(node: Node) -> Node | None:
    """Return the call that a statement or an `await` is about; None if there is an operator around it."""
    while not is_call(node):
        named = node.parts
        if len(named) != 1 or node.kind in ("not_operator", "unary_expression"):
            return None
        node = named[0]
    return node


def _outside(list_node: Node, tops: Sequence[Node]) -> set[int]:
    """Return the digests of all trees after the edit that are outside of a list."""
    inside = {id(node) for node in list_node.walk()}
    return {node.digest for top in tops for node in top.walk() if id(node) not in inside}


def _values(tops: Sequence[Node]) -> Counter[str]:
    return Counter(leaf.text for top in tops for leaf in top.leaves() if _is_value(leaf))


def _is_value(leaf: Node) -> bool:
    return is_name(leaf) and not is_callee(leaf) and not is_fixed_name(leaf)


def _aligned(before: Node, after: Node, name: str, outside: set[int], used: set[str]) -> Alignment:
    """Return two lists with their runs. Arguments with names that are `used` once more are in none."""
    old, new = elements(before), elements(after)
    old_keys, new_keys = [node.digest for node in old], [node.digest for node in new]
    blocks = [
        block for block in SequenceMatcher(None, old_keys, new_keys, autojunk=False).get_matching_blocks() if block.size
    ]
    if is_arguments(before) or before.kind in _KEYED:
        blocks = [part for block in blocks for part in _without(block, old, used)]
    kept = {block.a + index for block in blocks for index in range(block.size)}
    moved = any(
        index not in kept and (node.digest in outside or node.digest in new_keys) for index, node in enumerate(old)
    )
    if is_arguments(before) and moved and not all(map(is_named_element, old)):
        return Alignment(before, after, ())
    runs = [
        Run(f"{name}_{index}", tuple(old[b.a : b.a + b.size]), tuple(new[b.b : b.b + b.size]), b.a, b.b)
        for index, b in enumerate(blocks)
    ]
    if is_container(before):
        return Alignment(before, after, tuple(runs))
    if not old and not new and is_arguments(before) and _is_renamed(before, after):
        return Alignment(before, after, (Run(f"{name}_all", (), (), 0, 0),))
    old_rest = [node for index, node in enumerate(old) if index not in kept]
    new_kept = {run.after_at + index for run in runs for index in range(len(run.after))}
    new_rest = [node for index, node in enumerate(new) if index not in new_kept]
    if not old_rest and not new_rest:
        return Alignment(before, after, tuple(runs))
    if (new_rest and _is_derived(before)) or all(map(is_named_element, (*old_rest, *new_rest))):
        return Alignment(before, after, _with_room(runs, len(old), len(new), name, kept, new_kept))
    return Alignment(before, after, tuple(run for run in runs if _is_free(run, len(old), len(new))))


def _without(block: Match, elements: Sequence[Node], used: set[str]) -> Iterator[Match]:
    """Yield the parts of a block of equal elements between those that have a name which is used once more."""
    start = 0
    for index in range(block.size + 1):
        is_end = index == block.size
        if is_end or any(leaf.text in used and _is_value(leaf) for leaf in elements[block.a + index].leaves()):
            if index > start:
                yield Match(block.a + start, block.b + start, index - start)
            start = index + 1


def _is_derived(node: Node) -> bool:
    """Return whether a list says what Rust derives for a type, whatever else it derives."""
    above = node.parent
    return above is not None and above.kind == "attribute" and above.children[0].text == "derive"


def _is_renamed(before: Node, after: Node) -> bool:
    """Return whether the callees of two calls differ: then it does not matter what they are called with."""
    one, other = before.parent, after.parent
    return one is not None and other is not None and not same(one.children[0], other.children[0])


def _is_free(run: Run, old_count: int, new_count: int) -> bool:
    """Return whether more elements may be in a run of positional ones: only at the end of the list, on both sides."""
    return run.before_at + len(run.before) == old_count and run.after_at + len(run.after) == new_count


def _with_room(
    runs: Sequence[Run], old_count: int, new_count: int, name: str, kept: set[int], new_kept: set[int]
) -> tuple[Run, ...]:
    """Add empty runs around changed named elements: other elements may be there in other places."""
    result = list(runs)
    if 0 not in kept and 0 not in new_kept:
        result.insert(0, Run(f"{name}_start", (), (), 0, 0))
    if (old_count - 1 not in kept and new_count - 1 not in new_kept and (old_count or not result)) or (
        old_count and old_count - 1 not in kept and new_count - 1 in new_kept
    ):
        result.append(Run(f"{name}_end", (), (), old_count, new_count))
    return tuple(result)
