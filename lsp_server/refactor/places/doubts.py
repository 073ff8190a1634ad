"""Why a place that fits a rule may still mean something else: it is shown, and edited only if the user takes it."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Literal

import attrs

from lsp_server.refactor.change.difference import Change
from lsp_server.refactor.change.free_names import Brought
from lsp_server.refactor.change.generalise import Sides
from lsp_server.refactor.change.overrides import overrides_known
from lsp_server.refactor.code.annotations import is_annotation_kind, is_of_one
from lsp_server.refactor.code.bindings import BROUGHT, UNKNOWN, Scopes, imports_of, is_relative_import
from lsp_server.refactor.code.declarations import is_class, names_of
from lsp_server.refactor.code.grammar import (
    SELF,
    callee_of,
    is_access,
    is_call,
    is_callee,
    is_named_element,
    is_operator,
    is_statement,
    receiver_of,
)
from lsp_server.refactor.code.node import Node
from lsp_server.refactor.code.syntax import Syntax
from lsp_server.refactor.code.traits import traits_of
from lsp_server.refactor.places.insertion_places import other_meaning
from lsp_server.refactor.places.messages import words_around
from lsp_server.refactor.places.namesakes import is_in_class, namesake, other_generic, own_method
from lsp_server.refactor.places.owners import other_owner
from lsp_server.refactor.places.parameters import (
    added_parameters,
    is_asked_for,
    is_unasked,
    parameter_names,
    parameters,
)
from lsp_server.refactor.places.positions import PLAIN_KIND, has_role, is_redundant, other_position
from lsp_server.refactor.places.receivers import has_called, receiver_types, receivers_of
from lsp_server.refactor.places.surroundings import COMPARED, function_around
from lsp_server.refactor.rules.matching import Match
from lsp_server.refactor.rules.pattern import Branch, Hole, Leaf, Pattern, Rest, items, names_in, texts_of
from lsp_server.refactor.rules.rule import Rule, changed_words
from lsp_server.refactor.rules.values import other_value

_ENOUGH = 2
_PLAIN_TYPES = {name for name in BROUGHT if name.islower()} | {"String", "Object", "any"}
# Words of any code; others, such as "assert" and "except", say what is meant.
_COMMON = frozenset(
    {"for", "in", "of", "as", "if", "else", "while", "do", "then", "end", "return", "async", "await"}
    | {"def", "function", "func", "fn", "fun", "class", "type", "struct", "var", "let", "const", "new"}
    | {"static", "public", "private", "protected", "pub", "export", "default", "catch"}
)
_SEVERAL_WORDS = re.compile(r"^__|[a-z0-9][A-Z]|[A-Za-z0-9]_[A-Za-z]")
_CONVERSION = re.compile(
    r"(to|as|into)_?(string|str|owned|vec|array|list|bytes|json|int|float|number|iter|ref|mut|dict|map|set)", re.I
)
_KEYWORD_LITERAL = frozenset({"none", "true", "false", "nil", "null", "undefined"})
_OPTIONAL = frozenset({"?.", "?->", "?", "!", "!!", "&."})
_COMPARE_ALL = frozenset({"python", "cpp", "csharp", "kotlin", "rust", "scala", "swift"})
"""Languages where a type says what its values are equal to."""
_OTHERS = frozenset({"vendor", "vendored", "third_party", "third-party", "node_modules", "bower_components"})
_TYPE = re.compile(r"^(struct|class|enum|interface|trait|union|type)_(item|declaration|definition|specifier)$")


@attrs.frozen
class Beside:
    """Which places are edited beside the sure ones; the others are left out.

    The wide ones that are "apart" share no line with others, so that a user can choose each alone.
    """

    doubtful: bool = True
    wide: Literal["", "apart", "all"] = ""

    def takes(self, rule: Rule) -> bool:
        """Return whether the doubtful places of a rule are edited."""
        return bool(self.wide) if rule.wide else self.doubtful


SURE = Beside(doubtful=False)
ALL_BUT_WIDE = Beside()
TO_CHOOSE = Beside(wide="apart")


def is_syntax_alone(pattern: Sequence[Pattern], template: Sequence[Pattern]) -> bool:
    """Return whether no name, literal, rare word or repeated code says what is meant: `for $X in $Y`, `int`.

    The parameters that the pattern itself declares say nothing, nor does the start of a function's name where the edit
    changes its parameters. That a value may be missing (`?.`, `!`) is said by its type alone. The same tokens with
    other white space are sure: `else if` becomes `elseif`.
    """
    if _tokens(pattern) == _tokens(template):
        return False
    if not template and is_annotation_kind(getattr(pattern[0], "kind", "")) and is_of_one(texts_of(pattern)):
        return True
    if _is_optional(pattern, template):
        return True
    is_prefix_enough = parameters(pattern) == parameters(template)
    holes = [item.name for item in items(pattern) if isinstance(item, Hole)]
    repeated = len(holes) - len({*holes})
    return repeated + sum(_says(one, frozenset(), is_prefix_enough) for one in pattern) < _ENOUGH


def assumed_names(change: Change, sides: Sides, brought: Sequence[Brought], after: Syntax) -> list[str]:
    """Return the names that an edit reads, that nothing binds, and that are hardly known in another file.

    `brought` are those of `names_brought`.
    """
    language = after.language.id
    traits, scopes, there = traits_of(language), Scopes(after, imports_of(after)), change.after[:1]
    moved = _requalified(sides) - BROUGHT - traits.instances if traits.names_all else set[str]()
    found = [name for name in sorted(moved) for node in there if scopes.binding(name, node) == UNKNOWN]
    return found + [name for name, leaf, is_bound in brought if not is_bound and _is_assumed(leaf, language)]


def _is_assumed(leaf: Node, language: str) -> bool:
    """Return whether a name that nothing binds is hardly known in another file: a value, a part of a namespace."""
    if traits_of(language).names_all or language == "go" or leaf.parent is None:
        return False  # a file says there what it uses
    return leaf.parent.kind == "namespace_name" or (
        leaf.text[:1].islower()
        and (not is_callee(leaf) or leaf.parent.kind == "macro_invocation")
        and not any(one.text == "::" for one in leaf.parent.children)
    )


def doubt_of(
    rule: Rule, match: Match, scopes: Scopes, own: Sequence[tuple[int, int]] | None, *, path: str, has_errors: bool
) -> str:
    """Return why a place may mean something else than the example, as a phrase; "" if nothing says so.

    `own` are the parts of this text that are examples; None if it has none. `path` is its file's, and `has_errors` says
    that its syntax has errors.
    """
    node, syntax = match.nodes[0], scopes.syntax
    if rule.wide and not (
        is_redundant(rule, node) or overrides_known(rule, node, syntax) or has_role(rule, node, syntax)
    ):
        return rule.wide
    if own is None and (why := _other_file(rule, match.nodes[0], path)):
        return why
    is_free = is_asked_for(rule, match) or is_unasked(rule)
    is_own = bool(own) and _is_near(match.nodes[0], own or ())
    if rule.is_syntax and not is_own and not is_free:
        return "only its syntax is as in the example"
    if why := _other_words(rule, match, scopes, is_own=is_own):
        return why
    if other := other_meaning(rule, match, own or (), is_own=is_own):
        return other
    if name := other_generic(rule, match, own):
        return f"`{name}` is a type parameter of another declaration"
    is_short = _has_short_name(rule)
    receivers = rule.values.receivers
    is_other = bool(receivers) and not receivers_of(match) <= receivers
    types = receiver_types(match, syntax) if is_other else frozenset[str]()
    is_other = is_other and not (types and types <= receivers)
    if is_other and (is_short or _is_other_member(rule)):
        return "its receiver is another one than in the example, and may have another type"
    gone, come, _ = changed_words(rule)
    becomes_static = "this" in gone and not come.isdisjoint({"self", "static"})  # as `self::f()` of PHP
    if why := other_owner(rule, match.nodes[0], scopes.syntax):
        return why
    is_other_file = own is None and bool(rule.path) and not is_same_file(path, rule.path)
    is_other_class = is_other_file or (bool(own) and bool(rule.path) and not is_in_class(match.nodes[0], own or ()))
    if (is_other or becomes_static or is_other_class) and (name := own_method(rule, match)):
        return f"`{name}` is a method of its own class"
    if is_other_file and (why := namesake(rule, match, scopes, has_package=_is_beside(path, rule.path))):
        return why
    elsewhere = _elsewhere(rule, match, scopes) if own is None and not rule.is_syntax else ""
    if rule.language == "python" and _is_evaluated_union(rule, match.nodes[0]):
        return "it is evaluated here, where not all versions know `|` of types"
    is_attribute = rule.around.position == "an attribute"
    is_method = is_short and not is_attribute and bool(receivers_of(match) or _is_method(match.nodes[0]))
    if other := elsewhere or other_value(rule, match, has_short_name=is_method):
        return other
    if has_errors and len(match.bounds) > 1 and _is_broken(match.nodes[0]):
        return "a syntax error is beside it"
    return other_position(rule, match.nodes[0])


def _other_file(rule: Rule, node: Node, path: str) -> str:
    """Return why a place may mean something else in a file that has no example; "" if its path does not say so."""
    if rule.path and (vendored := _OTHERS.intersection(path.split("/")) - {*rule.path.split("/")}):
        return f"`{min(vendored)}` has code of others"
    if rule.around.home is not None and not _is_within(path, rule.around.home):
        return "it is in another folder than the examples, and only its syntax is as in them"
    if rule.task == "relative" and not _is_beside(path, rule.path):
        return "a relative import means another module in another folder"
    if rule.task == "package" and is_relative_import(node, rule.language):
        return "a module of these files may export other things than a package"
    return ""


def _is_beside(path: str, other: str) -> bool:
    """Return whether two files are in one folder. Their paths may begin at different folders."""
    short, long = sorted((path.rpartition("/")[0], other.rpartition("/")[0]), key=len)
    return bool(other) and (short == long or (bool(short) and long.endswith(f"/{short}")))


def is_same_file(path: str, other: str) -> bool:
    """Return whether two paths may be of one file, whose text changed since. They may begin at different folders."""
    short, long = sorted((path, other), key=len)
    return f"/{long}".endswith(f"/{short}")


def _is_within(path: str, home: str) -> bool:
    """Return whether a file is in a folder. The path may begin at a folder that the other one names too."""
    parts, wanted = path.split("/"), home.split("/")
    return any(parts[: len(wanted) - at] == wanted[at:] for at in range(len(wanted)))


def in_annotation(node: Node) -> bool:
    """Return whether a type is where Python evaluates none, or may not: after a colon or an arrow."""
    return any(one.kind == "type" for one in node.ancestors())


def _elsewhere(rule: Rule, match: Match, scopes: Scopes) -> str:
    """Return why a place in another file than the example's may mean something else; "" if nothing says so."""
    unknown = next((name for name in rule.new_names.assumed if scopes.binding(name, match.nodes[0]) == UNKNOWN), "")
    if unknown:
        return f"`{unknown}`, which the edit uses, may be known in the example's file alone"
    added = added_parameters(rule)
    if added and not is_asked_for(rule, match):
        return f"nothing in it uses `{min(added)}`, which the edit adds"
    if _is_of_alias(rule) and scopes.binding("Result", match.nodes[0]) == UNKNOWN:
        return "`Result` is the one of all files here, and another in the example's"
    is_value = isinstance(rule.template[0] if len(rule.template) == 1 else None, Hole) and is_call(match.nodes[0])
    is_compared = rule.around.uses == {COMPARED} and rule.language in _COMPARE_ALL
    if is_value and not is_compared and not has_called(rule, match):
        return "what uses the value is another code than in the example"
    if len(rule.pattern) == len(rule.template) == 1 and _is_modified_type(rule.pattern[0], rule.template[0]):
        return "another file declares another type of this name"
    return ""


