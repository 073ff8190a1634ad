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
_SCRIPT = (
    ("function _(", ") {}\n"),
    ("class _ {\n", "\n}\n"),
    ("const ", " = _;\n"),
    ("try {} ", " { _ }\n"),
    ("", "\nclass _ {}\n"),
)
_TYPED_SCRIPT = (("let _: ", ";\n"), ("interface _ {\n", "\n}\n"), *_SCRIPT)
_CLAUSES = ("catch", "except")
# Where code may be that is no expression and no statement: types, parameters, members, attributes, patterns.
_CONTEXTS: dict[str, tuple[tuple[str, str], ...]] = {
    "python": (
        ("_: ", "\n"),
        ("def _(", "): pass\n"),
        ("", "\ndef _(): pass\n"),
        ("match _:\n    case ", ":\n        pass\n"),
        ("try:\n    pass\n", "\n    pass\n"),
    ),
    "javascript": (*_SCRIPT, ("<_ ", " />;\n")),
    "typescript": _TYPED_SCRIPT,
    "typescriptreact": (*_TYPED_SCRIPT, ("<_ ", " />;\n")),
    "go": (
        ("package p\n\nvar _ ", "\n"),
        ("package p\n\nfunc _(", ") {}\n"),
        ("package p\n\ntype _ struct {\n", "\n}\n"),
        ("package p\n\n", "\n"),
    ),
    "rust": (
        ("type T = ", ";\n"),
        ("fn f(", ") {}\n"),
        ("struct S {\n", "\n}\n"),
        ("fn f() { match x { ", " => {} } }\n"),
        ("", "\nstruct S;\n"),
    ),
    "java": (
        ("class A {\n", "\n}\n"),
        ("class A { ", " x; }\n"),
        ("class A { void f(", ") {} }\n"),
        ("class A {\n", "\nvoid f() {} }\n"),
    ),
    "csharp": (
        ("class A {\n", "\n}\n"),
        ("class A { ", " x; }\n"),
        ("class A { void F() { _ = ", "; } }\n"),
        ("class A { void F(", ") {} }\n"),
        ("class A {\n", "\nvoid F() {} }\n"),
    ),
    "c": (("", " x;\n"), ("void f(", ");\n")),
    "cpp": (("", " x;\n"), ("void f(", ");\n")),
    "kotlin": (("val x: ", "\n"), ("fun f(", ") {}\n")),
    "swift": (("let x: ", "\n"), ("func f(", ") {}\n")),
}


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


@attrs.frozen
class InContext:
    """Both sides of a piece of code where it may be, and where the code begins in them, in UTF-8 bytes."""

    before: Syntax
    after: Syntax
    start: int


def in_contexts(example: Example, language: Language) -> Iterator[InContext]:
    """Yield the syntax of a piece of code wherever its language may have such: first as expression or statement.

    Raises NoRule if it cannot be parsed at all.
    """
    sides = (example.before.replace("\r\n", "\n"), example.after.replace("\r\n", "\n"))
    # Go reads a call at the top of a file as a conversion to a type.
    surroundings = list(_surroundings(language))
    is_part = language.id == "go" and not sides[0].lstrip().startswith(("package", "func ", "type ", "import"))
    if is_part:
        surroundings = surroundings[2:]
    first = None
    for start, end in surroundings:
        before, after = (_parsed(start + text + end, language) for text in sides)
        if not before.errors and not after.errors:
            first = InContext(before, after, len(start))
            yield first
            break
    is_clause = sides[0].lstrip().startswith(_CLAUSES)
    for start, end in _CONTEXTS.get(language.id, ()):
        if is_clause != start.startswith("try"):
            continue
        before, after = (_parsed(start + text.strip() + end, language) for text in sides)
        if before.errors or after.errors:
            continue
        is_whole = all(
            _is_one_node(syntax, len(start), text) for syntax, text in zip((before, after), sides, strict=True)
        )
        if is_clause or is_whole:
            yield InContext(before, after, len(start))


def _is_one_node(syntax: Syntax, start: int, text: str) -> bool:
    """Return whether a piece of code is one node of what it was put into."""
    nodes = own_nodes(syntax, text, start)
    return len(nodes) == 1 and nodes[0].end - start == len(text.strip().encode("utf-8", "surrogatepass"))


def own_nodes(syntax: Syntax, text: str, start: int) -> list[Node]:
    """Return the outermost named nodes of a piece of code, without what was put around it from byte `start` on."""
    code = text.replace("\r\n", "\n").strip().encode("utf-8", "surrogatepass")
    start = syntax.data.find(code, start)
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
