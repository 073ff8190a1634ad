"""Texts that no parser gets: they would overwrite memory, or keep the event loop for too long.

The scanner of a grammar keeps what is open (indents, heredocs, literals), and writes it into 1,024 bytes of the parser
after each token. Some write more, or read back what does not fit: then the process ends, here or anywhere later. No
exception is raised, so the only way out is to see it before. Each bound here is one of the most that a text can have
open at a time. It takes some microseconds a key; such a text has no tree, and is cut by lines.

True of tree-sitter-yaml 0.7.2, -python 0.25.0, -ruby 0.23.1 and -sql 0.3.13. The others bound what they write (C# and
Markdown only since the versions in pyproject.toml), or keep nothing. tests/hardening/parsers.py watches all of them.
"""

import re
from collections.abc import Callable

_DEPTH, _ROUNDS = 20_000, 40
_NO_BRACKETS = bytes(set(range(256)) - set(b"()[]{}"))
_SPACES = bytes.maketrans(b"\t\f\r", b"   ")
_YAML_INDENT, _YAML_MARKS = 80, 60
_YAML_MARK = re.compile(rb"[-?:][ \t]")
_PYTHON_STATE, _PYTHON_INDENTS, _PYTHON_WIDTH, _PYTHON_TAB = 1000, 320, 60_000, 8
_PYTHON_BARE, _PYTHON_BARES = re.compile(rb"\n[ \t\f]*\\\r?\n"), 50
_RUBY_STATE, _RUBY_WORD = 900, 250
_RUBY_HEREDOC = re.compile(rb"<<[~-]?(?:\"([^\"]*)|'([^']*)|`([^`]*)|([\w\x80-\xff]+))")
_SQL_TAG = re.compile(rb"\$[A-Za-z\x80-\xff]{14}")


def is_refused(language: str, source: bytes) -> bool:
    """Tell whether UTF-8 `source` must not be parsed in the language with this id."""
    check = _CHECKS.get(language)
    return (check is not None and check(source)) or _nests_too_deep(source)


def _nests_too_deep(source: bytes) -> bool:
    """Tell whether more brackets are nested than a tree should have levels.

    The end of a parse, and of its tree, takes one step of the event loop: 0.3 s for 2 MB of "{" in Java.
    """
    if len(source) <= _DEPTH:
        return False
    brackets = source.translate(None, _NO_BRACKETS)
    for _ in range(_ROUNDS):  # each takes the innermost pairs away
        if len(brackets) <= _DEPTH:
            return False
        before = len(brackets)
        brackets = brackets.replace(b"()", b"").replace(b"[]", b"").replace(b"{}", b"")
        if len(brackets) == before:
            break
    return len(brackets) > _DEPTH


def _yaml(source: bytes) -> bool:
    """A key and a list may begin at each column. In broken YAML each dash, question mark or colon may begin a level."""
    if b" " * _YAML_INDENT in (source.translate(_SPACES) if b"\t" in source else source):
        return True
    return any(len(_YAML_MARK.findall(line)) > _YAML_MARKS for line in _lines(source, 2 * _YAML_MARKS))


def _python(source: bytes) -> bool:
    """Each indent on the stack is deeper than the one before, so there are at most as many as there are widths."""
    if b"\t" in source or b"\f" in source:
        deep = b" " * (_PYTHON_INDENTS // _PYTHON_TAB) in source.translate(_SPACES)
    else:
        deep = b" " * (_PYTHON_INDENTS - 1) in source
    # The indent of a line of a backslash only is added to that of the next line.
    continued = b"\\\n" in source or b"\\\r" in source
    if continued and len(_PYTHON_BARE.findall(source)) > _PYTHON_BARES:
        return True
    if not deep:
        return False
    widths = set[int]()
    for line in _lines(source, 1):
        white = line[: len(line) - len(line.lstrip(b" \t\f"))]
        widths.add(len(white) + (_PYTHON_TAB - 1) * white.count(b"\t"))
    # Two bytes for an indent, one for each of at most 255 open strings.
    strings = min(source.count(b'"') + source.count(b"'"), 255)
    return len(widths) > (_PYTHON_STATE - strings) // 2 - _PYTHON_BARES or max(widths) > _PYTHON_WIDTH


def _ruby(source: bytes) -> bool:
    """A heredoc takes four bytes and its word; a word of more than 255 bytes is not read back as it was written."""
    state = 0
    for heredoc in _RUBY_HEREDOC.finditer(source):
        word = heredoc.end() - heredoc.start()
        state += 4 + word
        if state > _RUBY_STATE or word > _RUBY_WORD:
            return True
    return False


def _sql(source: bytes) -> bool:
    """A quoting tag is read back into a buffer that is one byte too short; so much is allocated at least."""
    return b"$" in source and _SQL_TAG.search(source) is not None


def _lines(source: bytes, least: int) -> list[bytes]:
    """Return the lines with at least so many bytes. A carriage return ends a line too."""
    lines = (source.replace(b"\r", b"\n") if b"\r" in source else source).split(b"\n")
    return [line for line in lines if len(line) >= least]


_CHECKS: dict[str, Callable[[bytes], bool]] = {
    "yaml": _yaml,
    "python": _python,
    "ruby": _ruby,
    "sql": _sql,
}