def _other_words(rule: Rule, match: Match, scopes: Scopes, *, is_own: bool) -> str:
    """Return why a name or a text that the edit brings is not meant at a place; "" if it may be."""
    if not is_own and (name := _unknown_for_local(rule, match, scopes)):
        return f"nothing here binds `{name}`, which the edit uses instead of a local name"
    other = rule.around.named - words_around(match.nodes[0]) if rule.around.named else None
    return f"the text that the edit brings names `{min(other)}`, which is not here" if other else ""


def _unknown_for_local(rule: Rule, match: Match, scopes: Scopes) -> str:
    """Return a name that nothing binds, and that comes where a parameter or a variable from around goes; "" if none.

    What is called is no such name: a function may still be written.
    """
    values = set(rule.new_names.unbound) - {*_called(rule.template)}
    if not values:
        return ""
    kept = names_in(rule.template)
    local = {one.text for one in rule.names if one.binding in ("parameter", "local") and one.text not in kept}
    names, inside = names_of(scopes.syntax), range(match.start, match.end)
    if all(any(start in inside for start in names.declared(name)) for name in local):
        return ""
    return next((name for name in sorted(values) if scopes.binding(name, match.nodes[0]) == UNKNOWN), "")


def _called(patterns: Sequence[Pattern]) -> Iterator[str]:
    """Yield the names that code calls."""
    for one in patterns:
        if isinstance(one, Branch):
            first = one.children[0] if is_call(one) and one.children else None
            yield from (first.text,) if isinstance(first, Leaf) else ()
            yield from _called(one.children)


