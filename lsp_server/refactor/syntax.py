"""A parsed text: its tree of our own nodes, its comments and its syntax errors."""

import attrs
import tree_sitter

from lsp_server.languages.language import Language
from lsp_server.languages.parsing import errors
from lsp_server.refactor.conversion import Comment, convert
from lsp_server.refactor.node import Node

PARSE_SECONDS = 3.0


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

    def in_string(self, byte: int) -> bool:
        """Return whether a byte is inside a string, where white space counts."""
        node = self.root
        while node.children:
            inner = next((child for child in node.children if child.start <= byte < child.end), None)
            if inner is None:
                return False
            node = inner
        return node.kind in self.language.strings or "string" in node.kind or node.kind == "heredoc_body"

    def line_indent(self, byte: int) -> str:
        """Return the white space at the start of the line that has `byte`."""
        first = self.data.rfind(b"\n", 0, byte) + 1
        line = self.data[first:byte]
        if line.strip(b" \t"):
            line = line[: len(line) - len(line.lstrip(b" \t"))]
        return line.decode()


def parse(data: bytes, language: Language) -> Syntax | None:
    """Return the syntax of a UTF-8 text; None without a grammar, or when parsing takes more than PARSE_SECONDS."""
    tree = language.parse(data, None, PARSE_SECONDS)
    return syntax_of(tree, data, language) if tree is not None else None


def syntax_of(tree: tree_sitter.Tree, data: bytes, language: Language) -> Syntax:
    """Return the syntax of a text that tree-sitter has parsed."""
    comments: list[Comment] = []
    root = convert(tree.walk(), data, language, comments)
    return Syntax(data, language, root, tuple(comments), len(errors(tree.root_node)))


def node_of(raw: tree_sitter.Node, data: bytes, language: Language) -> Node:
    """Return one node of a parsed text alone: it has no parent."""
    return convert(raw.walk(), data, language, [])
