"""Why a place that fits a pattern must not be edited."""

import re
from collections.abc import Collection, Iterator, Sequence

import attrs

from lsp_server.refactor.code.bindings import BROUGHT, UNKNOWN, Binding, Scopes, origin, package_import, same_origin
from lsp_server.refactor.code.grammar import (
    POSTFIX,
    argument_name,
    is_container,
    is_fixed_name,
    is_import,
    is_name,
    is_named_element,
    is_statement,
)
from lsp_server.refactor.code.imports import Import, ImportEdit
from lsp_server.refactor.code.node import Node
from lsp_server.refactor.code.syntax import Syntax
from lsp_server.refactor.code.traits import traits_of
from lsp_server.refactor.code.used_names import used_names
from lsp_server.refactor.edit.render import Place
from lsp_server.refactor.places.drops import dropped_name, dropped_value
from lsp_server.refactor.places.insertion_places import node_beside, unplaced
from lsp_server.refactor.places.jumps import other_jump
from lsp_server.refactor.places.owners import other_self
from lsp_server.refactor.places.spellings import unsound
from lsp_server.refactor.places.surroundings import function_around, other_use, unmet
from lsp_server.refactor.rules.matching import Bound, Match, match_at, matches
from lsp_server.refactor.rules.pattern import Branch, Hole, Item, Leaf, Pattern, Rest, as_pattern, items, names_in
from lsp_server.refactor.rules.rule import Name, Rule
from lsp_server.refactor.rules.task import Spread
from lsp_server.refactor.rules.values import lost

_REQUIRE = re.compile(rb"= require\(['\"]")
"""A script with these can have no other imports."""
_MARKUP = frozenset({"jsx_text", "jsx_expression"})


def why_not(place: Place, scopes: Scopes, imports: ImportEdit, is_own: bool) -> str | None:
    """Return why a place must not be edited, as a phrase, or None. `imports` are those that go along with the edit.

    `is_own` says that the text is an example after its edit: what its edit took from the imports is known there.
    """
    node, rule = place.match.nodes[0], place.rule
    gone = {one.bound for one in imports.removed} if is_own else set[str]()
    for name in rule.names:
        if name.text in gone and scopes.binding(name.text, node) == UNKNOWN:
            continue
        reason = _another_thing(name, scopes.binding(name.text, node), scopes)
        if reason:
            return reason
    return (
        _import_in_use(rule, node, scopes)
        or _imported_receiver(place.match, scopes)
        or _taken_name(rule, node, scopes, imports.added)
        or _other_class(rule, node, scopes)
        or _missing_name(rule.new_names.known, node, scopes)
        or _argument_twice(place)
        or _more_arguments(place)
        or _super_as_value(place)
        or _several_values(place)
        or _lost_code(place)
        or _captured(place, scopes)
        or _between_tags(place)
        or _taken_target(rule, node, scopes)
        or unmet(rule.around.needs, node_beside(rule, place.match), rule.language)
        or other_use(rule.around.uses, node)
        or _in_quotes(rule, node)
        or _needed(place)
        or unsound(rule, place.match, scopes)
        or other_self(rule, place.match.nodes[0])
        or unplaced(rule, place.match, scopes)
        or dropped_name(rule, place.match)
        or dropped_value(rule, place.match, scopes.syntax)
        or other_jump(rule, place.match)
    )


def is_same_thing(rule: Rule, match: Match, scopes: Scopes) -> bool:
    """Return whether what looks like a place has the names of the rule, and they are the same things there."""
    node = match.nodes[0]
    if is_kept_import(rule, match):
        return False
    here = {leaf.text for leaf in node.leaves()}
    names = [name for name in rule.names if name.text in here]
    if any(_another_thing(name, scopes.binding(name.text, node), scopes) for name in names):
        return False
    return _imported_receiver(match, scopes) is None


def is_kept_import(rule: Rule, match: Match) -> bool:
    """Return whether a place is the import of what the example imports too, and uses as another thing now.

    An example that changes its import has an edit of imports, which goes along.
    """
    is_imported = any(name.binding == "import" for name in rule.names)
    return is_imported and any(map(is_import, match.nodes[0].ancestors()))


