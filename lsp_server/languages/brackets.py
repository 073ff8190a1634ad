"""The brackets and quotes of a text, counted without a grammar: half-typed code seldom parses."""

import functools
import re

import attrs

from lsp_server.languages.language import BRACKETS, Language

CLOSERS = frozenset(BRACKETS.values())
_SPANS_LINES = ('"""', "'''", "`")


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
    """Count the brackets of `text` outside strings and line comments. `quote` opens the string in which it begins."""
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