def _is_of_alias(rule: Rule) -> bool:
    """Return whether an edit changes how many arguments the `Result` of Rust has: then it is an alias."""
    counts = [
        sum(isinstance(one, Rest) or getattr(one, "named", True) for one in side.children[-1].children)
        for side in rule.branches
        if side.kind == "generic_type" and isinstance(side.children[-1], Branch)
    ]
    heads = {getattr(side.children[0], "text", "") for side in rule.branches}
    return rule.language == "rust" and heads == {"Result"} and len(counts) == 2 and counts[0] != counts[1]


def _requalified(sides: Sides) -> set[str]:
    """Return the free names that the edit brings where a qualifier comes or goes: `m` or `get` of `m.get`."""
    old, new = ([*_named(side)] for side in (sides.pattern, sides.template))
    free = {name for name, owner in new if not owner} - {name for name, owner in old if not owner}
    dropped = {name for name, owner in old if owner}
    added = {owner for name, owner in new if owner and (name, "") in old}
    return free & (dropped | added)


def _named(patterns: Sequence[Pattern]) -> Iterator[tuple[str, str]]:
    """Yield the names of code, each with the name that qualifies it, or ""."""
    for one in patterns:
        if isinstance(one, Branch) and is_access(one) and len(one.children) > 1:
            first, last = one.children[0], one.children[-1]
            yield from _named((first,))
            if isinstance(last, Leaf):
                yield last.text, first.text if isinstance(first, Leaf) else "a value"
        elif isinstance(one, Branch):
            yield from _named(one.children[1:] if is_named_element(one) else one.children)
        elif isinstance(one, Leaf) and one.named:
            yield one.text, ""


