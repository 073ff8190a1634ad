"""Rules as code with $NAMES: for a person to write, and to read what was learned."""

import re
from collections.abc import Sequence

import attrs

from lsp_server.languages.language import Language
from lsp_server.refactor.example import Example, NoRule, own_nodes, parsed
from lsp_server.refactor.generalise import Sides
from lsp_server.refactor.grammar import is_expression, is_fixed_name, is_import, is_string_content
from lsp_server.refactor.imports import import_edit
from lsp_server.refactor.learn import free_fragment_names, rule_of
from lsp_server.refactor.node import Node
from lsp_server.refactor.pattern import Branch, Hole, Item, Leaf, Pattern, Rest, Rule, RuleSet, Text, items, variables
from lsp_server.refactor.precedence import level_of_place
from lsp_server.refactor.syntax import Syntax
from lsp_server.refactor.weight import ENOUGH, is_constant, weight

_VARIABLE = re.compile(r"(\$\$?)([A-Z][A-Z0-9_]*)")
_HOLE, _REST = "MidspanHole", "MidspanRest"
_PLACEHOLDER = re.compile(f"({_HOLE}|{_REST})_([A-Z0-9_]+)_")


def has_variables(example: Example) -> bool:
    """Return whether an example says itself what varies: $X is one node, $$XS any number of elements."""
    return _VARIABLE.search(example.before) is not None


def explicit_rules(example: Example, language: Language) -> RuleSet:
    """Return the rule of code with variables. Raises NoRule if it does not parse or says too little."""
    example = Example(_with_placeholders(example.before), _with_placeholders(example.after))
    before, after = parsed(example, language)
    if before.errors or after.errors:
        raise NoRule(f"no rule: the code has syntax errors in {language.id}; give whole expressions or statements")
    old, new = _unwrapped(_statements(before, example.before), _statements(after, example.after))
    pattern = tuple(_Reader(before).read(node) for node in old)
    template = tuple(_Reader(after).read(node) for node in new)
    unknown = sorted(variables(template) - variables(pattern))
    if unknown:
        raise NoRule(f"no rule: ${unknown[0]} is only in the code after the edit; name it in the code before it")
    if not pattern or (weight(pattern) < ENOUGH and not is_constant(pattern)):
        raise NoRule("no rule: the code before the edit fits nearly everywhere; add a name that must be there")
    rule = rule_of(Sides(pattern, template), old, new, before, after, free_fragment_names(old, pattern))
    return RuleSet(language.id, (rule,), import_edit(before, after))


def code(patterns: Sequence[Pattern]) -> str:
    """Return a pattern or template as code on one line, its variables as $X and $$XS."""
    parts: list[str] = []
    for item in items(patterns):
        parts += [item.gap if parts else "", _written(item)]
    return re.sub(r"\s*\n\s*", " ", "".join(parts)).strip()


def described(rule: Rule) -> str:
    """Return a rule as one line: what becomes what."""
    return f"{code(rule.pattern)} → {code(rule.template) or 'nothing'}"


def _written(item: Item) -> str:
    if isinstance(item, Leaf):
        return item.text
    if isinstance(item, Text):
        return "".join(part if isinstance(part, str) else f"${part.name}" for part in item.parts)
    return f"${item.name}" if isinstance(item, Hole) else f"$${item.name}"


def _with_placeholders(text: str) -> str:
    return _VARIABLE.sub(lambda found: f"{_REST if found[1] == '$$' else _HOLE}_{found[2]}_", text)


def _statements(syntax: Syntax, text: str) -> list[Node]:
    return [node for node in own_nodes(syntax, text) if not is_import(node)]


def _unwrapped(old: list[Node], new: list[Node]) -> tuple[list[Node], list[Node]]:
    """Return the expressions of two sides that are one expression each."""
    while len(old) == len(new) == 1 and old[0].kind == new[0].kind == "expression_statement":
        old, new = list(old[0].children), list(new[0].children)
    return old, new


@attrs.define
class _Reader:
    """Reads one side: the gap before each token is the text after the one before it."""

    syntax: Syntax
    end: int = 0

    def read(self, node: Node) -> Pattern:
        variable = self._variable(node)
        if variable is not None:
            self.end = node.end
            return variable
        if not node.children:
            leaf: Pattern = Leaf(node.kind, node.text, node.named, self._gap(node))
            if is_string_content(node) and _PLACEHOLDER.search(node.text):
                leaf = Text(node.kind, _parts(node), self._gap(node))
            self.end = node.end
            return leaf
        return Branch(node.kind, tuple(self.read(child) for child in node.children), node.field)

    def _variable(self, node: Node) -> Pattern | None:
        """Return the variable that a node is, with the statement or type around it if there is nothing else in it."""
        inner = node
        while len(inner.children) == 1 and not is_fixed_name(inner):
            inner = inner.children[0]
        found = _PLACEHOLDER.fullmatch(inner.text) if not inner.children else None
        if found is None:
            return None
        gap = self._gap(node)
        if found[1] == _REST:
            return Rest(found[2], gap, ", ")
        if inner is not node and not is_expression(node):
            return None
        kinds = frozenset({inner.kind}) if is_fixed_name(inner) or not is_expression(inner) else frozenset[str]()
        return Hole(found[2], kinds, gap=gap, level=level_of_place(node))

    def _gap(self, node: Node) -> str:
        return self.syntax.text(self.end, node.start) if self.end else ""


def _parts(node: Node) -> tuple[str | Hole, ...]:
    parts: list[str | Hole] = []
    position = 0
    for found in _PLACEHOLDER.finditer(node.text):
        if found.start() > position:
            parts.append(node.text[position : found.start()])
        parts.append(Hole(found[2], frozenset({node.kind})))
        position = found.end()
    return tuple([*parts, node.text[position:]] if position < len(node.text) else parts)
