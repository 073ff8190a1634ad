"""What Midspan knows of a language: its grammar and how a text is parsed, its strings, comments and brackets."""

import functools
import importlib
import logging
import re
import threading
import time
from collections.abc import Callable

import attrs
import tree_sitter

_TOKEN_SECONDS = 0.01
"""A token may take so much longer than the deadline. tree-sitter looks at the clock between tokens only."""
_EXACT = 64
"""Up to so many bytes there is a buffer of each size. At least four must fit: a character may need all of them."""
_LARGEST = 14
"""The largest buffer has 2 ** 14 bytes."""
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


class Parse:
    """One parse of UTF-8 `source`, incremental if there is an earlier tree with its edits noted.

    On some broken texts, such as an unclosed comment in TSX, a grammar's error recovery never ends. So each run has a
    deadline. A single token can take minutes: thousands of unclosed literals are each read to the end of the text. The
    only code of ours that runs meanwhile hands out the text, so it ends the text there, and `ended` is True.
    A parse has a parser of its own, which no other thread may use at the same time.
    """

    def __init__(self, grammar: tree_sitter.Language, source: bytes, edited: tree_sitter.Tree | None) -> None:
        self._parser = tree_sitter.Parser(grammar)
        self._source, self._edited = source, edited
        self.seconds = 0.0
        """How much of the processor's time it took: on a busy machine, others have most of the clock's."""
        self.ended = False
        """Whether it was cut off inside a token, and cannot go on."""

    def run(self, seconds: float) -> tree_sitter.Tree | None:
        """Parse on for at most `seconds`, or some milliseconds more. Return the tree if that is the end."""
        if self.ended:
            return None
        began, deadline, read = time.thread_time(), time.perf_counter() + seconds, reader(self._source)
        latest = began + seconds + _TOKEN_SECONDS

        def read_in_time(byte: int, point: tree_sitter.Point) -> bytes | bytearray:
            if self.ended or time.thread_time() > latest:
                self.ended = True
                return b""
            return read(byte, point)

        def give_up(_: int, __: bool) -> bool:
            return self.ended or time.perf_counter() > deadline

        try:
            if self._edited is None:
                tree = self._parser.parse(read_in_time, progress_callback=give_up)
            else:
                tree = self._parser.parse(read_in_time, self._edited, progress_callback=give_up)
            return None if self.ended else tree
        except ValueError:  # tree-sitter keeps what is parsed, and goes on there when it is called again
            return None
        finally:
            self.seconds += time.thread_time() - began


class _Buffers(threading.local):
    """Into which tree-sitter's text is copied in pieces, by size. One set a thread: others may parse meanwhile.

    tree-sitter's binding (0.26) never releases what its read callback returns. New bytes for each piece would stay
    until the process ends: some 50 kB for each key in a long file.
    """

    def __init__(self) -> None:
        sizes = (*range(1, _EXACT + 1), *(1 << power for power in range(_EXACT.bit_length(), _LARGEST + 1)))
        self.by_size = {size: bytearray(size) for size in sizes}


_buffers = _Buffers()


def reader(source: bytes) -> Callable[[int, tree_sitter.Point], bytes | bytearray]:
    """Return a read callback for tree_sitter.Parser.parse. What it returns is valid until its next call."""
    view, by_size = memoryview(source), _buffers.by_size

    def read(byte: int, _: tree_sitter.Point) -> bytes | bytearray:
        left = len(view) - byte
        if left <= 0:
            return b""
        # tree-sitter reads a character again that a piece cuts in two, and the next piece has all of it.
        buffer = by_size[left if left <= _EXACT else 1 << min(left.bit_length() - 1, _LARGEST)]
        buffer[:] = view[byte : byte + len(buffer)]
        return buffer

    return read


def errors(root: tree_sitter.Node) -> list[tree_sitter.Node]:
    """Return the outermost ERROR nodes and the MISSING tokens. Only subtrees with errors are visited."""
    nodes: list[tree_sitter.Node] = []
    pending = [root] if root.has_error else []
    while pending:
        node = pending.pop()
        if node.is_error or node.is_missing:
            nodes.append(node)
        else:
            pending.extend(child for child in node.children if child.has_error or child.is_missing)
    return nodes


def is_refused(language: str, source: bytes) -> bool:
    """Return whether no parser may get UTF-8 `source`: it would overwrite memory, or keep the event loop for too long.

    `language` is an id. The scanner of a grammar keeps what is open (indents, heredocs, literals), and writes it into
    1,024 bytes of the parser after each token. Some write more, or read back what does not fit: then the process ends,
    here or anywhere later. No exception is raised, so the only way out is to see it before. Each bound here is one of
    the most that a text can have open at a time. It takes some microseconds a key; such a text has no tree, and is cut
    by lines.

    True of tree-sitter-yaml 0.7.2, -python 0.25.0, -ruby 0.23.1 and -sql 0.3.13. The others bound what they write (C#
    and Markdown only since the versions in pyproject.toml), or keep nothing. tests/hardening/parsers.py watches all.
    """
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


_CHECKS: dict[str, Callable[[bytes], bool]] = {"yaml": _yaml, "python": _python, "ruby": _ruby, "sql": _sql}


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

    `indentation_is_syntax` says that a body ends where its indentation does. `indent_width` is in spaces, also of a
    tab.
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
    indents_with_tabs: bool = False
    indentation_is_syntax: bool = False

    @property
    def indent(self) -> str:
        """One step of the indentation, in a file that shows none yet."""
        return "\t" if self.indents_with_tabs else " " * self.indent_width

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
        if self.id == "rust":  # older code calls a macro that has the name of today's keyword
            source = source.replace(b"try!(", b"try_(")
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
