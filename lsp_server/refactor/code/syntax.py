"""A parsed text: its tree of our own nodes, its comments and its syntax errors."""

from bisect import bisect_right
from collections import Counter

import attrs
import tree_sitter

from lsp_server.languages.language import Language, errors
from lsp_server.refactor.code.macros import read_macros
from lsp_server.refactor.code.node import Comment, Node, convert

PARSE_SECONDS = 3.0
_OPENERS = (b":", b"{", b"(", b"[", b"=>")


@attrs.frozen(eq=False)
class Syntax:
    """A parsed text. `errors` counts the outermost ERROR nodes and the MISSING tokens."""

    data: bytes
    language: Language
    root: Node
    comments: tuple[Comment, ...]
    errors: int

    def text(self, start: int, end: int) -> str:
        """Return the text between two bytes."""
        return self.data[start:end].decode("utf-8", "surrogatepass")

    def tail(self, node: Node) -> str:
        """Return the end of a node that no token has, such as ";"."""
        *_, last = node.leaves()
        return self.text(last.end, node.end)

    def in_string(self, byte: int) -> bool:
        """Return whether a byte is inside a string, where white space counts."""
        node = self.root
        while node.children:
            inner = next((child for child in node.children if child.start <= byte < child.end), None)
            if inner is None:
                return False
            node = inner
        return node.kind in self.language.strings or "string" in node.kind or node.kind == "heredoc_body"

    def in_comment(self, byte: int) -> bool:
        """Return whether a byte is inside a comment."""
        index = bisect_right(self.comments, byte, key=lambda comment: comment.start) - 1
        return index >= 0 and byte < self.comments[index].end

    def line_indent(self, byte: int) -> str:
        """Return the white space at the start of the line that has `byte`."""
        first = self.data.rfind(b"\n", 0, byte) + 1
        line = self.data[first:byte]
        if line.strip(b" \t"):
            line = line[: len(line) - len(line.lstrip(b" \t"))]
        return line.decode()


def parse(data: bytes, language: Language) -> Syntax | None:
    """Return the syntax of a UTF-8 text.

    None without a grammar, when parsing takes more than PARSE_SECONDS, or when it is nested too deeply.
    """
    tree = language.parse(data, None, PARSE_SECONDS)
    try:
        return syntax_of(tree, data, language) if tree is not None else None
    except RecursionError:
        return None


def syntax_of(tree: tree_sitter.Tree, data: bytes, language: Language) -> Syntax:
    """Return the syntax of a text that tree-sitter has parsed.

    Raises RecursionError when it is nested too deeply.
    """
    comments: list[Comment] = []
    root = convert(tree.walk(), data, language, comments)
    if language.id == "rust":
        read_macros(root, data, language)
    return Syntax(data, language, root, tuple(comments), len(errors(tree.root_node)))


def indent_unit(syntax: Syntax, language: Language, without: tuple[int, int] = (0, 0)) -> str:
    """Return one step of a text's indentation: the most frequent one after a line that opens something.

    Lines that begin in a comment, a string, or the bytes `without` do not count.
    """
    steps: Counter[str] = Counter()
    before, opens, start = b"", False, 0
    for line in syntax.data.split(b"\n"):
        begin, start = start, start + len(line) + 1
        content = line.strip()
        indent = line[: len(line) - len(line.lstrip(b" \t"))]
        if not content or without[0] <= begin + len(indent) < without[1] or syntax.in_comment(begin + len(indent)):
            continue
        if opens and syntax.in_string(begin):
            continue
        if opens and indent.startswith(before) and len(indent) > len(before):
            steps[indent[len(before) :].decode()] += 1
        before, opens = indent, content.endswith(_OPENERS)
    if steps:
        return steps.most_common(1)[0][0]
    return language.indent