def _is_modified_type(pattern: Pattern, template: Pattern) -> bool:
    """Return whether an edit only adds keywords to the declaration of a type: `struct A` becomes `pub struct A`."""
    if not isinstance(pattern, Branch) or not _TYPE.search(pattern.kind):
        return False
    old, new = (texts_of((side,)) for side in (pattern, template))
    more = Counter(new) - Counter(old)
    has_name = any(isinstance(one, Leaf) and one.named for one in pattern.children)
    return has_name and bool(more) and not Counter(old) - Counter(new) and all(map(_is_keyword, more))


def _is_evaluated_union(rule: Rule, node: Node) -> bool:
    """Return whether an edit of types makes a union with `|` outside of an annotation."""
    return "|" in changed_words(rule)[1] and rule.around.in_annotation and not in_annotation(node)


def _is_keyword(text: str) -> bool:
    return text.isalpha() and text.islower()


def _is_optional(pattern: Sequence[Pattern], template: Sequence[Pattern]) -> bool:
    """Return whether an edit only says that a value may be missing, or is not."""
    old, new = (Counter(texts_of(side)) for side in (pattern, template))
    return (new - old).keys() <= _OPTIONAL and bool(new - old) and (old - new).keys() <= {".", "->", *_OPTIONAL}


def _is_other_member(rule: Rule) -> bool:
    """Return whether a method becomes a field, or a field a method: that says more of the class than a name."""
    branches = rule.branches
    return len(branches) == 2 and is_call(branches[0]) != is_call(branches[1]) and any(map(is_access, branches))


