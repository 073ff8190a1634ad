"""Which calls a changed signature leaves behind: they lack an argument for a new parameter, or have one too many.

All functions parse whole texts. Call them in a Worker, never on the event loop.
"""

import re
from collections.abc import Iterator, Sequence

import attrs

from engine.reading import read_text
from lsp_server.documents.edits import MOST_PARSED, RecentEdit
from lsp_server.languages.registry import language_for
from lsp_server.refactor.code.call import ArgumentPlace, Given, Parameter, Signature, call_of, is_star, listed_in
from lsp_server.refactor.code.declarations import Names, class_around, names_of, owner_around
from lsp_server.refactor.code.fields import fields_in
from lsp_server.refactor.code.grammar import SELF, is_access, is_name, is_parameters
from lsp_server.refactor.code.node import Node
from lsp_server.refactor.code.syntax import Syntax, parse
from lsp_server.refactor.learn.renames import own_uses
from lsp_server.refactor.places.modules import Declared, declared_as, uses_elsewhere
from lsp_server.refactor.search import Target, is_generated

_OPTIONAL = re.compile(r"default|optional|assignment_pattern")
_NOT_NAMES = frozenset({"type", "value", "right", "default_value"})
_CONSTRUCTORS = frozenset({"__init__", "constructor"})
_MOST_ELSEWHERE = 100_000
"""Characters of another file: it is parsed where a request waits, and longer ones are written by programs."""
_MOST_OF_HEAD = 300
"""Characters of a signature. More of it would take the place of the code around the call."""
_MOST_CHANGED = 2
"""Parameters that are new or gone. Of more it is a new function, whose calls the user writes anew."""


@attrs.frozen
class ChangedSignature:
    """A function whose parameters changed, or a type whose fields did, as far as its calls in any file need it.

    `forms` all end in the parameters of now. They begin in those before the newest edit of the signature, then in those
    before the edit before that one, and so on: a call may have followed some of them already. `head` is its code as one
    line.
    """

    what: Declared
    forms: tuple[Signature, ...]
    head: str = ""
    has_receiver: bool = False
    is_constructor: bool = False

    @property
    def key(self) -> tuple[str, ...]:
        """What tells it apart for the user: its file, its name and its parameters."""
        return self.what.path, self.what.owner, self.what.name, *(one.name for one in self.forms[0].new)


@attrs.frozen
class CallPlace:
    """A call that does not follow yet: where it is to change, and the parameters that lack an argument there.

    `head` is the code of what is called, if that is in another file.
    """

    place: ArgumentPlace
    parameters: tuple[str, ...]
    head: str = ""


@attrs.frozen
class SignatureChange:
    """A changed signature, and the calls of one file that do not follow it yet."""

    changed: ChangedSignature
    places: tuple[CallPlace, ...]


@attrs.frozen(eq=False)
class _Declaration:
    """What is called: the leaf of its name, the list of its parameters or fields, and the type that it belongs to."""

    name: Node
    listed: Node
    owner: str
    parameters: tuple[Parameter, ...]
    has_receiver: bool = False


def signature_change(edits: Sequence[RecentEdit], language_id: str, path: str) -> SignatureChange | None:
    """Return which signature the last edits changed, and the calls left in its file. `edits` has the newest last.

    None if the newest edit is in neither that function nor one of its calls, or adds a syntax error.
    """
    text = edits[-1].after if edits else ""
    language = language_for(language_id, path)
    if not edits or max(len(text), *(len(edit.before) for edit in edits)) > MOST_PARSED:
        return None
    now = parse(_bytes(text), language)
    if now is None:
        return None
    touched = _touched(edits)
    declared, found = list(_declarations(now)), None
    forms: list[Signature] = []
    for number in range(len(edits) - 1, -1, -1):
        near = [one for one in declared if _touches(one.listed, touched[number])]
        before = parse(_bytes(edits[number].before), language) if near else None
        if before is None:
            continue
        if now.errors > before.errors:
            break
        changes = [(one, form) for one in near if (form := _change(one, before)) is not None]
        if len(changes) > 1 or (found is not None and changes and changes[0][0] is not found):
            break
        for one, form in changes:
            found, forms = one, [*forms, form]
    return _followed(found, forms, now, touched, path) if found is not None else None


