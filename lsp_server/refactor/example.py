"""An example of an edit: a text before it and after it, a whole file or a piece of code."""

from collections.abc import Iterator

import attrs

from engine.errors import MidspanError
from lsp_server.languages.language import Language
from lsp_server.refactor.node import Node
from lsp_server.refactor.syntax import Syntax, parse

# What a piece of code needs around it to be a file, in languages where expressions are not for the top of one.
_AROUND = {
    "go": ("package p\n\nfunc f() {\n", "\n}\n"),
    "java": ("class A { void f() {\n", "\n} }\n"),
    "csharp": ("class A { void F() {\n", "\n} }\n"),
    "c": ("void f() {\n", "\n}\n"),
    "cpp": ("void f() {\n", "\n}\n"),
    "rust": ("fn f() {\n", "\n}\n"),
    "php": ("<?php\n", "\n"),
    "scala": ("object A {\n", "\n}\n"),
}
_NEEDS_SEMICOLON = frozenset({"java", "csharp", "c", "cpp", "php"})


class NoRule(MidspanError):
    """The examples give no rule: they are equal, do not parse, or say too little."""

    code = "no-rule"


@attrs.frozen
class Example:
    """A text before and after an edit: a whole file or a piece of code."""

    before: str
    after: str


def parsed(example: Example, language: Language) -> tuple[Syntax, Syntax]:
    """Return the syntax of both sides, with what a piece of code needs around it. Line ends are "\\n".

    If both sides have errors whatever is around them, those of the texts as they are are returned. Raises NoRule if
    they cannot be parsed at all.
    """
    sides = (example.before.replace("\r\n", "\n"), example.after.replace("\r\n", "\n"))
    first: tuple[Syntax, Syntax] | None = None
    for start, end in _surroundings(language):
        before, after = (_parsed(start + text + end, language) for text in sides)
        if not before.errors and not after.errors:
            return before, after
        first = first or (before, after)
    assert first is not None
    return first


def own_nodes(syntax: Syntax, text: str) -> list[Node]:
    """Return the outermost named nodes of a piece of code, without what was put around it."""
    code = text.replace("\r\n", "\n").strip().encode("utf-8", "surrogatepass")
    start = syntax.data.find(code)
    waiting, nodes = [syntax.root], list[Node]()
    while waiting:
        node = waiting.pop()
        is_own = start <= node.start and node.end <= start + len(code) + 1 and node.parent is not None
        if is_own and node.named:
            nodes.append(node)
        else:
            waiting.extend(reversed(node.children))
    return nodes


def _surroundings(language: Language) -> Iterator[tuple[str, str]]:
    yield "", ""
    yield "", "\n"
    if language.id in _AROUND:
        start, end = _AROUND[language.id]
        yield start, end
        if language.id in _NEEDS_SEMICOLON:
            yield start, f";{end}"


def _parsed(text: str, language: Language) -> Syntax:
    syntax = parse(text.encode("utf-8", "surrogatepass"), language)
    if syntax is None:
        raise NoRule(f"no rule: {language.id} has no grammar here, or the example takes too long to parse")
    return syntax
