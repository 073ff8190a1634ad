"""Syntax check: does the file with the fill have more errors than with the author's code?

The grammars are the project's own dependencies. The language server's table of them must not be imported here, and the
check needs nothing of a language but its grammar.
"""

import functools
import importlib
import time

import tree_sitter

from engine.corpus.holes import TrainingHole

_FUNCTIONS = {"typescript": "language_typescript", "tsx": "language_tsx", "php": "language_php"}
_MODULES = {"tsx": "typescript", "csharp": "c_sharp", "shell": "bash"}
_SECONDS = 1.0
_READ_BYTES = 16384


@functools.cache
def _parser(language: str) -> tree_sitter.Parser | None:
    try:
        module = importlib.import_module(f"tree_sitter_{_MODULES.get(language, language)}")
        return tree_sitter.Parser(tree_sitter.Language(getattr(module, _FUNCTIONS.get(language, "language"))()))
    except (ImportError, AttributeError, ValueError):
        return None


class Reference:
    """A hole's file as its author wrote it, parsed once; all fills of the hole are compared with it."""

    def __init__(self, hole: TrainingHole) -> None:
        self._parser = _parser("tsx" if hole.path.endswith(".tsx") else hole.language)
        self._before, self._after = hole.prefix.encode(), hole.suffix.encode()
        self._middle = hole.middle.encode()
        self._tree = self._parse(self._middle, None)
        self._errors = _errors(self._tree.root_node) if self._tree is not None else 0

    def allows(self, fill: str) -> bool | None:
        """Tell whether the file with `fill` has no more errors; None without a grammar or if parsing takes too long.

        An error is an outermost ERROR node or a MISSING token, as in the language server.
        """
        if self._tree is None:
            return None
        middle = fill.encode("utf-8", "replace")
        start = len(self._before)
        edited = self._tree.copy()
        edited.edit(
            start,
            start + len(self._middle),
            start + len(middle),
            _point(self._before),
            _point(self._before + self._middle),
            _point(self._before + middle),
        )
        tree = self._parse(middle, edited)
        return None if tree is None else _errors(tree.root_node) <= self._errors

    def _parse(self, middle: bytes, edited: tree_sitter.Tree | None) -> tree_sitter.Tree | None:
        """Parse with a deadline: on some broken texts a grammar's error recovery never ends."""
        if self._parser is None:
            return None
        source, deadline = self._before + middle + self._after, time.perf_counter() + _SECONDS

        def read(byte: int, _: tree_sitter.Point) -> bytes:
            return source[byte : byte + _READ_BYTES]

        def give_up(_: int, __: bool) -> bool:
            return time.perf_counter() > deadline

        try:
            if edited is None:
                return self._parser.parse(read, progress_callback=give_up)
            return self._parser.parse(read, edited, progress_callback=give_up)
        except ValueError:
            self._parser.reset()
            return None


def _point(before: bytes) -> tree_sitter.Point:
    return tree_sitter.Point(before.count(b"\n"), len(before) - before.rfind(b"\n") - 1)


def _errors(root: tree_sitter.Node) -> int:
    count = 0
    pending = [root] if root.has_error else []
    while pending:
        node = pending.pop()
        if node.is_error or node.is_missing:
            count += 1
        else:
            pending.extend(child for child in node.children if child.has_error or child.is_missing)
    return count
