"""The names and values that an edit takes away: a place may still use them."""

import itertools
import re
from collections.abc import Iterator, Sequence

import attrs

from lsp_server.refactor.code.bindings import binds, is_function, is_parameter
from lsp_server.refactor.code.declarations import Declaration, names_of
from lsp_server.refactor.code.grammar import is_container, is_fixed_name, is_name
from lsp_server.refactor.code.node import Node
from lsp_server.refactor.code.syntax import Syntax
from lsp_server.refactor.rules.matching import Match, match_at
from lsp_server.refactor.rules.pattern import Hole, Pattern, Rest, items, names_in, texts_of
from lsp_server.refactor.rules.rule import Rule

_NEAR = 4
_ZEROED = frozenset({"go", "python", "ruby", "php"})
"""Languages in which a variable without a value has that of its type, or is none."""
_BLOCK_BINDER = re.compile(r"^(for|enhanced_for|range|with|except|catch)")


def dropped_name(rule: Rule, match: Match) -> str | None:
    """Return a reason if the edit takes a parameter or the name of a block away that the place still uses."""
    for leaf, of_parameter in _uses(rule, match):
        if not (rule.allowed.drops if of_parameter else _is_followed(rule, leaf)):
            return f"`{leaf.text}`, which the edit takes away, is used here"
    return None


def drops_used(rule: Rule, match: Match, syntax: Syntax) -> bool:
    """Return whether an example uses a parameter that it drops, or reads a variable whose value it drops."""
    return any(of_parameter for _, of_parameter in _uses(rule, match)) or bool(_read_unset(rule, match, syntax))


def dropped_value(rule: Rule, match: Match, syntax: Syntax) -> str | None:
    """Return a reason if the edit takes the value of a variable away that the place reads before it sets it."""
    name = "" if rule.allowed.drops else _read_unset(rule, match, syntax)
    return f"`{name}`, whose value the edit takes away, may be read here before it is set" if name else None


def _read_unset(rule: Rule, match: Match, syntax: Syntax) -> str:
    """Return a local variable that loses its first value, and that the next statement of its block does not set.

    Statements before that one may not use it. It is "" if no variable does.
    """
    old, new = (texts_of(side) for side in (rule.pattern, rule.template))
    if old.count("=") <= new.count("=") or rule.language in _ZEROED:
        return ""
    names = names_of(syntax)
    for leaf in (leaf for node in match.nodes for leaf in node.leaves() if is_name(leaf)):
        one = names.declared(leaf.text).get(leaf.start)
        if one is not None and one.sort == "local" and not one.is_parameter and one.leaf is leaf:
            after = (each for each in names.leaves(leaf.text) if match.end <= each.start < one.scope.end)
            if (use := next(after, None)) is not None and not _is_set_by(use, one):
                return leaf.text
    return ""


def _is_set_by(use: Node, one: Declaration) -> bool:
    """Return whether the use of a variable is the target of a statement of its block, whose value does not read it."""
    target = use.parent
    if target is None or target.child("left") is not use or all(child.text != "=" for child in target.children):
        return False
    is_read = any(leaf.text == use.text for leaf in target.leaves() if leaf is not use)
    statement = target if target.parent is one.scope else target.parent
    return not is_read and statement is not None and statement.parent is one.scope


def with_followers(rules: Sequence[Rule]) -> tuple[Rule, ...]:
    """Return the rules of some examples, each of which knows what others do with the names that it drops or brings."""
    return tuple(_beside(rule, [one for one in rules if one is not rule]) for rule in rules)


def _beside(rule: Rule, others: Sequence[Rule]) -> Rule:
    bound = {name for one in others for name in one.new_names.binds}
    allowed = attrs.evolve(rule.allowed, followers=_followers(rule, others))
    return attrs.evolve(rule, allowed=allowed, new_names=rule.new_names.with_bound(bound))


def _followers(rule: Rule, others: Sequence[Rule]) -> tuple[Pattern, ...]:
    gone = names_in(rule.pattern) - names_in(rule.template)
    patterns = [one.pattern[0] for one in others if len(one.pattern) == 1]
    return tuple(one for one in patterns if gone & names_in((one,)))


def _is_followed(rule: Rule, leaf: Node) -> bool:
    """Return whether another rule of the examples edits what uses a name."""
    around = itertools.islice((leaf, *leaf.ancestors()), _NEAR)
    return any(match_at(one, node) is not None for node in around for one in rule.allowed.followers)


def _uses(rule: Rule, match: Match) -> Iterator[tuple[Node, bool]]:
    """Yield the uses of names that an edit takes away, in the code that it keeps, and whether each is a parameter's."""
    kept = set(texts_of(rule.template))
    kept |= {item.name for item in items(rule.template) if isinstance(item, Hole | Rest)}
    gone: dict[str, bool] = {}
    carried: list[Node] = []
    for bound in match.bounds:
        is_variable = isinstance(bound.item, Hole | Rest)
        name = bound.item.name if isinstance(bound.item, Hole | Rest) else getattr(bound.item, "text", "")
        if name not in kept:
            names = [node for node in bound.nodes if is_name(node)]
            gone.update({node.text: True for node in names if is_parameter(node)})
            gone.update({node.text: False for node in names if not is_parameter(node) and _is_of_block(node)})
        elif is_variable:
            carried += bound.nodes
    # `i` of `for i := 0; ...` is that of `for i := range n`.
    bare = {node.text for node in carried if is_name(node)}
    gone = {name: of_parameter for name, of_parameter in gone.items() if of_parameter or name not in bare}
    for leaf in (leaf for node in carried for leaf in node.leaves()) if gone else ():
        if (
            leaf.text in gone
            and is_name(leaf)
            and not is_parameter(leaf)
            and not (is_fixed_name(leaf) and not gone[leaf.text])
        ):
            yield leaf, gone[leaf.text]


def _is_of_block(leaf: Node) -> bool:
    """Return whether a name is bound for a block: by a loop, a `with`, a `catch`."""
    around = next((above for above in leaf.ancestors() if is_container(above) or is_function(above)), None)
    binders = itertools.takewhile(lambda above: above is not around, leaf.ancestors())
    kinds = [above.kind for above in binders]
    is_bound = around is not None and (binds(leaf, around) or "as_pattern_target" in kinds)
    return bool(is_bound) and any(map(_BLOCK_BINDER.search, kinds))
