"""Which calls a changed signature leaves behind: they lack an argument for a new parameter, or have one too many.

All functions parse whole texts. Call them in a Worker, never on the event loop.
"""

import re
from collections.abc import Iterator, Sequence

import attrs

from lsp_server.documents.edits import MOST_PARSED, RecentEdit
from lsp_server.languages.registry import language_for
from lsp_server.refactor.declarations import Names, class_around, names_of, owner_around
from lsp_server.refactor.grammar import (
    SELF,
    argument_name,
    arguments_of,
    is_access,
    is_callee,
    is_name,
    is_parameters,
)
from lsp_server.refactor.renames import own_uses
from lsp_server.refactor.syntax import Node, Syntax, parse

_STAR = re.compile(r"splat|rest_|variadic|spread|unpack")
_OPTIONAL = re.compile(r"default|optional|assignment_pattern")
_NOT_NAMES = frozenset({"type", "value", "right", "default_value"})
_CONSTRUCTORS = frozenset({"__init__", "constructor"})
_KEYWORDS = frozenset({"python"})
"""Languages where any parameter can be given by name as `name=value`."""


@attrs.frozen
class Parameter:
    """A parameter of a function, apart from its receiver. `is_named`: it can be given by name only."""

    name: str
    is_optional: bool = False
    is_star: bool = False
    is_named: bool = False


@attrs.frozen
class ArgumentPlace:
    """Where a call is to change: `before`, an argument and `after` take the place of characters `start` to `end`.

    `is_bound` says that a variable with the name of the parameter is known there. Of a removed parameter `before` and
    `after` are empty, and so is the argument.
    """

    start: int
    end: int
    before: str = ""
    after: str = ""
    is_bound: bool = False


@attrs.frozen
class SignatureChange:
    """A function whose signature got or lost one parameter, and the calls in its file that do not follow yet."""

    function: str
    parameter: str
    is_added: bool
    places: tuple[ArgumentPlace, ...]


@attrs.frozen(eq=False)
class _Signature:
    """A function with a name: the leaf of the name, the list of its parameters, and the type that it belongs to."""

    name: Node
    listed: Node
    owner: str
    parameters: tuple[Parameter, ...]
    has_receiver: bool


def signature_change(edits: Sequence[RecentEdit], language_id: str, path: str) -> SignatureChange | None:
    """Return which signature the last edits changed, and the calls left. `edits` has the newest last.

    None if the newest edit is in neither that function nor one of its calls, or adds a syntax error.
    """
    text = edits[-1].after if edits else ""
    language = language_for(language_id, path)
    if not edits or max(len(text), *(len(edit.before) for edit in edits)) > MOST_PARSED:
        return None
    now = parse(_bytes(text), language)
    if now is None:
        return None
    touched = [range(len(_bytes(text[:start])), len(_bytes(text[:end])) + 1) for start, end in _touched(edits)]
    signatures = list(_signatures(now))
    for number in range(len(edits) - 1, -1, -1):
        near = [one for one in signatures if _touches(one.listed, touched[number])]
        before = parse(_bytes(edits[number].before), language) if near else None
        if before is None:
            continue
        if now.errors > before.errors:
            return None
        changes = [change for one in near if (change := _Change.of(one, before)) is not None]
        if changes:
            return changes[0].found(now, touched, path) if len(changes) == 1 else None
    return None


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _touched(edits: Sequence[RecentEdit]) -> list[tuple[int, int]]:
    """Return the part of the last text that each edit touched, in characters."""
    parts: list[tuple[int, int]] = []
    for edit in edits:
        grown = edit.end - edit.old_end
        parts = [(start + grown, end + grown) if start >= edit.old_end else (start, end) for start, end in parts]
        parts.append((edit.start, edit.end))
    return parts


def _touches(node: Node, part: range) -> bool:
    return node.start < part.stop and part.start <= node.end


def _signatures(syntax: Syntax) -> Iterator[_Signature]:
    for node in syntax.root.walk():
        is_list = is_parameters(node) and node.field not in ("receiver", "result")
        if not is_list or not node.children or node.children[0].text != "(":
            continue
        if (name := _name_of(node)) is not None:
            parameters, has_receiver = _parameters(node)
            yield _Signature(name, node, owner_around(name), parameters, has_receiver)