def _another_thing(name: Name, here: Binding, scopes: Scopes) -> str | None:
    text = name.text
    if here.kind in ("parameter", "local", "type parameter"):
        is_known = name.binding == "fragment" and (text in BROUGHT or scopes.is_imported(text))
        if is_known or name.binding in ("import", "unknown", "global"):
            return f"`{text}` is a {here.kind.replace('local', 'local variable')} here"
    if name.binding == "import":
        if here.kind == "global":
            return f"`{text}` is defined in this file"
        if here.kind == "unknown" and not scopes.imports_everything():
            return f"`{text}` is not imported here"
        if here.kind == "import" and not same_origin(here.source, name.source):
            return f"`{text}` is another import here"
    is_same_class = here.kind == "import" and here.source == name.source
    if name.binding == "unknown" and here.kind in ("global", "import") and not is_same_class:
        return f"`{text}` is {'defined in this file' if here.kind == 'global' else 'an import here'}"
    if name.binding in ("parameter", "local") and here.kind == "import":
        return f"`{text}` is an import here"
    return None


def _imported_receiver(match: Match, scopes: Scopes) -> str | None:
    for bound in match.bounds:
        if isinstance(bound.item, Hole) and bound.item.never_imported and bound.nodes and not bound.nodes[0].children:
            node = bound.nodes[0]
            if scopes.binding(node.text, node).kind == "import":
                return f"`{node.text}` is an import here, and a value in the example"
    return None


def _taken_name(rule: Rule, node: Node, scopes: Scopes, added: Sequence[Import]) -> str | None:
    """Return a reason if a name that the edit imports is something else at the place."""
    new = names_in(rule.template)
    for one in rule.new_names.needed:
        here = scopes.binding(one.bound, node)
        if here.kind in ("parameter", "local"):
            return f"`{one.bound}`, which the edit uses, is something else here"
        if here == UNKNOWN and not scopes.has_imports and _REQUIRE.search(scopes.syntax.data):
            return f"`{one.bound}`, which the edit uses, is not known here"
    for one in added:
        here = scopes.binding(one.bound, node)
        is_other = here.kind in ("parameter", "local", "global")
        if one.bound in new and (is_other or (here.kind == "import" and not same_origin(here.source, origin(one)))):
            return f"`{one.bound}`, which the edit imports, is something else here"
    return None


def _other_class(rule: Rule, node: Node, scopes: Scopes) -> str | None:
    """Return a reason if a class of the example's package is another one at a place."""
    for old, new in rule.new_names.follows:
        here = scopes.binding(new.bound, node)
        if here.kind == "import" and here.source != new.source:
            return f"`{new.bound}`, which the edit uses, is another import here"
        is_free = scopes.binding(old.bound, node) == UNKNOWN
        if rule.language == "php" and is_free and package_import(old.bound, scopes.syntax) != old:
            return f"`{old.bound}` is a class of another namespace here"
    return None


def unbound_beside(place: Place, places: Sequence[Place], scopes: Scopes) -> str | None:
    """Return a name that a place's edit uses, and that no other place around it binds; None if all are bound."""
    names = [name for name in place.rule.new_names.beside if scopes.binding(name, place.match.nodes[0]) == UNKNOWN]
    around = (one for one in places if one.match.start <= place.match.start and place.match.end <= one.match.end)
    known = {name for one in around if one is not place for name in one.rule.new_names.binds} if names else set[str]()
    return next((name for name in names if name not in known), None)


def _missing_name(names: Sequence[str], node: Node, scopes: Scopes) -> str | None:
    """Return a reason if the edit uses a name that something binds in the example, and nothing at the place."""
    for name in names:
        if scopes.binding(name, node) == UNKNOWN and not scopes.imports_everything():
            return f"`{name}`, which the edit uses, is not known here"
    return None


def _argument_twice(place: Place) -> str | None:
    """Return a reason if a list of the edit has a named element beside a Rest that has such an element here."""
    waiting: list[Pattern] = list(place.rule.template)
    while waiting:
        pattern = waiting.pop()
        children = pattern.children if isinstance(pattern, Branch) else ()
        waiting.extend(children)
        names = set(filter(None, map(_pattern_name, children)))
        for child in children:
            bound = place.match.variable(child.name) if isinstance(child, Rest) and names else None
            for node in bound.nodes if bound is not None else ():
                name = node.children[0].tokens if node.children else ""
                if is_named_element(node) and name in names:
                    return f"`{name}` is there already"
    return None


def _pattern_name(pattern: Pattern) -> str:
    named = ("keyword_argument", "jsx_attribute", "pair", "keyed_element", "named_argument")
    if not isinstance(pattern, Branch) or pattern.kind not in named:
        return ""
    parts = list(items(pattern.children[:1]))
    return "".join(part.text for part in parts if isinstance(part, Leaf)) if all(map(_is_leaf, parts)) else ""


def _is_leaf(item: Item) -> bool:
    return isinstance(item, Leaf)


