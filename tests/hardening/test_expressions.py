"""Each regular expression that meets a stranger's text takes time that grows with the text, not with its square."""

import ast
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from lsp_server.languages.language import _OPENER_CHARACTERS
from lsp_server.languages.registry import LANGUAGES
from lsp_server.suggest.shape import _STUTTER_WINDOW

ROOT = Path(__file__).resolve().parents[2]
_CHARACTERS = 20_000
_MOST_S = 0.15
"""Processor time. A square takes seconds, a line milliseconds."""
_OWN_TEXTS = (
    "engine/training",
    "engine/evaluation",
    "engine/corpus",
    "engine/cli/setup",
    "lsp_server/documents/credentials",
)
"""What reads the corpus, what editors print, and what tests/lsp_server/documents/test_credentials.py tries itself."""
_BOUNDED = {r"((?=\S*\w)\S.{1,30}?)(?:\1){4,}+.{0,30}$": _STUTTER_WINDOW}
"""Expressions that get texts of so many characters only."""
_OPENERS = {opener.pattern for language in LANGUAGES for opener in language.openers}
_MATCH = re.compile(r'#(?:not-)?match\? @[\w.]+ "((?:[^"\\]|\\.)*)"')
_CALLS = {"compile", "search", "match", "fullmatch", "sub", "subn", "split", "findall", "finditer"}
_UNITS = [
    *" \t\naA1_-.([{</#\"'`\\,:=$*éx",
    "a ",
    "a.",
    "a,",
    "a-",
    "(a",
    "<a",
    "{a",
    "do ",
    "do",
    "case ",
    "function ",
    "in ",
]
_ENDS = ("", "\0")


def _patterns() -> Iterator[tuple[str, str, str]]:
    """Yield each expression, the file that has it and its method: literals, those of languages and of queries."""
    for folder in ("lsp_server", "engine"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            name = path.relative_to(ROOT).as_posix()
            if not name.startswith(_OWN_TEXTS):
                yield from ((name, pattern, method) for pattern, method in _literals(path.read_text("utf-8")))
    for path in sorted((ROOT / "lsp_server" / "slots" / "queries").rglob("*.scm")):
        for match in _MATCH.finditer(path.read_text("utf-8")):
            yield path.relative_to(ROOT).as_posix(), match[1].replace("\\\\", "\\"), "search"
    yield from (("the registry of languages", pattern, "search") for pattern in sorted(_OPENERS))


def _literals(code: str) -> Iterator[tuple[str, str]]:
    """Yield each literal that a function of `re` gets, and the method that a compiled one is used with."""
    tree = ast.parse(code)
    names = {
        id(value): target.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        for target, value in zip(_parts(node.targets[0]), _parts(node.value), strict=False)
        if isinstance(target, ast.Name)
    }
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _CALLS):
            continue
        owner, first, method = node.func.value, node.args[0] if node.args else None, node.func.attr
        if not (isinstance(owner, ast.Name) and owner.id == "re" and isinstance(first, ast.Constant)):
            continue
        if method == "compile":
            used = re.search(
                rf"\b{names.get(id(node), '_')}\.(search|match|fullmatch|sub|split|findall|finditer)\(", code
            )
            method = used[1] if used else "search"
        if isinstance(first.value, str | bytes):
            yield first.value if isinstance(first.value, str) else first.value.decode("latin-1"), method


def _parts(node: ast.expr) -> list[ast.expr]:
    return node.elts if isinstance(node, ast.Tuple) else [node]


pytestmark = pytest.mark.slow
_ALL = sorted(set(_patterns()))


def test_the_expressions_are_found() -> None:
    assert len(_ALL) > 80


@pytest.mark.parametrize(
    ("where", "pattern", "method"), _ALL, ids=[f"{where}:{pattern[:30]}" for where, pattern, _ in _ALL]
)
def test_no_text_takes_an_expression_long(where: str, pattern: str, method: str) -> None:
    compiled = re.compile(pattern)
    run = getattr(compiled, method if method in ("match", "fullmatch") else "search")
    words = re.findall(r"[A-Za-z]{2,}", re.sub(r"\\.", " ", pattern))[:12]
    length = _BOUNDED.get(pattern, _OPENER_CHARACTERS if pattern in _OPENERS else _CHARACTERS)
    for unit in {*_UNITS, *words, *(f"{word} " for word in words), *(f"{word}(" for word in words)}:
        body = unit * (length // len(unit))
        for end in _ENDS:
            for text in (body + end, f"({body}{end}"):
                began = time.thread_time()
                run(text[:length])
                took = time.thread_time() - began
                assert took < _MOST_S, f"{where}: {pattern!r} took {took:.1f} s for {unit!r} x {length // len(unit)}"
