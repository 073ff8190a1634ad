"""Rules as code with $NAMES: for a person to write, and to read what was learned."""

import itertools
import re
from collections.abc import Callable, Sequence
from contextlib import suppress

import attrs

from lsp_server.languages.language import Language
from lsp_server.refactor.change.free_names import free_fragment_names, names_brought
from lsp_server.refactor.change.generalise import Side, Sides
from lsp_server.refactor.code.bindings import import_edit
from lsp_server.refactor.code.grammar import (
    is_access,
    is_expression,
    is_expression_kind,
    is_fixed_name,
    is_import,
    is_list_kind,
    is_string_content,
    level_of_place,
)
from lsp_server.refactor.code.node import Node
from lsp_server.refactor.code.syntax import Syntax
from lsp_server.refactor.learn.example import Example, InContext, NoRule, in_contexts, own_nodes
from lsp_server.refactor.learn.learn import learned_set, lesson, rule_of
from lsp_server.refactor.places.spellings import COMPOSED
from lsp_server.refactor.rules.pattern import (
    ENOUGH,
    Branch,
    Hole,
    Item,
    Leaf,
    Pattern,
    Rest,
    Text,
    is_constant,
    items,
    texts_of,
    variables,
    weight,
)
from lsp_server.refactor.rules.rule import Rule, RuleSet, has_same_sides
from lsp_server.refactor.rules.task import Rename

_VARIABLE = re.compile(r"(\$\$?)([A-Z][A-Z0-9_]*)")
_MOST_SHOWN = 300
"""Characters of a side of a rule, as a person sees it."""
_WRAPPERS = ("expression_statement", "type")
_SEVERAL_CONTEXTS = re.compile(r"_type$|type_identifier$|^subscript|^scoped_|^qualified_|^nested_|generic")
_HOLE, _REST = "MidspanHole", "MidspanRest"
_PLACEHOLDER = re.compile(f"({_HOLE}|{_REST})_([A-Z0-9_]+)_")


def rules_of_code(example: Example, language: Language) -> RuleSet:
    """Return the rules of code before and after an edit, wherever its language may have such code.

    The code may say itself what varies: $X is one node, $$XS any number of elements. Raises NoRule if it does not
    parse, says too little, or is no more than a piece of text in this language.
    """
    if _VARIABLE.search(example.before):
        return explicit_rules(example, language)
    return _in_all_contexts(example, language, "the example", _learned)


def explicit_rules(example: Example, language: Language) -> RuleSet:
    """Return the rules of code with variables. Raises NoRule if it does not parse or says too little."""
    example = Example(_with_placeholders(example.before), _with_placeholders(example.after))
    return _in_all_contexts(example, language, "the code", _explicit)


def _in_all_contexts(
    example: Example, language: Language, what: str, read: Callable[[Example, InContext, Language], RuleSet]
) -> RuleSet:
    """Return the rules of all contexts, each once. Raises NoRule if there are none."""
    found: list[RuleSet] = []
    problem = NoRule(f"no rule: {what} has syntax errors in {language.id}; give whole expressions or statements")
    for place in in_contexts(example, language):
        try:
            found.append(read(example, place, language))
        except NoRule as error:
            problem = error
    rules: list[Rule] = []
    for rule in (rule for one in found for rule in one.rules):
        if _is_one_text(rule.pattern):
            problem = NoRule(f"no rule: to {language.id} this code is a piece of text, without a syntax")
        elif not any(has_same_sides(rule, other) for other in rules):
            rules.append(rule)
    if not rules:
        raise problem
    return RuleSet(language.id, tuple(rules), found[0].imports, found[0].reasons)


def _learned(example: Example, place: InContext, language: Language) -> RuleSet:
    rules = learned_set([lesson(place.before, place.after, is_code=True)], language)
    # A literal alone is an expression: as a statement it would be found where no code has it.
    is_statement = any(
        isinstance(one, Branch) and one.kind in _WRAPPERS and len(one.children) == 1
        for rule in rules.rules
        for one in rule.pattern
    )
    if is_statement or any(
        item.text == "_" for rule in rules.rules for item in items(rule.pattern) if isinstance(item, Leaf)
    ):
        return _explicit(example, place, language)  # the code alone, and nothing of what was put around it
    return rules


def with_contexts(rules: RuleSet, language: Language) -> RuleSet:
    """Return learned rules with those of the same code in other contexts: a type is another tree than an expression."""
    more: list[Rule] = []
    for rule in rules.rules:
        tops = [one for one in (*rule.pattern, *rule.template) if isinstance(one, Branch)]
        is_one = len(rule.pattern) == len(rule.template) == 1
        if any(COMPOSED.search(one.kind) for one in tops):
            continue  # `A + B` and `A | B` of types are other operations of values
        if not is_one or not any(_SEVERAL_CONTEXTS.search(one.kind) or is_access(one) for one in tops):
            continue
        example = Example(code(rule.pattern), code(rule.template))
        with suppress(NoRule):
            for one in explicit_rules(example, language).rules:
                top = one.pattern[0]
                is_part = isinstance(top, Branch | Leaf) and is_expression_kind(top.kind) and not is_list_kind(top.kind)
                if is_part and not any(has_same_sides(one, other) for other in (*rules.rules, *more)):
                    kept = attrs.evolve(rule, pattern=one.pattern, template=one.template, repeats=one.repeats)
                    own = rule.edges
                    edges = attrs.evolve(one.edges, indent=own.indent, unit=own.unit, ending=own.ending)
                    more.append(attrs.evolve(kept, edges=edges))
    return attrs.evolve(rules, rules=(*rules.rules, *more))


