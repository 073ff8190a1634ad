"""What Midspan knows of a language: its grammar, and its strings, comments, bodies and brackets."""

import functools
import importlib
import logging
import re

import attrs
import tree_sitter

from lsp_server.languages.parse import Parse
from lsp_server.languages.refused import is_refused

log = logging.getLogger("midspan.syntax")

_OPENER_CHARACTERS = 1000
"""At the end of a line. The patterns look ahead from each word, so time grows with the square of this."""
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

        Returns None without a grammar, when parsing takes longer than `seconds`, and for a text that no parser gets.
        """
        parse = self.begin_parse(source, edited)
        return parse.run(seconds) if parse is not None else None

    def begin_parse(self, source: bytes, edited: tree_sitter.Tree | None) -> Parse | None:
        """Return a parse that has not run yet; None without a grammar, and for a text that no parser gets."""
        if self.grammar is None or is_refused(self.id, source):
            return None
        grammar = _loaded(self.grammar)
        return Parse(grammar, source, edited) if grammar is not None else None

    def opener_of(self, line: str) -> Opener | None:
        """Return how `line`, without its comment and trailing white space, opens a body, or None."""
        end = line[-_OPENER_CHARACTERS:]
        return next((opener for opener in self.openers if re.search(opener.pattern, end)), None)


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
