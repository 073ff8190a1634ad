"""Why a place that fits a pattern must not be edited."""

from collections.abc import Iterable, Sequence

import attrs

from lsp_server.refactor.bindings import UNKNOWN, Binding, Scopes, is_scope
from lsp_server.refactor.grammar import is_named_element
from lsp_server.refactor.imports import origin, same_origin
from lsp_server.refactor.matching import Match, matches
from lsp_server.refactor.node import Node
from lsp_server.refactor.pattern import Branch, Hole, Import, Leaf, Name, Pattern, Rest, Rule, as_pattern, items
from lsp_server.refactor.render import Place
from lsp_server.refactor.syntax import Syntax


def why_not(place: Place, scopes: Scopes, added: Sequence[Import]) -> str | None:
    """Return why a place must not be edited, as a phrase, or None. `added` are the imports that the edit may add."""
    node = place.match.nodes[0]
    for name in place.rule.names:
        reason = _another_thing(name, scopes.binding(name.text, node), scopes)
        if reason:
            return reason
    return (
        _imported_receiver(place.match, scopes)
        or _taken_name(place.rule, node, scopes, added)
        or _missing_name(place.rule, node, scopes)
        or _argument_twice(place)
        or _await_outside(place.rule, node)
        or _in_quotes(place.rule, node)
    )


def _another_thing(name: Name, here: Binding, scopes: Scopes) -> str | None:
    text = name.text
    if here.kind in ("parameter", "local") and name.binding in ("import", "unknown", "global"):
        return f"`{text}` is a {'parameter' if here.kind == 'parameter' else 'local variable'} here"
    if here.kind in ("parameter", "local") and name.binding == "fragment" and scopes.is_imported(text):
        return f"`{text}` is a {'parameter' if here.kind == 'parameter' else 'local variable'} here"
    if name.binding == "import":
        if here.kind == "global":
            return f"`{text}` is defined in this file"
        if here.kind == "unknown" and not scopes.imports_everything():
            return f"`{text}` is not imported here"
        if here.kind == "import" and not same_origin(here.source, name.source):
            return f"`{text}` is another import here"
    if name.binding == "unknown" and here.kind in ("global", "import"):
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
    new = {item.text for item in items(rule.template) if isinstance(item, Leaf) and item.named}
    for one in added:
        here = scopes.binding(one.bound, node)
        is_other = here.kind in ("parameter", "local", "global")
        if one.bound in new and (is_other or (here.kind == "import" and not same_origin(here.source, origin(one)))):
            return f"`{one.bound}`, which the edit imports, is something else here"
    return None


def _missing_name(rule: Rule, node: Node, scopes: Scopes) -> str | None:
    """Return a reason if the edit uses a name that something binds in the example, and nothing at the place."""
    for name in rule.brings:
        if scopes.binding(name, node) == UNKNOWN and not scopes.imports_everything():
            return f"`{name}`, which the edit uses, is not known here"
    return None


def _argument_twice(place: Place) -> str | None:
    for rest, names in _names_beside_rests(place.rule):
        bound = place.match.variable(rest)
        for node in bound.nodes if bound is not None else ():
            name = _element_name(node)
            if name in names:
                return f"`{name}` is there already"
    return None


def _names_beside_rests(rule: Rule) -> Iterable[tuple[str, set[str]]]:
    """Yield the Rests of the template with the named elements that the template has beside them."""
    waiting: list[Pattern] = list(rule.template)
    while waiting:
        pattern = waiting.pop()
        if isinstance(pattern, Branch):
            waiting.extend(pattern.children)
            names = {name for child in pattern.children if (name := _pattern_name(child))}
            for child in pattern.children:
                if isinstance(child, Rest) and names:
                    yield child.name, names


def _pattern_name(pattern: Pattern) -> str:
    named = ("keyword_argument", "jsx_attribute", "pair", "keyed_element", "named_argument")
    if not isinstance(pattern, Branch) or pattern.kind not in named:
        return ""
    first = next(items((pattern,)), None)
    return first.text if isinstance(first, Leaf) else ""


def _element_name(node: Node) -> str:
    return next(node.leaves()).text if is_named_element(node) else ""


def _await_outside(rule: Rule, node: Node) -> str | None:
    if not rule.adds_await:
        return None
    for above in node.ancestors():
        if is_scope(above) and any(word in above.kind for word in ("function", "method", "lambda", "arrow")):
            is_async = any(child.text == "async" for child in above.children)
            return None if is_async else "the edit adds `await`, and the function here is not async"
    return "the edit adds `await`, and there is no function here"


def _in_quotes(rule: Rule, node: Node) -> str | None:
    """Return a reason if a string around the place ends with a quote that the edit would write."""
    if not any(above.kind == "interpolation" for above in node.ancestors()):
        return None
    quotes = {item.text[-1:] for item in items(rule.template) if isinstance(item, Leaf) and item.text[-1:] in "\"'"}
    for above in node.ancestors():
        if "string" in above.kind and above.children and above.children[-1].text[-1:] in quotes:
            return "the edit writes quotes, and the place is inside a string with the same quotes"
    return None


def done_spans(rule: Rule, syntax: Syntax) -> "Done":
    """Return the places that have the edit of a rule already."""
    template = tuple(as_pattern(one) for one in rule.template)
    if not rule.repeats or not template or all(isinstance(one, Hole | Rest) for one in template):
        return Done(())
    return Done(tuple(matches(template, syntax)))


@attrs.frozen(eq=False)
class Done:
    """The places that fit a rule's template."""

    matches: tuple[Match, ...]

    def has(self, match: Match) -> bool:
        """Return whether a place is a part of the template, and not of what a variable of it is."""
        for done in self.matches:
            if not (done.start <= match.start and match.end <= done.end):
                continue
            variable = any(
                isinstance(bound.item, Hole | Rest) and bound.start <= match.start and match.end <= bound.end
                for bound in done.bounds
            )
            if not variable:
                return True
        return False
