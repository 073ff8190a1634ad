"""What Midspan knows of a language: its grammar, its strings, comments, bodies and brackets, and how these balance."""

import functools
import importlib
import logging
import re

import attrs
import tree_sitter

from lsp_server.languages.parsing import Parse, is_refused

log = logging.getLogger("midspan.syntax")

_OPENER_CHARACTERS = 1000
"""At the end of a line. The patterns look ahead from each word, so time grows with the square of this."""
BRACKETS = {"(": ")", "[": "]", "{": "}"}
CLOSERS = frozenset(BRACKETS.values())
_SPANS_LINES = ('"""', "'''", "`")


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


@attrs.frozen
class Bracket:
    """A bracket and its index in the text."""

    char: str
    index: int


@attrs.frozen
class Balance:
    """The brackets and quotes that a text leaves open.

    `opened` are its unclosed brackets, outermost first. `unmatched` are the closing brackets that close none of its
    own. `quote` opens the string in which the text ends, or is empty. `quote_closed` is the index of the quote that
    ends the string in which the text began, if it began in one.
    """

    opened: tuple[Bracket, ...]
    unmatched: tuple[Bracket, ...]
    quote: str
    quote_closed: int | None

    def closing(self) -> str:
        """Return the brackets that close what is open."""
        return "".join(BRACKETS[bracket.char] for bracket in reversed(self.opened))


def balance(text: str, language: Language, quote: str = "") -> Balance:
    """Count the brackets of `text` outside strings and line comments, without a grammar: half-typed code seldom parses.

    `quote` opens the string in which the text begins.
    """
    opened: list[Bracket] = []
    unmatched: list[Bracket] = []
    quote_closed: int | None = None
    began_in_string = bool(quote)
    in_comment = False
    for match in _tokens(language).finditer(text):
        token = match.group()
        if token[0] == "\\":
            continue
        if token == "\n":
            in_comment = False
            if quote not in _SPANS_LINES:
                quote = ""
        elif in_comment:
            continue
        elif quote:
            if token.startswith(quote):
                quote = ""
                if began_in_string:
                    began_in_string, quote_closed = False, match.start()
        elif token in language.line_comments:
            in_comment = True
        elif token in language.quotes:
            quote = token
        elif token in BRACKETS:
            opened.append(Bracket(token, match.start()))
        elif opened and BRACKETS[opened[-1].char] == token:
            opened.pop()
        elif token in CLOSERS:
            unmatched.append(Bracket(token, match.start()))
    return Balance(tuple(opened), tuple(unmatched), quote, quote_closed)


@functools.cache
def _tokens(language: Language) -> re.Pattern[str]:
    words = [*language.line_comments, *language.quotes, *BRACKETS, *CLOSERS, "\n"]
    return re.compile(r"\\.|" + "|".join(re.escape(word) for word in sorted(words, key=len, reverse=True)))