def _more_arguments(place: Place) -> str | None:
    """Return a reason if the edit would hand another function arguments that the example did not have."""
    for bound in place.match.bounds:
        limit = bound.item.limit if isinstance(bound.item, Rest) else None
        if limit is None:
            continue
        named = [name for node in bound.nodes if (name := argument_name(node))]
        more = next((name for name in named if name not in limit.names), "")
        if more:
            return f"the example has no argument `{more}`, and another function is called with it"
    return None


def _several_values(place: Place) -> str | None:
    """Return a reason if a tuple after `%` would become one value: there it is several."""
    if any(isinstance(item, Leaf) and item.text == "%" for item in items(place.rule.template)):
        return None
    for bound in place.match.bounds:
        node = bound.nodes[0] if isinstance(bound.item, Hole) and bound.nodes else None
        beside = node.parent.children if node is not None and node.kind == "tuple" and node.parent is not None else ()
        if any(child.text == "%" for child in beside):
            return "the tuple here is several values"
    return None


def _lost_code(place: Place) -> str | None:
    text = lost(place.rule, place.match)
    return f"the edit would lose `{text}`" if text else None


def _captured(place: Place, scopes: Scopes) -> str | None:
    """Return a reason if the place uses a name that the edit binds to something else.

    Where a file names all that it uses, a name that nothing binds waits for the edit: a parameter that is not there.
    """
    names_all = traits_of(place.rule.language).names_all and not scopes.imports_everything()
    for bound in place.match.bounds:
        if isinstance(bound.item, Hole | Rest):
            for leaf in (leaf for node in bound.nodes for leaf in node.leaves()):
                if leaf.text not in place.rule.new_names.binds:
                    continue
                if leaf.text in place.rule.allowed.hides and scopes.binding(leaf.text, leaf).kind == "global":
                    continue
                if not names_all or leaf.text in BROUGHT or scopes.binding(leaf.text, leaf) != UNKNOWN:
                    return f"`{leaf.text}`, which the edit binds, is used here"
    return None


def _super_as_value(place: Place) -> str | None:
    receivers = {item.name for item in items(place.rule.template) if isinstance(item, Hole) and item.level >= POSTFIX}
    for bound in place.match.bounds:
        is_super = len(bound.nodes) == 1 and bound.nodes[0].text == "super"
        if is_super and isinstance(bound.item, Hole) and bound.item.name not in receivers:
            return "`super` is no value"
    return None


def _between_tags(place: Place) -> str | None:
    """Return a reason if an element of JSX would be closed by another name, or a value would become a text."""
    node, parent = place.match.nodes[0], place.match.nodes[0].parent
    if not traits_of(place.rule.language).is_script or parent is None or not place.rule.template:
        return None
    kinds = {kind for item in place.rule.template for kind in _kinds(item, place.match)}
    is_child = parent.kind in ("jsx_element", "jsx_fragment")
    if node.kind == "jsx_opening_element" and is_child and node.children[-1].text == ">":
        names = [_tag(side[0]) if len(side) == 1 else () for side in (place.rule.pattern, place.rule.template)]
        return None if names[0] and names[0] == names[1] else "its closing tag is apart from it"
    if is_child and node.kind != "jsx_closing_element" and not all(kind.startswith("jsx_") for kind in kinds):
        return "it is between tags here, and the edit is a value"
    is_markup = is_child or parent.kind == "jsx_attribute" or node.kind in _MARKUP
    return None if is_markup or not kinds & _MARKUP else "it is a value here, and the edit is between tags"


def _kinds(pattern: Pattern, match: Match) -> Iterator[str]:
    """Yield the kinds of the nodes that a pattern of a template is at a place."""
    if isinstance(pattern, Branch | Leaf):
        yield pattern.kind
    elif isinstance(pattern, Hole | Rest) and (bound := match.variable(pattern.name)) is not None:
        yield from (node.kind for node in bound.nodes)


def _tag(pattern: Pattern) -> tuple[str, ...]:
    """Return the name of a tag; empty for what is none."""
    if not isinstance(pattern, Branch) or pattern.kind != "jsx_opening_element" or len(pattern.children) < 2:
        return ()
    return tuple(
        item.text if isinstance(item, Leaf) else f"${item.name}"
        for item in items(pattern.children[1:2])
        if isinstance(item, Leaf | Hole)
    )


def _in_quotes(rule: Rule, node: Node) -> str | None:
    """Return a reason if a string around the place ends with a quote that the edit would write."""
    if not any(above.kind == "interpolation" for above in node.ancestors()):
        return None
    quotes = {item.text[-1:] for item in items(rule.template) if isinstance(item, Leaf) and item.text[-1:] in "\"'"}
    for above in node.ancestors():
        if "string" in above.kind and above.children and above.children[-1].text[-1:] in quotes:
            return "the edit writes quotes, and the place is inside a string with the same quotes"
    return None