def _is_one_text(pattern: Sequence[Pattern]) -> bool:
    """Return whether code is in one token: its language has no syntax for it."""
    leaves = texts_of(pattern)
    return any(_PLACEHOLDER.search(text) for text in leaves) or any(
        re.search(r"\w\W*[(=\s]", text) for text in leaves if len(leaves) == 1
    )


def _explicit(example: Example, place: InContext, language: Language) -> RuleSet:
    before, after = place.before, place.after
    old, new = _unwrapped(
        _statements(before, example.before, place.start), _statements(after, example.after, place.start)
    )
    pattern = tuple(_Reader(before).read(node) for node in old)
    template = tuple(_Reader(after).read(node) for node in new)
    unknown = sorted(variables(template) - variables(pattern))
    if unknown:
        raise NoRule(f"no rule: ${unknown[0]} is only in the code after the edit; name it in the code before it")
    if not pattern or (weight(pattern) < ENOUGH and not is_constant(pattern)):
        raise NoRule("no rule: the code before the edit fits nearly everywhere; add a name that must be there")
    sides = Sides(pattern, template)
    brought = names_brought(new, sides, after)
    rule = rule_of(sides, old, new, before, after, free_fragment_names(old, pattern), brought)
    names = attrs.evolve(rule.new_names, known=())  # what a fragment binds says nothing of a file
    return RuleSet(language.id, (attrs.evolve(rule, new_names=names),), import_edit(before, after))


def code(patterns: Sequence[Pattern]) -> str:
    """Return a pattern or template as code on one line, its variables as $X and $$XS."""
    parts: list[str] = []
    for item in items(patterns):
        parts += [item.gap if parts else "", _written(item)]
    return " ".join(line for part in "".join(parts).split("\n") if (line := part.strip()))


def described(rule: Rule) -> str:
    """Return a rule as one line: what becomes what."""
    head = "import of " if isinstance(rule.task, Rename) and rule.task.gone is not None else ""
    return f"{head}{_shortened(code(rule.pattern))} → {_shortened(code(rule.template)) or 'nothing'}"


def _shortened(text: str) -> str:
    return text if len(text) <= _MOST_SHOWN else f"{text[: _MOST_SHOWN - 1]}…"


def _written(item: Item) -> str:
    if isinstance(item, Leaf):
        return item.text
    if isinstance(item, Text):
        return "".join(part if isinstance(part, str) else f"${part.name}" for part in item.parts)
    return f"${item.name}" if isinstance(item, Hole) else f"$${item.name}"


def _with_placeholders(text: str) -> str:
    return _VARIABLE.sub(lambda found: f"{_REST if found[1] == '$$' else _HOLE}_{found[2]}_", text)


def _statements(syntax: Syntax, text: str, start: int) -> list[Node]:
    return [node for node in own_nodes(syntax, text, start) if not is_import(node)]


def _unwrapped(old: list[Node], new: list[Node]) -> tuple[list[Node], list[Node]]:
    """Return the expressions of two sides that are one expression each."""
    while len(old) == len(new) == 1 and old[0].kind == new[0].kind and old[0].kind in _WRAPPERS:
        old, new = list(old[0].children), list(new[0].children)
    return old, new


class _Reader(Side):
    """Reads the nodes of one side, in which placeholders stand for variables."""

    def read(self, node: Node) -> Pattern:
        gap, variable = self.gap(node), self._variable(node)
        if variable is None and node.children:
            return Branch(node.kind, tuple(map(self.read, node.children)), node.field)
        self.end = node.end
        if variable is not None:
            return attrs.evolve(variable, gap=gap)
        if is_string_content(node) and _PLACEHOLDER.search(node.text):
            return Text(node.kind, _parts(node), gap)
        return Leaf(node.kind, node.text, node.named, gap)

    def _variable(self, node: Node) -> Hole | Rest | None:
        """Return the variable that a node is, with the statement or type around it if there is nothing else in it."""
        inner = node
        while len(inner.children) == 1 and not is_fixed_name(inner):
            inner = inner.children[0]
        found = _PLACEHOLDER.fullmatch(inner.text) if not inner.children else None
        if found is None:
            return None
        if found[1] == _REST:
            return Rest(found[2], separator=", ")
        if inner is not node and not is_expression(node):
            return None
        kinds = frozenset({inner.kind}) if is_fixed_name(inner) or not is_expression(inner) else frozenset[str]()
        return Hole(found[2], kinds, level=level_of_place(node))


def _parts(node: Node) -> tuple[str | Hole, ...]:
    # Text and the two groups of a placeholder, in turn.
    split = _PLACEHOLDER.split(node.text)
    holes = [Hole(name, frozenset({node.kind})) for name in split[2::3]]
    parts = [one for pair in itertools.zip_longest(split[::3], holes) for one in pair]
    return tuple(one for one in parts if one)
