"""The arguments of one call or of one literal of a type, and what they become when the parameters are others."""

import re
from collections.abc import Sequence

import attrs

from lsp_server.refactor.code.grammar import (
    argument_name,
    arguments_of,
    callee_of,
    is_access,
    is_call,
    is_callee,
    is_container,
    is_named_element,
    receiver_of,
)
from lsp_server.refactor.code.node import Node, same
from lsp_server.refactor.code.syntax import Syntax

_STAR = re.compile(r"splat|rest_|variadic|spread|unpack|base_field")
_LITERALS = frozenset({"composite_literal", "struct_expression"})
_KEYED = frozenset({"keyed_element", "field_initializer", "shorthand_field_initializer"})
_BY_NAME = {"python": "{}=", "go": "{}: ", "rust": "{}: "}
"""How an argument or the value of a field is given by name, where it can be."""
_KEYWORDS = frozenset({"python"})
"""Languages where any parameter of a function can be given by name."""


@attrs.frozen
class Parameter:
    """A parameter of a function apart from its receiver, or a field. `is_named`: it can be given by name only."""

    name: str
    is_optional: bool = False
    is_star: bool = False
    is_named: bool = False


@attrs.frozen
class ArgumentPlace:
    """Where a call is to change: `pieces` with an argument between each two take the place of `start` to `end`.

    Offsets count characters. There is one piece more than arguments; a call that only loses some has one. `bound` says
    of each argument whether a variable with the name of its parameter is known there. `has_shorthand` says that a field
    whose value is a variable of its name is written as that name alone.
    """

    start: int
    end: int
    pieces: tuple[str, ...]
    bound: tuple[bool, ...] = ()
    has_shorthand: bool = False

    def written(self, arguments: Sequence[str]) -> str:
        """Return the text with these arguments."""
        text = self.pieces[0]
        for argument, piece in zip(arguments, self.pieces[1:], strict=True):
            text = (text.removesuffix(f"{argument}: ") if self.has_shorthand else text) + argument + piece
        return text


@attrs.frozen
class Signature:
    """What a function can be called with before and after an edit, in their order; or the fields of a type."""

    old: tuple[Parameter, ...]
    new: tuple[Parameter, ...]

    @property
    def added(self) -> tuple[Parameter, ...]:
        """The parameters that only the new list has."""
        known = {one.name for one in self.old}
        return tuple(one for one in self.new if one.name not in known)

    @property
    def removed(self) -> tuple[Parameter, ...]:
        """The parameters that only the old list has."""
        known = {one.name for one in self.new}
        return tuple(one for one in self.old if one.name not in known)


def element_name(node: Node) -> str:
    """Return the name of an element that has one: a key, a keyword, an attribute; else ""."""
    return node.children[0].tokens.strip("\"'") if is_named_element(node) and node.children else ""


def is_star(node: Node) -> bool:
    """Return whether a parameter or an argument stands for any number of others."""
    return any(_STAR.search(kind) for kind in (node.kind, *(child.kind for child in node.children)))


def call_of(leaf: Node) -> Node | None:
    """Return the call of a function by its name, which may be that of a member; or the literal of a type."""
    node = leaf
    while node.parent is not None and is_access(node.parent) and node.parent.children[0] is not node:
        node = node.parent
    is_literal = node.parent is not None and node.parent.kind in _LITERALS and node.field in ("type", "name")
    return node.parent if is_literal or is_callee(node) else None


def listed_in(call: Node) -> Node | None:
    """Return the list of arguments of a call, or of a literal its fields; None if nothing says all of them."""
    listed = call.child("body") if call.kind in _LITERALS else arguments_of(call)
    is_known = listed is not None and listed.children and not any(_STAR.search(one.kind) for one in listed.parts)
    return listed if is_known else None


@attrs.frozen
class _Hole:
    """An argument that is to be written; `label` is what gives it by name, "" without."""

    label: str = ""


_Item = Node | _Hole