def _is_method(node: Node) -> bool:
    """Return whether a call is of a method."""
    callee = callee_of(node) if is_call(node) else None
    return receiver_of(node) is not None or (callee is not None and receiver_of(callee) is not None)


def _tokens(patterns: Sequence[Pattern]) -> str:
    return "".join(item.text if isinstance(item, Leaf) else getattr(item, "name", "") for item in items(patterns))


def _says(pattern: Pattern, bound: frozenset[str], is_prefix_enough: bool, around: str = "") -> int:
    """Return how much a pattern says of what is meant: _ENOUGH for a name, half for `None` and for an operator."""
    if isinstance(pattern, Branch):
        if pattern.kind == "sized_type_specifier" and len(pattern.children) > 1:
            return _ENOUGH  # `unsigned char` is no type of everything
        if "parameter" in pattern.kind:
            bound |= parameter_names(pattern.children, is_inside=True)
        declared: Iterator[Pattern] = iter(())
        if pattern.kind in ("arrow_function", "catch_clause"):  # a single parameter needs no list
            declared = (child for child in pattern.children if isinstance(child, Leaf))
        bound |= {item.text for item in declared if isinstance(item, Leaf) and item.kind == "identifier"}
        return sum(_says(child, bound, is_prefix_enough, pattern.kind) for child in pattern.children)
    if isinstance(pattern, Hole):
        return _ENOUGH if pattern.prefix and is_prefix_enough else 0
    if not isinstance(pattern, Leaf) or pattern.text in SELF:
        return 0
    if pattern.text in bound and "type" not in pattern.kind:
        return 0  # a type may have the name of the parameter, too
    is_plain = "type" in pattern.kind + around and pattern.text in _PLAIN_TYPES
    if is_plain or PLAIN_KIND.search(pattern.kind) or PLAIN_KIND.search(around):
        return 0
    if is_operator(pattern.text):
        # A regular expression begins with a `/`, and the brackets of a type are no operators either.
        is_sign = (pattern.text == "/" and "regex" in around) or (pattern.text in "<>" and "type" in around)
        return int(not is_sign and pattern.text != "=")
    if pattern.text.lower() in _KEYWORD_LITERAL:
        return 1
    return _ENOUGH * (pattern.named or (pattern.text.isalpha() and pattern.text not in _COMMON))


def _is_broken(node: Node) -> bool:
    """Return whether a syntax error is in the statement of a place."""
    statement = next((one for one in (node, *node.ancestors()) if is_statement(one)), node)
    return any(one.kind == "ERROR" for one in statement.walk())


def _is_near(node: Node, own: Sequence[tuple[int, int]]) -> bool:
    """Return whether a place is in the same function as an example, or in the same statement outside of functions."""
    around = function_around(node) or next((one for one in node.ancestors() if is_statement(one)), None)
    if around is None or is_class(around):
        return False
    return any(around.start <= start and end <= around.end for start, end in own)


def _has_short_name(rule: Rule) -> bool:
    """Return whether a rule has no more than one name, of one word, as many classes may have it: `send`, `get`."""
    names = names_in(rule.pattern) - SELF
    return len(names) == 1 and not any(
        _SEVERAL_WORDS.search(name) and not _CONVERSION.fullmatch(name) for name in names
    )