def _needed(place: Place) -> str | None:
    """Return a reason if a deletion would leave a statement without its body: `if (x) return;` would be `if (x)`."""
    node = place.match.nodes[0]
    parent = node.parent
    is_body = parent is not None and is_statement(node) and not is_container(parent) and "label" not in parent.kind
    if place.rule.template or not is_body or parent is None or parent.parent is None:
        return None
    return f"the {parent.kind.replace('_', ' ')} around it needs it"


def hidden_names(bound: Sequence[str], match: Match, scopes: Scopes) -> frozenset[str]:
    """Return the globals of an example's file that its code uses, and that its edit binds to something else."""
    inside = (bound.nodes for bound in match.bounds if isinstance(bound.item, Hole | Rest))
    used = {leaf.text: leaf for nodes in inside for node in nodes for leaf in node.leaves() if is_name(leaf)}
    return frozenset(name for name in bound if name in used and scopes.binding(name, used[name]).kind == "global")


def done_spans(rule: Rule, syntax: Syntax, own: Collection[tuple[int, int]]) -> "Done":
    """Return the places that have the edit of a rule already. `own` are those of the example, as bytes."""
    template = tuple(as_pattern(one) for one in rule.template)
    if not template or all(isinstance(one, Hole | Rest) for one in template):
        return Done((), tuple(own))
    found = tuple(matches(template, syntax)) if rule.repeats or own else ()
    mine = [one for one in found if (one.start, one.end) in own]
    known = {(one.start, one.end) for one in mine}
    return Done(found if rule.repeats else tuple(mine), tuple(span for span in own if span not in known))


@attrs.frozen(eq=False)
class Done:
    """The places that fit a rule's template, and parts that an example edited in another way."""

    matches: tuple[Match, ...]
    parts: tuple[tuple[int, int], ...]

    def has(self, match: Match) -> bool:
        """Return whether a place is a part of the template, and not of what a variable of it is."""
        if any(start <= match.start and match.end <= end for start, end in self.parts):
            return True
        around = (done for done in self.matches if done.start <= match.start and match.end <= done.end)
        return any(not any(_is_in_variable(match, bound) for bound in done.bounds) for done in around)


def _is_in_variable(match: Match, bound: Bound) -> bool:
    return isinstance(bound.item, Hole | Rest) and bound.start <= match.start and match.end <= bound.end


def _taken_target(rule: Rule, node: Node, scopes: Scopes) -> str | None:
    """Return a reason if a name that a place would bind besides is in use there, or would be read by nothing."""
    if not isinstance(rule.task, Spread):
        return None
    function = function_around(node)
    around = function if function is not None else next(reversed([*node.ancestors()]), node)
    for name in rule.task.unread:
        if name != "_" and any(_is_used(rule, leaf, scopes, around) for leaf in around.leaves() if leaf.text == name):
            return f"`{name}`, which the edit binds, is in use here"
        if name != "_" and function is not None and traits_of(rule.language).must_read:
            return f"nothing here reads `{name}`, which the edit binds"
    return None


def _is_used(rule: Rule, leaf: Node, scopes: Scopes, around: Node) -> bool:
    """Return whether a leaf is a name of a function, and not one of a function inside of it."""
    if not is_name(leaf) or is_fixed_name(leaf) or _is_other_place(rule, leaf):
        return False
    owner = scopes.owner(leaf.text, leaf)
    return owner is None or owner is around or around not in owner.ancestors()


def _is_other_place(rule: Rule, leaf: Node) -> bool:
    """Return whether a name is bound by a place that has the edit: where no declaration is needed it may be again."""
    template = as_pattern(rule.template[0])
    if traits_of(rule.language).declares or not isinstance(template, Branch):
        return False
    return any(above.kind == template.kind and match_at(template, above) for above in leaf.ancestors())


def _import_in_use(rule: Rule, node: Node, scopes: Scopes) -> str | None:
    """Return why a place of a rule of imports must not be edited, as a phrase."""
    if rule.task == "removal":
        *_, root = node.ancestors()
        bound = {leaf.text for leaf in node.leaves() if is_name(leaf)}
        used = sorted(bound & used_names(root, scopes))
        if used or any("wildcard" in one.kind or one.text == "*" for one in node.walk()):
            return f"`{used[0]}` is used here" if used else "it may bring names that are used here"
    return None
