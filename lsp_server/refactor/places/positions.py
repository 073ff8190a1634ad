"""Where code is: in a condition, in an attribute, a statement of its own. It may mean another thing elsewhere."""

import itertools
import re
from collections import Counter
from collections.abc import Iterator, Sequence

from lsp_server.refactor.code.annotations import is_annotation
from lsp_server.refactor.code.call import is_alone, uses_up
from lsp_server.refactor.code.grammar import is_access, is_arguments, is_callee, is_name
from lsp_server.refactor.code.node import Node, same
from lsp_server.refactor.code.syntax import Syntax
from lsp_server.refactor.rules.pattern import Leaf, texts_of
from lsp_server.refactor.rules.rule import Rule

PLAIN_KIND = re.compile(
    r"^(primitive|predefined|integral|floating_point|boolean|void)_?\w*type(_specifier|_identifier)?$"
)
_CONDITION, _CONSTANT, _STATEMENT = "a condition", "the type of a constant", "a statement of its own"
_TESTED = "behind a test of its value"
_ARGUMENT, _NO_ARGUMENT, _IN_INTERFACE = "an argument", "no argument", "a member of an interface"
_CAUGHT = "what is caught"
_CATCHES = re.compile(r"^(except_clause|except_group_clause|catch_clause|catch_block|rescue)$")
_POSITIONS = {
    "deferred": re.compile(r"^(defer|go)_statement$"),
    "a bound of a type": re.compile(r"^(trait_bounds|where_predicate|type_bound|constraint)$"),
    "an attribute": re.compile(r"^attribute_item$"),
}
_STREAMS = frozenset({"<<", ">>"})
"""Operators of which each takes what the one before it gave."""
_FIXTURE, _PROVIDER = "a fixture of PHPUnit", "what hands data to tests of PHPUnit"
_ROLES = (_FIXTURE, _PROVIDER)
_FIXTURES = frozenset({"setUp", "tearDown", "setUpBeforeClass", "tearDownAfterClass"})
_PROVIDES = re.compile(rb"@dataProvider\s+(\w+)|\bDataProvider\(\s*['\"](\w+)")
_OF_INTERFACES = frozenset({"public", "abstract"})


def position_of_example(old: Node, new: Sequence[Node]) -> str:
    """Return where the code of an example is, if that may matter: "deferred", "an attribute"; else "".

    A value that the edit keeps may be put to the test there, or be a statement; what it hands over to a call may have
    been tested before (`if err != nil { return err }`). If another error is caught, the old one may still be thrown.
    What loses the arguments of its type takes them from what it is assigned to, and an argument may be assigned to
    anything. What becomes a reference where it is an argument would make a variable another one.
    """
    if any(same(old, one) for top in new for one in top.walk()) and _is_condition(old):
        return _CONDITION
    if len(new) == 1 and any(_is_wrapped(name, old, new[0]) for name in _tested(old)):
        return _TESTED
    if is_alone(old) and any(uses_up(one, old) for one in new):
        return _STATEMENT
    if len(new) == 1 and _has_types(old) and _without_types(old) == _without_types(new[0]) and not _is_argument(old):
        return _NO_ARGUMENT
    if len(new) == 1 and _is_argument(old) and next(new[0].leaves()).text == "&" != next(old.leaves()).text:
        return _ARGUMENT
    if len(new) == 1 and _is_caught(old) and [*old.leaves()][-1].text != [*new[0].leaves()][-1].text:
        return _CAUGHT
    tokens = [Counter(leaf.text for top in side for leaf in top.leaves()) for side in ((old,), new)]
    if position_of_modifier(old) and _is_less(*tokens):
        return _IN_INTERFACE
    return _CONSTANT if _is_of_constant(old) else _position(old)


def position_of_modifier(node: Node) -> str | None:
    """Return where a declaration is if it is the member of an interface, which is public anyway; else None."""
    body = node.parent
    is_inside = body is not None and body.parent is not None and body.parent.kind == "interface_declaration"
    return _IN_INTERFACE if is_inside else None


def _is_less(old: Counter[str], new: Counter[str]) -> bool:
    return not new - old and {*(old - new)} <= _OF_INTERFACES


def is_redundant(rule: Rule, node: Node) -> bool:
    """Return whether an edit, of an interface's member, takes nothing away there but what it is anyway."""
    return _is_less(*_words(rule)) and rule.around.position == position_of_modifier(node) == _IN_INTERFACE


def role_in_tests(node: Node, syntax: Syntax) -> str | None:
    """Return what a method of PHP is for PHPUnit, by its name: a fixture, or what hands data to a test; else None."""
    name = node.child("name") if syntax.language.id == "php" and node.kind == "method_declaration" else None
    if name is None:
        return None
    if name.text in _FIXTURES:
        return _FIXTURE
    named = (one[1] or one[2] for one in _PROVIDES.finditer(syntax.data))
    return _PROVIDER if name.text.encode() in named else None


def has_role(rule: Rule, node: Node, syntax: Syntax) -> bool:
    """Return whether PHPUnit asks of a method what an edit does: that a fixture is `: void`, a data provider static."""
    position = rule.around.position
    if position not in _ROLES or position != role_in_tests(node, syntax):
        return False
    old, new = _words(rule)
    if position == _PROVIDER:
        return not old - new and {*(new - old)} == {"static"} and all(leaf.text != "this" for leaf in node.leaves())
    returns = (one for one in node.walk() if one.kind == "return_statement" and one.parts)
    return not old - new and {*(new - old)} == {":", "void"} and not any(returns)


