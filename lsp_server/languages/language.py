"""What Midspan knows of a language: its grammar, and its strings, comments, bodies and brackets."""

import functools
import importlib
import logging
import re
import threading
import time

import attrs
import tree_sitter

from lsp_server.languages.chunks import reader

log = logging.getLogger("midspan.syntax")

BRACKETS = {"(": ")", "[": "]", "{": "}"}


@attrs.frozen
class Grammar:
    """A grammar wheel: the module to import, and its function that returns the grammar."""

    module: str
    function: str = "language"


@attrs.frozen
class Opener:
    """A pattern for the end of a line that opens a body, and the text that closes the body.

    `closing` is empty where closing the brackets is enough, or where the body may be missing.
    """

    pattern: str
    closing: str = ""


@attrs.frozen
class Language:
    """One language. `strings`, `comments` and `blocks` are node types of the grammar; `quotes` come longest first.

    `indentation_is_syntax` says that a body ends where its indentation does. `indent_width` is in spaces, for a file
    that has no indented line yet.
    """

    id: str
    extensions: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    grammar: Grammar | None = None
    line_comments: tuple[str, ...] = ()
    quotes: tuple[str, ...] = ()
    strings: frozenset[str] = frozenset()
    comments: frozenset[str] = frozenset()
    blocks: frozenset[str] = frozenset()
    openers: tuple[Opener, ...] = ()
    indent_width: int = 4
    indentation_is_syntax: bool = False

    def parse(self, source: bytes, edited: tree_sitter.Tree | None, seconds: float) -> tree_sitter.Tree | None:
        """Parse UTF-8 `source`, incrementally if there is an earlier tree with its edits noted.

        Returns None without a grammar, and when parsing takes longer than `seconds`: on some broken texts, such as an
        unclosed comment in TSX, a grammar's error recovery never ends, and the server would hang.
        """
        parser = _parser(self.grammar) if self.grammar is not None else None
        if parser is None:
            return None
        deadline, read = time.perf_counter() + seconds, reader(source)

        def give_up(_: int, __: bool) -> bool:
            return time.perf_counter() > deadline

        try:
            if edited is None:
                return parser.parse(read, progress_callback=give_up)
            return parser.parse(read, edited, progress_callback=give_up)
        except ValueError:
            parser.reset()
            return None

    def opener_of(self, line: str) -> Opener | None:
        """Return how `line`, without its comment and trailing white space, opens a body, or None."""
        return next((opener for opener in self.openers if re.search(opener.pattern, line)), None)


_of_thread = threading.local()


def _parser(grammar: Grammar) -> tree_sitter.Parser | None:
    """Return this thread's parser: a parser that two threads use at once crashes the process."""
    parsers: dict[Grammar, tree_sitter.Parser | None] = _of_thread.__dict__.setdefault("parsers", {})
    if grammar not in parsers:
        loaded = _loaded(grammar)
        parsers[grammar] = tree_sitter.Parser(loaded) if loaded is not None else None
    return parsers[grammar]


@functools.cache
def _loaded(grammar: Grammar) -> tree_sitter.Language | None:
    """Load a grammar for its first document: loading all of them would delay the server's start."""
    try:
        module = importlib.import_module(grammar.module)
        return tree_sitter.Language(getattr(module, grammar.function)())
    except (ImportError, AttributeError, ValueError) as error:
        log.warning(
            "grammar %s cannot be loaded (%s); suggestions go by lines; reinstall midspan", grammar.module, error
        )
        return None
