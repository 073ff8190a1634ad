"""Which names of this file the names of pasted code stand for: what is at their place in calls of the same function."""

import attrs

from lsp_server.refactor.bindings import BROUGHT, UNKNOWN, Scopes
from lsp_server.refactor.grammar import (
    is_access,
    is_arguments,
    is_call,
    is_callee,
    is_definition,
    is_expression,
    is_fixed_name,
    is_name,
    receiver_of,
)
from lsp_server.refactor.imports import imports_of
from lsp_server.refactor.node import Node, same
from lsp_server.refactor.output import ByteEdit
from lsp_server.refactor.syntax import Syntax
from lsp_server.refactor.variables import SELF


class NoNames(Exception):
    """A name of the pasted code is unknown here, and stands for no name of the file, or for several."""


def name_edits(syntax: Syntax, start: int, end: int) -> list[ByteEdit]:
    """Return the replacements of names between two bytes that the file does not know. Raises NoNames."""
    return _Names(syntax, start, end).edits()


@attrs.define
class _Names:
    syntax: Syntax
    start: int
    end: int
    scopes: Scopes = attrs.field(init=False)
    members: set[str] = attrs.field(init=False)
    """The members that the rest of the file uses."""
    free: set[str] = attrs.field(init=False)
    """The names that nothing binds in the rest of the file either, such as those of other files of a package."""

    def __attrs_post_init__(self) -> None:
        self.scopes = Scopes(self.syntax, imports_of(self.syntax))
        names = [leaf for leaf in self.syntax.root.leaves() if is_name(leaf) and not self._is_pasted(leaf)]
        self.members = {leaf.text for leaf in names if is_fixed_name(leaf)}
        others = [leaf for leaf in names if not is_fixed_name(leaf)]
        self.free = {leaf.text for leaf in others if self.scopes.binding(leaf.text, leaf) == UNKNOWN}

    def edits(self) -> list[ByteEdit]:
        pasted = [node for node in self.syntax.root.walk() if self._is_pasted(node)]
        unknown = [node for node in pasted if self._is_unknown(node)]
        if not unknown:
            return []
        pairs: list[tuple[Node, Node]] = []
        for call in pasted:
            if is_call(call) and self._has_unknown(call):
                found = [pair for other in self._alike(call) for pair in self._aligned(call, other) or ()]
                for node, stand_in in found:
                    if not any(same(node, one) and same(stand_in, other) for one, other in pairs):
                        pairs.append((node, stand_in))
        for index, (node, stand_in) in enumerate(pairs):
            if any(same(node, one) or same(stand_in, other) for one, other in pairs[:index]):
                raise NoNames
        edits = {
            ByteEdit(node.start, node.end, self.syntax.text(stand_in.start, stand_in.end))
            for node in pasted
            for one, stand_in in pairs
            if same(node, one) and is_expression(node)
        }
        if any(not any(edit.start <= node.start and node.end <= edit.end for edit in edits) for node in unknown):
            raise NoNames
        return list(edits)

    def _is_pasted(self, node: Node) -> bool:
        return self.start <= node.start and node.end <= self.end

    def _is_unknown(self, leaf: Node) -> bool:
        """Return whether a leaf is a name that nothing in the file binds, or a member that only the paste has."""
        if not is_name(leaf) or leaf.parent is None or leaf.text in BROUGHT:
            return False
        if leaf.text in SELF:
            return self.scopes.binding(leaf.text, leaf) == UNKNOWN and leaf.kind == "identifier"
        if is_fixed_name(leaf):
            receiver = receiver_of(leaf.parent)
            is_own = receiver is not None and receiver is not leaf and receiver.text in SELF
            return is_own and not is_definition(leaf.parent) and leaf.text not in self.members
        return self.scopes.binding(leaf.text, leaf) == UNKNOWN and leaf.text not in self.free

    def _has_unknown(self, node: Node) -> bool:
        return any(self._is_unknown(leaf) for leaf in node.leaves())

    def _alike(self, call: Node) -> list[Node]:
        """Return the other calls of what has the same name: those in the same function if there are any."""
        found = [
            node
            for node in self.syntax.root.walk()
            if is_call(node) and not self._is_pasted(node) and _called(node) == _called(call)
        ]
        function = next((above for above in call.ancestors() if is_definition(above)), None)
        near = [node for node in found if any(above is function for above in node.ancestors())]
        return near if function is not None and near else found

    def _aligned(self, node: Node, other: Node) -> list[tuple[Node, Node]] | None:
        """Return what stands for the unknown names of a node in another one; None if they are not alike."""
        if not self._has_unknown(node):
            return [] if not is_fixed_name(node) or same(node, other) else None
        if node.kind == other.kind and node.children and len(node.children) == len(other.children):
            parts = [self._aligned(one, two) for one, two in zip(node.children, other.children, strict=True)]
            if all(part is not None for part in parts):
                return [pair for part in parts if part is not None for pair in part]
        if _is_path(node) and _is_path(other) and not is_fixed_name(node) and not is_callee(node):
            return [(node, other)] if self._is_known_at(other, node) else None
        return None

    def _is_known_at(self, stand_in: Node, place: Node) -> bool:
        """Return whether a name of the file is the same thing where the pasted code is."""
        first = next(stand_in.leaves())
        here, there = (self.scopes.binding(first.text, node) for node in (place, first))
        return here == there and (here != UNKNOWN or first.text in SELF)


def _is_path(node: Node) -> bool:
    """Return whether a node is a name, or members of a name: `self.client`."""
    return is_name(node) or (is_access(node) and all(is_name(leaf) or not leaf.named for leaf in node.leaves()))


def _called(call: Node) -> tuple[str, int]:
    """Return the last name of what a call calls, and how many arguments it has."""
    arguments = next((child for child in call.children if is_arguments(child)), None)
    names = [leaf.text for child in call.children if child is not arguments for leaf in child.leaves() if leaf.named]
    count = len([child for child in arguments.children if child.named]) if arguments is not None else 0
    return (names[-1] if names else "", count)
