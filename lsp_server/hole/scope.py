"""What a cursor is inside of: a string, a comment, or a body that is still empty."""

from typing import Literal

import attrs
import tree_sitter

from lsp_server.documents.source import Source
from lsp_server.documents.store import Snapshot
from lsp_server.languages.language import balance

Surrounding = Literal["code", "string", "comment"]

# Code inside a string. The names are those of the grammars.
_INTERPOLATIONS = frozenset(
    {
        "interpolation",
        "interpolated_expression",
        "string_interpolation",
        "template_substitution",
        "command_substitution",
        "expansion",
        "simple_expansion",
    }
)
_BLOCK_COMMENT_ENDS = ("*/", "-->", "]]")
_MAX_LINES = 200
MAX_LINE = 2000
"""Characters on each side of the cursor. Minified code has a million in a line, and brackets are counted in Python."""
_MAX_DEPTH = 1000
"""Of nested nodes. What is nested deeper is cut by lines."""


@attrs.frozen
class Body:
    """An empty body: the indentation of its header, and the indentation that its lines should have."""

    header: str
    indent: str


def surrounding(snapshot: Snapshot, offset: int) -> Surrounding:
    """Return whether `offset` is in a string, a comment or code. Code inside an f-string is code."""
    if snapshot.tree is None or offset == 0:
        return "code"
    language = snapshot.language
    byte = snapshot.source.byte_at(offset)
    for node in _around(snapshot.tree, byte - 1, byte):
        if node.type in _INTERPOLATIONS:
            break
        if node.type in language.comments and node.start_byte < byte and not _has_ended(snapshot, node, byte):
            return "comment"
        if node.type in language.strings and node.start_byte < byte and (byte < node.end_byte or _is_open(node)):
            return "string"
    # The string may be the part that does not parse, and some grammars have no node for strings.
    may_be_string = snapshot.tree.root_node.has_error or not language.strings
    return "string" if may_be_string and balance(line_before(snapshot.source, offset), language).quote else "code"


def empty_body(snapshot: Snapshot, offset: int) -> Body | None:
    """Return the empty body that contains the blank line at `offset`, or None.

    The syntax tree shows it where the code parses. While a body is being typed the code often does not, so a line above
    that opens a body, with nothing indented deeper below it, counts too.
    """
    source, language = snapshot.source, snapshot.language
    header = _last_code(snapshot, offset)
    if header < 0:
        return None
    opens = language.opener_of(line_before(source, header + 1)) is not None
    indent = _header_indent(snapshot, header)
    below = _indent_below(snapshot, offset)
    is_empty = opens and (
        below is None or _width(below, language.indent_width) <= _width(indent, language.indent_width)
    )
    if not is_empty and not _in_empty_block(snapshot, offset):
        return None
    return Body(indent, indent + indent_unit(snapshot, offset))


def indent_unit(snapshot: Snapshot, offset: int) -> str:
    """Return one step of the file's indentation around `offset`: a tab or some spaces."""
    source = snapshot.source
    near = source.lines.at(offset)
    previous: str | None = None
    for line in range(max(0, near - _MAX_LINES), min(len(source.lines), near + _MAX_LINES)):
        text = source.line_text(line)
        if not text.strip():
            continue
        indent = indent_of(text)
        if indent.startswith("\t"):
            return "\t"
        if previous is not None and len(indent) > len(previous) and len(indent) - len(previous) in (2, 3, 4, 8):
            return indent[len(previous) :]
        previous = indent
    return " " * snapshot.language.indent_width


def line_before(source: Source, offset: int) -> str:
    """Return the text of the line before `offset`; of a very long line only the end, which decides what is shown."""
    return source.text[max(source.lines.start(source.lines.at(offset)), offset - MAX_LINE) : offset]


def indent_of(line: str) -> str:
    """Return the spaces and tabs at the start of `line`."""
    return line[: len(line) - len(line.lstrip(" \t"))]


def _around(tree: tree_sitter.Tree, start: int, end: int) -> list[tree_sitter.Node]:
    """Return the nodes that contain these bytes, the smallest first, the whole file last; none where they are too many.

    One way down from the root: `Node.parent` goes that way for each single step, which takes seconds where brackets are
    nested 10,000 times.
    """
    leaf = tree.root_node.descendant_for_byte_range(start, end)
    nodes: list[tree_sitter.Node] = []
    node: tree_sitter.Node | None = tree.root_node
    while node is not None and leaf is not None:
        nodes.append(node)
        if node == leaf:
            return nodes[::-1]
        if len(nodes) > _MAX_DEPTH:
            break
        node = node.child_with_descendant(leaf)
    return []


def _width(indent: str, tab: int) -> int:
    return len(indent.expandtabs(tab))


def _has_ended(snapshot: Snapshot, comment: tree_sitter.Node, byte: int) -> bool:
    """Return whether a block comment ends before `byte`. A line comment does not: the user may go on typing it."""
    if byte < comment.end_byte:
        return False
    end = snapshot.source.offset_of_byte(comment.end_byte)
    return snapshot.text.endswith((*_BLOCK_COMMENT_ENDS, "\n"), 0, end)


def _is_open(string: tree_sitter.Node) -> bool:
    """Return whether the closing quote is missing, so that the parser had to make one up."""
    return string.child_count > 0 and string.child(string.child_count - 1).is_missing


def _last_code(snapshot: Snapshot, offset: int) -> int:
    """Return the offset of the last code character before `offset`, skipping white space and comments; -1 for none."""
    source, language = snapshot.source, snapshot.language
    for skipped in range(_MAX_LINES + 1):
        last = len(source.text[:offset].rstrip()) - 1
        if last < 0 or snapshot.tree is None or skipped == _MAX_LINES:
            break
        byte = source.byte_at(last)
        comments = (node for node in _around(snapshot.tree, byte, byte + 1) if node.type in language.comments)
        node = next(comments, None)
        if node is None:
            break
        offset = source.offset_of_byte(node.start_byte)
    return last


def _header_indent(snapshot: Snapshot, last: int) -> str:
    """Return the indentation of the statement whose header ends at `last`. The header may span several lines."""
    source = snapshot.source
    line = source.lines.at(last)
    if snapshot.tree is not None:
        byte = source.byte_at(last)
        owners = _around(snapshot.tree, byte, byte + 1)[1:]
        if owners and owners[0].type in snapshot.language.blocks:
            del owners[0]
        # The last one is the whole file.
        if len(owners) > 1 and not (owner := owners[0]).is_error and owner.start_byte <= byte:
            line = source.lines.at_byte(owner.start_byte)
    return indent_of(source.line_text(line))


def _indent_below(snapshot: Snapshot, offset: int) -> str | None:
    source = snapshot.source
    line = source.lines.at(offset)
    rest = source.text[offset : source.line_end(line)]
    if rest.strip():
        return indent_of(source.line_text(line))
    for below in range(line + 1, min(len(source.lines), line + _MAX_LINES)):
        text = source.line_text(below)
        if text.strip():
            return indent_of(text)
    return None


def _in_empty_block(snapshot: Snapshot, offset: int) -> bool:
    if snapshot.tree is None:
        return False
    language = snapshot.language
    byte = snapshot.source.byte_at(offset)
    node = next((node for node in _around(snapshot.tree, byte, byte) if node.type in language.blocks), None)
    if node is None or not node.start_byte < byte < node.end_byte:
        return False
    return all(child.type in language.comments for child in node.named_children)