def _name_of(listed: Node) -> Node | None:
    """Return the name of the function that has a list of parameters."""
    above = listed.parent
    for holder in (above, above.parent if above is not None else None):
        found = (holder.child("name") or holder.child("declarator")) if holder is not None else None
        if found is not None:
            return found if is_name(found) else None
    return None


def _parameters(listed: Node) -> tuple[tuple[Parameter, ...], bool]:
    """Return the parameters of a list, and whether a receiver comes before them."""
    found: list[Parameter] = []
    has_receiver = is_named = False
    for at, one in enumerate(listed.parts):
        if one.tokens in ("*", "/"):
            is_named = one.tokens == "*"
            continue
        if at == 0 and (one.kind == "self_parameter" or next(one.leaves()).text in SELF):
            has_receiver = True
            continue
        kinds = {one.kind, *(child.kind for child in one.children)}
        is_star = any(map(_STAR.search, kinds))
        has_value = any(child.field in _NOT_NAMES - {"type"} for child in one.children)
        is_optional = has_value or _OPTIONAL.search(one.kind) is not None
        names = [child.text for child in one.children if child.field == "name" and child.text] or [_first_name(one)]
        found += [Parameter(name, is_optional, is_star, is_named) for name in names]
        is_named = is_named or is_star
    return tuple(found), has_receiver


def _first_name(parameter: Node) -> str:
    parts = [child for child in parameter.children if child.field not in _NOT_NAMES] or [parameter]
    return next((leaf.text for part in parts for leaf in part.leaves() if is_name(leaf)), parameter.tokens)


@attrs.frozen(eq=False)
class _Change:
    """A signature after an edit, its parameters before it, and where the one is that one of both lists has alone."""

    signature: _Signature
    old: tuple[Parameter, ...]
    at: int
    is_added: bool

    @classmethod
    def of(cls, one: _Signature, before: Syntax) -> "_Change | None":
        """Return how a signature changed; None if it did not by one parameter, or nothing says which one it was."""
        name, owner = one.name.text, one.owner
        others = [other for other in _signatures(before) if (other.name.text, other.owner) == (name, owner)]
        if len(others) != 1 or others[0].has_receiver != one.has_receiver:
            return None
        old = others[0].parameters
        is_added = len(one.parameters) > len(old)
        more, fewer = (one.parameters, old) if is_added else (old, one.parameters)
        names, left = [each.name for each in more], [each.name for each in fewer]
        at = next((at for at, name in enumerate(names) if names[:at] + names[at + 1 :] == left), -1)
        if at < 0 or len(set(names)) < len(names) or more[at].is_star or (is_added and more[at].is_optional):
            return None
        return cls(one, old, at, is_added)

    @property
    def parameter(self) -> Parameter:
        """The parameter that is new, or gone."""
        return (self.signature.parameters if self.is_added else self.old)[self.at]

    def found(self, now: Syntax, touched: Sequence[range], path: str) -> SignatureChange | None:
        """Return the calls that do not follow, if the newest edit is in the function or in one of its calls."""
        names, name = names_of(now), self.signature.name
        owner = class_around(name) if name.text in _CONSTRUCTORS else None
        name = (owner.child("name") if owner is not None else None) or name
        one = names.declared(name.text).get(name.start)
        calls = [call for leaf in own_uses(one, names, path) if (call := _call_of(leaf)) is not None] if one else []
        holder = self.signature.listed.parent
        own = [*([holder] if holder is not None else []), *calls]
        if not any(_touches(node, touched[-1]) for node in own):
            return None
        places = [place for call in calls if (place := self._place(call, names, touched)) is not None]
        return SignatureChange(name.text, self.parameter.name, self.is_added, tuple(places))

    def _place(self, call: Node, names: Names, touched: Sequence[range]) -> ArgumentPlace | None:
        listed = arguments_of(call)
        if listed is None or any(_STAR.search(one.kind) for one in listed.parts) or self._passes_receiver(call):
            return None
        given = _Given(listed)
        if not given.fits(self.old) or (self.is_added and given.fits(self.signature.parameters)):
            return None
        syntax = names.syntax
        if not self.is_added:
            # A call that fits both may have followed already.
            is_done = given.fits(self.signature.parameters) and any(_touches(listed, part) for part in touched)
            return None if is_done else given.without(self.at, self.parameter, syntax)
        bound = _is_bound(self.parameter.name, call, names)
        return given.room(self.at, self.parameter, syntax, is_bound=bound)

    def _passes_receiver(self, call: Node) -> bool:
        """Return whether a method may be called by its type, with the receiver as the first argument."""
        callee = call.children[0]
        is_by_type = is_access(callee) and callee.children[0].tokens in (self.signature.owner, "Self")
        return self.signature.has_receiver and is_by_type and self.signature.name.text not in _CONSTRUCTORS