def calls_left(changed: ChangedSignature, edits: Sequence[RecentEdit], text: str, path: str) -> SignatureChange | None:
    """Return the calls of another file that do not follow a signature. `edits` are those made there since it changed.

    None if the newest of these is in none of the calls: the user does something else there.
    """
    syntax = parse(_bytes(text), language_for("", path)) if len(text) <= MOST_PARSED else None
    if syntax is None:
        return None
    names, touched = names_of(syntax), _touched(edits)
    calls = _calls(uses_elsewhere(changed.what, names, path))
    if touched and not any(_touches(call, touched[-1]) for call in calls):
        return None
    places = _places(changed, calls, names, touched)
    return SignatureChange(changed, tuple(attrs.evolve(call, head=changed.head) for call in places))


def calls_in_files(changed: ChangedSignature, targets: Sequence[Target]) -> list[int]:
    """Return the numbers of the files that have calls which do not follow. Only files with the name are parsed."""
    found: list[int] = []
    for number, target in enumerate(targets):
        if target.path == changed.what.path or not changed.what.is_of(language_for("", target.path).id):
            continue
        text = target.text if target.text is not None else read_text(target.folder, target.path)
        is_wanted = text is not None and len(text) <= _MOST_ELSEWHERE and (changed.what.name in text)
        if text is None or not is_wanted or is_generated(text):
            continue
        change = calls_left(changed, (), text, target.path)
        found += [number] if change is not None and change.places else []
    return found


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _touched(edits: Sequence[RecentEdit]) -> list[range]:
    """Return the part of the last text that each edit touched, in bytes."""
    parts: list[tuple[int, int]] = []
    for edit in edits:
        grown = edit.end - edit.old_end
        parts = [(start + grown, end + grown) if start >= edit.old_end else (start, end) for start, end in parts]
        parts.append((edit.start, edit.end))
    text = edits[-1].after if edits else ""
    return [range(len(_bytes(text[:start])), len(_bytes(text[:end])) + 1) for start, end in parts]


def _touches(node: Node, part: range) -> bool:
    return node.start < part.stop and part.start <= node.end


def _declarations(syntax: Syntax) -> Iterator[_Declaration]:
    for node in syntax.root.walk():
        is_list = is_parameters(node) and node.field not in ("receiver", "result")
        if not is_list or not node.children or node.children[0].text != "(":
            continue
        if (name := _name_of(node)) is not None:
            parameters, has_receiver = _parameters(node)
            yield _Declaration(name, node, owner_around(name), parameters, has_receiver)
    for one in fields_in(syntax):
        yield _Declaration(one.name, one.listed, "", one.parameters)


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
        has_value = any(child.field in _NOT_NAMES - {"type"} for child in one.children)
        is_optional = has_value or _OPTIONAL.search(one.kind) is not None
        names = [child.text for child in one.children if child.field == "name" and child.text] or [_first_name(one)]
        found += [Parameter(name, is_optional, is_star(one), is_named) for name in names]
        is_named = is_named or is_star(one)
    return tuple(found), has_receiver


def _first_name(parameter: Node) -> str:
    parts = [child for child in parameter.children if child.field not in _NOT_NAMES] or [parameter]
    return next((leaf.text for part in parts for leaf in part.leaves() if is_name(leaf)), parameter.tokens)


def _change(one: _Declaration, before: Syntax) -> Signature | None:
    """Return how a signature changed; None if it did not, by too much, or in a way that a call cannot follow surely."""
    key = one.name.text, one.owner, one.listed.kind
    others = [each for each in _declarations(before) if (each.name.text, each.owner, each.listed.kind) == key]
    if len(others) != 1 or others[0].has_receiver != one.has_receiver:
        return None
    form = Signature(others[0].parameters, one.parameters)
    if not 1 <= len(form.added) + len(form.removed) <= _MOST_CHANGED or any(one.is_optional for one in form.added):
        return None
    old, new = [each.name for each in form.old], [each.name for each in form.new]
    kept, still = [name for name in old if name in new], [name for name in new if name in old]
    is_clear = len({*old}) == len(old) and len({*new}) == len(new) and kept == still
    if not is_clear or any(each.is_star for each in (*form.added, *form.removed)):
        return None
    return None if _is_rename(form, kept) else form