def _words(rule: Rule) -> list[Counter[str]]:
    return [Counter(texts_of(side)) for side in (rule.pattern, rule.template)]


def other_position(rule: Rule, node: Node) -> str:
    """Return why code means something else at a place than where the example has it; "" if it does not."""
    here, position = _position(node), rule.around.position
    if position == _CONDITION:
        here = _CONDITION if _is_condition(node) else here
    elif position == _TESTED:
        here = _TESTED if _tested(node) else here
    elif position == _STATEMENT:
        here = _STATEMENT if is_alone(node) else "a value"
    elif position == _NO_ARGUMENT:
        here = _ARGUMENT if _is_argument(node) else _NO_ARGUMENT
    elif position == _ARGUMENT:
        here = _ARGUMENT if _is_argument(node) else here
    elif position == _CAUGHT:
        here = _CAUGHT if _is_caught(node) else here
    elif position == _CONSTANT:
        here = _CONSTANT if _is_of_constant(node) else here
    elif position == _IN_INTERFACE:
        here = position_of_modifier(node) or here
    if position is None or position in _ROLES:
        return ""
    if len(rule.pattern) == 1 and isinstance(rule.pattern[0], Leaf) and (name := _qualified_name(node)):
        return f"it is a part of `{name}` here, which may be another type"
    if here == "an attribute":
        old, new = _words(rule)
        return "" if here == position and old - new else "another declaration may not need it"
    if here == position:
        return ""
    return f"it is {here or 'elsewhere'} here, and {position or 'elsewhere'} in the example"


def _qualified_name(node: Node) -> str:
    """Return the whole name that a node is the last part of: `a.b.T` for `T`; "" if nothing is before it."""
    above = node.parent if node.index else None
    return above.tokens if above is not None and is_access(above) else ""


def _position(node: Node) -> str:
    above = node.parent
    if is_annotation(node) and any("parameter" in one.kind for one in itertools.islice(node.ancestors(), 2)):
        return "a parameter's"
    if is_callee(node) and PLAIN_KIND.search(node.kind):
        return "a conversion"
    if above is not None and node is above.children[0] and _STREAMS & _signs(node) & _signs(above):
        return "the start of more of the same"
    return next((name for name, kinds in _POSITIONS.items() if above is not None and kinds.search(above.kind)), "")


def _signs(node: Node) -> set[str]:
    return {child.text for child in node.children if not child.named}


def _is_condition(node: Node) -> bool:
    """Return whether a value alone is what an `if` or a loop asks for."""
    if not (is_access(node) or is_name(node)) or is_callee(node):
        return False
    while node.parent is not None and node.parent.kind == "parenthesized_expression":
        node = node.parent
    return node.field == "condition"


def _is_caught(node: Node) -> bool:
    """Return whether a node is in the head of a clause that catches errors."""
    for child, above in itertools.pairwise((node, *node.ancestors())):
        if _CATCHES.search(above.kind):
            return "block" not in child.kind and child.field != "body"
    return False


def _tested(node: Node) -> set[str]:
    """Return the names of a node that the nearest condition around it tests."""
    for above in node.ancestors():
        condition = above.child("condition")
        if condition is not None and not condition.start <= node.start < condition.end:
            return {leaf.text for leaf in condition.leaves() if is_name(leaf)} & _values(node)
    return set()


def _values(node: Node) -> set[str]:
    return {leaf.text for leaf in node.leaves() if is_name(leaf) and not is_callee(leaf) and leaf.text != "nil"}


def _is_wrapped(name: str, old: Node, new: Node) -> bool:
    """Return whether a name becomes an argument of one more call."""
    before, after = (
        max((sum(map(is_arguments, _up_to(leaf, top))) for leaf in top.leaves() if leaf.text == name), default=0)
        for top in (old, new)
    )
    return after > before


def _up_to(leaf: Node, top: Node) -> Iterator[Node]:
    """Yield the nodes above a leaf, up to a node around it."""
    return itertools.takewhile(lambda above: above is not top, leaf.ancestors())


def _is_argument(node: Node) -> bool:
    above = node.parent
    return above is not None and (is_arguments(above) or above.kind in ("argument", "value_argument"))


def _has_types(node: Node) -> bool:
    """Return whether code names arguments of a type: `<>` has none."""
    return any("type_argument" in one.kind and any(part.named for part in one.children) for one in node.walk())


def _without_types(node: Node) -> list[str]:
    """Return the tokens of code that are in no arguments of a type."""
    inside = {id(leaf) for one in node.walk() if "type_argument" in one.kind for leaf in one.leaves()}
    return [leaf.text for leaf in node.leaves() if id(leaf) not in inside]


def _is_of_constant(node: Node) -> bool:
    """Return whether a type is that of a constant: another value may need another one."""
    above = node.parent
    if node.field != "type" or above is None:
        return False
    words = {leaf.text for child in above.children if child.start < node.start for leaf in child.leaves()}
    is_field = above.kind == "field_declaration" and {"static", "final"} <= words
    return is_field or above.kind in ("const_item", "static_item", "const_spec")