@attrs.frozen(eq=False)
class _Given:
    """The arguments of a call."""

    listed: Node

    @property
    def all(self) -> list[Node]:
        return self.listed.parts

    @property
    def positional(self) -> list[Node]:
        return [one for one in self.all if not argument_name(one)]

    @property
    def names(self) -> list[str]:
        return [name for one in self.all if (name := argument_name(one))]

    def fits(self, parameters: Sequence[Parameter]) -> bool:
        """Return whether a function with these parameters can be called so."""
        plain = [one.name for one in parameters if not (one.is_star or one.is_named)]
        count, names = len(self.positional), self.names
        filled = [*plain[:count], *names]
        needed = {one.name for one in parameters if not (one.is_optional or one.is_star)}
        has_names = {*names} <= {one.name for one in parameters} or any(one.is_star for one in parameters)
        return count <= len(plain) and len({*filled}) == len(filled) and needed <= {*filled} and has_names

    def room(self, at: int, parameter: Parameter, syntax: Syntax, *, is_bound: bool) -> ArgumentPlace | None:
        """Return where the argument of a new parameter belongs; None where it cannot be given."""
        positional, given = self.positional, self.all
        if not parameter.is_named and at < len(positional):
            start = _character(positional[at].start, syntax)
            return ArgumentPlace(start, start, "", _separator(positional[at], syntax), is_bound)
        is_by_name = parameter.is_named or bool(self.names) or at > len(positional)
        if is_by_name and syntax.language.id not in _KEYWORDS:
            return None
        name = f"{parameter.name}=" if is_by_name else ""
        if not given:
            start = _character(self.listed.children[0].end, syntax)
            return ArgumentPlace(start, start, name, "", is_bound)
        start = _character(given[-1].end, syntax)
        return ArgumentPlace(start, start, _separator(given[-1], syntax) + name, "", is_bound)

    def without(self, at: int, parameter: Parameter, syntax: Syntax) -> ArgumentPlace | None:
        """Return what a call loses with a parameter; None if it does not give it, or a comment would go too."""
        given, positional = self.all, self.positional
        named = next((one for one in given if argument_name(one) == parameter.name), None)
        gone = positional[at] if not parameter.is_named and at < len(positional) else named
        if gone is None:
            return None
        index = next(index for index, one in enumerate(given) if one is gone)
        if len(given) == 1:
            start, end = self.listed.children[0].end, self.listed.children[-1].start
        elif index + 1 < len(given):
            start, end = gone.start, given[index + 1].start
        else:
            start, end = given[index - 1].end, gone.end
        if any(start <= comment.start < end for comment in syntax.comments):
            return None
        return ArgumentPlace(_character(start, syntax), _character(end, syntax))


def _call_of(leaf: Node) -> Node | None:
    """Return the call of a function by its name, which may be that of a member."""
    node = leaf
    while node.parent is not None and is_access(node.parent) and node.parent.children[0] is not node:
        node = node.parent
    return node.parent if is_callee(node) else None


def _character(byte: int, syntax: Syntax) -> int:
    return len(syntax.text(0, byte))


def _separator(argument: Node, syntax: Syntax) -> str:
    """Return what is between arguments: those of a call may be on lines of their own."""
    start = syntax.data.rfind(b"\n", 0, argument.start) + 1
    if start == 0 or syntax.data[start : argument.start].strip():
        return ", "
    newline = "\r\n" if syntax.data[start - 2 : start] == b"\r\n" else "\n"
    return f",{newline}{syntax.text(start, argument.start)}"


def _is_bound(name: str, call: Node, names: Names) -> bool:
    """Return whether a variable of this name is set before a call, and known there."""
    declared = names.declared(name).values()
    variables = [one for one in declared if one.sort in ("local", "global") and not one.is_function]
    known = [one for one in variables if one.start <= call.start and one.scope.start <= call.start < one.scope.end]
    return any(one.leaf.start < call.start for one in known)