def _is_rename(form: Signature, kept: Sequence[str]) -> bool:
    """Return whether a new parameter is where an old one was: it may be the same one with another name."""

    def at(parameters: Sequence[Parameter], one: Parameter) -> int:
        return sum(each.name in kept for each in parameters[: parameters.index(one)])

    gone = {at(form.old, one) for one in form.removed}
    return any(at(form.new, one) in gone for one in form.added)


def _followed(
    one: _Declaration, forms: Sequence[Signature], now: Syntax, touched: Sequence[range], path: str
) -> SignatureChange | None:
    """Return the calls that do not follow, if the newest edit is in the function or in one of its calls."""
    names, name = names_of(now), one.name
    is_constructor = name.text in _CONSTRUCTORS
    owner = class_around(name) if is_constructor else None
    name = (owner.child("name") if owner is not None else None) or name
    declared = names.declared(name.text).get(name.start)
    if declared is None:
        return None
    own = [*own_uses(declared, names, path), *_selves(one, names)]
    calls = _calls(own)
    holder = one.listed.parent
    if not any(_touches(node, touched[-1]) for node in (*([holder] if holder is not None else []), *calls)):
        return None
    what = declared_as(name, "" if is_constructor else one.owner, now, path)
    start = min(one.name.start, holder.start if holder is not None else one.listed.start)
    head = " ".join(now.text(start, one.listed.end).split())[:_MOST_OF_HEAD]
    changed = ChangedSignature(what, tuple(forms), head, one.has_receiver, is_constructor)
    return SignatureChange(changed, tuple(_places(changed, calls, names, touched)))


def _selves(one: _Declaration, names: Names) -> list[Node]:
    """Return where the literal of a type of Rust is written as `Self`."""
    is_type = one.listed.kind == "field_declaration_list"
    return [leaf for leaf in names.leaves("Self") if is_type and owner_around(leaf) == one.name.text]


def _calls(leaves: Sequence[Node]) -> list[Node]:
    calls = (call for leaf in leaves if (call := call_of(leaf)) is not None)
    return sorted({call.start: call for call in calls}.values(), key=lambda call: call.start)


def _places(
    changed: ChangedSignature, calls: Sequence[Node], names: Names, touched: Sequence[range]
) -> Iterator[CallPlace]:
    for call in calls:
        listed = listed_in(call)
        if listed is None or _passes_receiver(call, changed):
            continue
        given = Given(listed, names.syntax)
        is_touched = any(_touches(listed, part) for part in touched)
        form = next((form for form in changed.forms if _is_left(given, form, is_touched=is_touched)), None)
        place = given.followed(form) if form is not None else None
        if place is not None and form is not None:
            parameters = tuple(one.name for one in form.added)
            bound = tuple(_is_bound(name, call, names) for name in parameters)
            yield CallPlace(attrs.evolve(place, bound=bound), parameters)


def _is_left(given: Given, form: Signature, *, is_touched: bool) -> bool:
    """Return whether a call fits a signature as it was, and does not follow it yet.

    One that fits both may have followed already, if something was lost on the way.
    """
    if not given.fits(form.old):
        return False
    return not given.fits(form.new) or (bool(form.removed) and not is_touched)


def _passes_receiver(call: Node, changed: ChangedSignature) -> bool:
    """Return whether a method may be called by its type, with the receiver as the first argument."""
    callee = call.children[0]
    is_by_type = is_access(callee) and callee.children[0].tokens in (changed.what.owner, "Self")
    return changed.has_receiver and is_by_type and not changed.is_constructor


def _is_bound(name: str, call: Node, names: Names) -> bool:
    """Return whether a variable of this name is set before a call, and known there."""
    declared = names.declared(name).values()
    variables = [one for one in declared if one.sort in ("local", "global") and not one.is_function]
    known = [one for one in variables if one.start <= call.start and one.scope.start <= call.start < one.scope.end]
    return any(one.leaf.start < call.start for one in known)
