"""Why a place that fits a rule may still mean something else: it is shown, and edited only if the user takes it."""

import re
from collections.abc import Iterator, Sequence

import attrs

from lsp_server.refactor.bindings import BROUGHT
from lsp_server.refactor.grammar import SELF, callee_of, is_call, is_name, is_operator, is_statement, receiver_of
from lsp_server.refactor.matching import Match
from lsp_server.refactor.pattern import Branch, Hole, Leaf, Pattern, Rest, Rule, items
from lsp_server.refactor.surroundings import function_around
from lsp_server.refactor.syntax import Node

DOUBTFUL = "doubtful: "
"""The start of the reason of a place that fits, and is left out because it may mean something else."""
WIDE = "wide: "
"""The start of the reason of a place that only the widest form of a rule fits."""
_ENOUGH = 2
_PLAIN_KIND = re.compile(
    r"^(primitive|predefined|integral|floating_point|boolean|void)_?\w*type(_specifier|_identifier)?$"
)
_PLAIN_TYPES = {name for name in BROUGHT if name.islower()} | {"String", "Object", "any"}
# Words of any code; others, such as "assert" and "except", say what is meant.
_COMMON = frozenset(
    {"for", "in", "of", "as", "if", "else", "while", "do", "then", "end", "return", "async", "await"}
    | {"def", "function", "func", "fn", "fun", "class", "type", "struct", "var", "let", "const", "new"}
    | {"static", "public", "private", "protected", "pub", "export", "default"}
)
_SEVERAL_WORDS = re.compile(r"^__|[a-z0-9][A-Z]|[A-Za-z0-9]_[A-Za-z]")
_CONVERSION = re.compile(
    r"(to|as|into)_?(string|str|owned|vec|array|list|bytes|json|int|float|number|iter|ref|mut|dict|map|set)", re.I
)
_KEYWORD_LITERAL = frozenset({"none", "true", "false", "nil", "null", "undefined"})
_POSITIONS = {
    "deferred": re.compile(r"^(defer|go)_statement$"),
    "a bound of a type": re.compile(r"^(trait_bounds|where_predicate|type_bound|constraint)$"),
    "an attribute": re.compile(r"^attribute_item$"),
}


@attrs.frozen
class Beside:
    """Which places are edited beside the sure ones; the others are left out."""

    doubtful: bool = True
    wide: bool = False

    def takes(self, rule: Rule) -> bool:
        """Return whether the doubtful places of a rule are edited."""
        return self.wide if rule.wide else self.doubtful


SURE = Beside(doubtful=False)
ALL_BUT_WIDE = Beside()


def is_syntax_alone(pattern: Sequence[Pattern], template: Sequence[Pattern]) -> bool:
    """Return whether no name, literal, rare word or repeated code says what is meant: `for $X in $Y`, `int`.

    The parameters that the pattern itself declares say nothing, nor does the start of a function's name where the edit
    changes its parameters. The same tokens with other white space are sure: `else if` becomes `elseif`.
    """
    if _tokens(pattern) == _tokens(template):
        return False
    is_prefix_enough = _parameters(pattern) == _parameters(template)
    holes = [item.name for item in items(pattern) if isinstance(item, Hole)]
    repeated = len(holes) - len({*holes})
    return repeated + sum(_says(one, frozenset(), is_prefix_enough) for one in pattern) < _ENOUGH


def position_of(node: Node) -> str:
    """Return where code is, if it has another sense there than elsewhere: "deferred", "an attribute"; else ""."""
    above = node.parent
    return next((name for name, kinds in _POSITIONS.items() if above is not None and kinds.search(above.kind)), "")


def receivers_of(match: Match | None) -> frozenset[str]:
    """Return what the receivers that vary are called in a place: `sock` for `self.sock`, `get()` for `a.get(1)`."""
    return frozenset(_called(node) for node in _receivers(match)) if match is not None else frozenset()


def doubt_of(rule: Rule, match: Match, own: Sequence[tuple[int, int]] | None, *, has_errors: bool) -> str:
    """Return why a place may mean something else than the example, as a phrase; "" if nothing says so.

    `own` are the parts of this text that are examples; None if it has none. `has_errors` says that its syntax has.
    """
    if rule.wide:
        return rule.wide
    if rule.is_syntax and not (own and _is_near(match.nodes[0], own)) and not _is_asked_for(rule, match):
        return "only its syntax is as in the example"
    if rule.receivers and _has_short_name(rule) and not receivers_of(match) <= rule.receivers:
        return "its receiver is another one than in the example, and may have another type"
    if has_errors and _is_broken(match.nodes[0]):
        return "a syntax error is beside it"
    here = position_of(match.nodes[0])
    if rule.position is None or (here == rule.position and here != "an attribute"):
        return ""
    if here == "an attribute":
        return "another declaration may not need it"
    return f"it is {here or 'elsewhere'} here, and {rule.position or 'elsewhere'} in the example"