@attrs.frozen(eq=False)
class Given:
    """The arguments of a call, in its list."""

    listed: Node
    syntax: Syntax

    @property
    def _all(self) -> list[Node]:
        return self.listed.parts

    @property
    def _is_keyed(self) -> bool:
        """Whether it is the literal of a type whose fields have names."""
        return any(one.kind in _KEYED for one in self._all)

    def fits(self, parameters: Sequence[Parameter]) -> bool:
        """Return whether a function with these parameters can be called so."""
        plain = [one.name for one in parameters if not (one.is_star or one.is_named)]
        names = [name for one in self._all if (name := _name(one))]
        count = len(self._all) - len(names)
        filled = [*plain[:count], *names]
        needed = {one.name for one in parameters if not (one.is_optional or one.is_star)}
        has_names = {*names} <= {one.name for one in parameters} or any(one.is_star for one in parameters)
        return count <= len(plain) and len({*filled}) == len(filled) and needed <= {*filled} and has_names

    def followed(self, signature: Signature) -> ArgumentPlace | None:
        """Return how a call follows; None if it has nothing to change, or nothing says how."""
        items = self._without(signature)
        for one in signature.added:
            if not self._add(items, one, signature):
                return None
        return self._place(items) if items != self._all else None

    def _without(self, signature: Signature) -> list[_Item]:
        """Return the arguments without those of the removed parameters."""
        positional = [one for one in self._all if not _name(one)]
        gone: list[Node] = []
        for parameter in signature.removed:
            at = signature.old.index(parameter)
            is_positional = not parameter.is_named and at < len(positional)
            gone += positional[at : at + 1] if is_positional else []
            gone += [one for one in self._all if _name(one) == parameter.name and not is_positional]
        return [one for one in self._all if not any(one is other for other in gone)]

    def _add(self, items: list[_Item], parameter: Parameter, signature: Signature) -> bool:
        """Put a hole for a parameter among the arguments. Return whether it can be given."""
        positional = [at for at, one in enumerate(items) if not (one.label if isinstance(one, _Hole) else _name(one))]
        at, language = signature.new.index(parameter), self.syntax.language.id
        label = _BY_NAME.get(language, "").format(parameter.name)
        is_literal = self.listed.kind in ("literal_value", "field_initializer_list")
        if self._is_keyed:
            # A field comes behind the one that the type has before it.
            before = signature.new[at - 1].name if at else ""
            items.insert(next((n + 1 for n, one in enumerate(items) if _is_of(one, before)), len(items)), _Hole(label))
            return True
        if not parameter.is_named and at < len(positional):
            items.insert(positional[at], _Hole())
            return True
        is_by_name = parameter.is_named or len(positional) < len(items) or at > len(positional)
        if is_by_name and (language not in _KEYWORDS or is_literal):
            return False
        items.append(_Hole(label if is_by_name else ""))
        return True

    def _place(self, items: Sequence[_Item]) -> ArgumentPlace | None:
        """Return the smallest part of the text to replace so that a call has these arguments."""
        old = self._all
        first = next((at for at, (one, other) in enumerate(zip(old, items, strict=False)) if one is not other), None)
        first = min(len(old), len(items)) if first is None else first
        behind = 0
        while behind < min(len(old), len(items)) - first and old[-1 - behind] is items[-1 - behind]:
            behind += 1
        middle, gone = items[first : len(items) - behind], old[first : len(old) - behind]
        separator = self._separator(old[len(old) - behind] if behind else old[-1]) if old else ", "
        before = after = ""
        if not old:
            start = end = self.listed.children[0].end
        elif middle and gone:
            start, end = gone[0].start, gone[-1].end
        elif middle and behind:
            start, end, after = old[first].start, old[first].start, separator
        elif middle:
            start, end, before = old[-1].end, old[-1].end, separator
        elif behind:
            start, end = gone[0].start, old[len(old) - behind].start
        elif first:
            start, end = old[first - 1].end, gone[-1].end
        else:
            start, end = self.listed.children[0].end, self.listed.children[-1].start
        if any(start <= comment.start < end for comment in self.syntax.comments):
            return None
        pieces = [before]
        for number, one in enumerate(middle):
            between = separator if number else ""
            if isinstance(one, _Hole):
                pieces[-1] += between + one.label
                pieces.append("")
            else:
                pieces[-1] += between + self.syntax.text(one.start, one.end)
        pieces[-1] += after
        has_shorthand = self.syntax.language.id == "rust" and self._is_keyed
        return ArgumentPlace(self._character(start), self._character(end), tuple(pieces), has_shorthand=has_shorthand)

    def _character(self, byte: int) -> int:
        return len(self.syntax.text(0, byte))

    def _separator(self, argument: Node) -> str:
        """Return what is between arguments: those of a call may be on lines of their own."""
        syntax = self.syntax
        start = syntax.data.rfind(b"\n", 0, argument.start) + 1
        if start == 0 or syntax.data[start : argument.start].strip():
            return ", "
        newline = "\r\n" if syntax.data[start - 2 : start] == b"\r\n" else "\n"
        return f",{newline}{syntax.text(start, argument.start)}"


def _name(argument: Node) -> str:
    """Return the name that an argument or the value of a field is given by; "" if it is not given by name."""
    return next(argument.leaves()).text if argument.kind in _KEYED else argument_name(argument)


def _is_of(item: _Item, name: str) -> bool:
    return item.label.startswith(f"{name}:") if isinstance(item, _Hole) else _name(item) == name


def is_alone(node: Node) -> bool:
    """Return whether a value is a statement. At the end of a block of Rust it is the result."""
    above = node.parent
    if above is None or not is_container(above):
        return above is None or above.kind == "expression_statement"
    return not any(one.kind in ("function_item", "closure_expression") for one in node.ancestors())


def uses_up(new: Node, old: Node) -> bool:
    """Return whether new code hands a value over to a call (`check(f())`, `expect(f()).toBe(1)`).

    So does what says that nothing uses it: `(void)f()`.
    """
    if [leaf.text for leaf in new.leaves() if leaf.text not in "()"][:1] == ["void"]:
        return True
    given = [one for one in new.children if not (is_callee(one) or one.field in ("object", "receiver"))]
    if is_call(new) and any(same(old, one) for part in given for one in part.walk()):
        return True
    receiver = receiver_of(callee_of(new) or new) or receiver_of(new)
    return receiver is not None and uses_up(receiver, old)