def _tokens(patterns: Sequence[Pattern]) -> str:
    return "".join(item.text if isinstance(item, Leaf) else getattr(item, "name", "") for item in items(patterns))


def _says(pattern: Pattern, bound: frozenset[str], is_prefix_enough: bool, around: str = "") -> int:
    """Return how much a pattern says of what is meant: _ENOUGH for a name, half for `None` and for an operator."""
    if isinstance(pattern, Branch):
        if pattern.kind == "sized_type_specifier" and len(pattern.children) > 1:
            return _ENOUGH  # `unsigned char` is no type of everything
        declared = items((pattern,)) if "parameter" in pattern.kind else iter(())
        if pattern.kind == "arrow_function":  # a single parameter needs no list
            declared = (child for child in pattern.children if isinstance(child, Leaf))
        bound |= {item.text for item in declared if isinstance(item, Leaf) and item.kind == "identifier"}
        return sum(_says(child, bound, is_prefix_enough, pattern.kind) for child in pattern.children)
    if isinstance(pattern, Hole):
        return _ENOUGH if pattern.prefix and is_prefix_enough else 0
    if not isinstance(pattern, Leaf) or pattern.text in SELF | bound:
        return 0
    is_plain = "type" in pattern.kind + around and pattern.text in _PLAIN_TYPES
    if is_plain or _PLAIN_KIND.search(pattern.kind) or _PLAIN_KIND.search(around):
        return 0
    if is_operator(pattern.text):
        return int(pattern.text not in "<>" or "type" not in around)  # the brackets of a type are no operators
    if pattern.text.lower() in _KEYWORD_LITERAL:
        return 1
    return _ENOUGH * (pattern.named or (pattern.text.isalpha() and pattern.text not in _COMMON))


def _is_broken(node: Node) -> bool:
    """Return whether a syntax error is in the statement of a place."""
    statement = next((one for one in (node, *node.ancestors()) if is_statement(one)), node)
    return any(one.kind == "ERROR" for one in statement.walk())


def _is_near(node: Node, own: Sequence[tuple[int, int]]) -> bool:
    """Return whether a place is in the same function as an example."""
    function = function_around(node)
    return function is not None and any(function.start <= start and end <= function.end for start, end in own)


def _is_asked_for(rule: Rule, match: Match) -> bool:
    """Return whether the body of a place uses each parameter that the edit adds."""
    added = _parameters(rule.template) - _parameters(rule.pattern)
    inner = (node for bound in match.bounds if isinstance(bound.item, Rest) for node in bound.nodes)
    return bool(added) and added <= {leaf.text for node in inner for leaf in node.leaves() if is_name(leaf)}


def _parameters(patterns: Sequence[Pattern], *, is_inside: bool = False) -> set[str]:
    """Return the constant names in lists of parameters."""
    found: set[str] = set()
    for one in patterns:
        if isinstance(one, Branch):
            found |= _parameters(one.children, is_inside=is_inside or "parameter" in one.kind)
        elif isinstance(one, Leaf) and one.named and is_inside:
            found.add(one.text)
    return found


def _has_short_name(rule: Rule) -> bool:
    """Return whether a rule has no more than one name, of one word, as many classes may have it: `send`, `get`."""
    names = {item.text for item in items(rule.pattern) if isinstance(item, Leaf) and item.named} - SELF
    return len(names) == 1 and not any(
        _SEVERAL_WORDS.search(name) and not _CONVERSION.fullmatch(name) for name in names
    )


def _receivers(match: Match) -> Iterator[Node]:
    """Yield what a place has for the receivers that vary."""
    for bound in match.bounds:
        if isinstance(bound.item, Hole) and len(bound.nodes) == 1:
            node = bound.nodes[0]
            if node.parent is not None and node.parent.kind == "variable_name":  # PHP's $x has two tokens
                node = node.parent
            if node.parent is not None and receiver_of(node.parent) is node:
                yield node


def _called(receiver: Node) -> str:
    callee = callee_of(receiver) if is_call(receiver) else None
    names = [leaf.text for leaf in (callee if callee is not None else receiver).leaves() if leaf.named]
    return (names[-1] if names else receiver.text) + ("()" if callee is not None else "")
