"""The hole at a cursor: how much text around it the model sees, what kind of code it is in, how far a fill may go.

The cursor is the user's, or after the selected item of the completion menu, or after a word.
"""

import re
from typing import Literal

import attrs
import tree_sitter
from lsprotocol import types

from engine.protocol.messages import Extent, ModelInfo, left_edge
from lsp_server.documents.source import Source, normalize_newlines
from lsp_server.documents.store import Snapshot, offset_in, position_in
from lsp_server.languages.indentation import Excerpt
from lsp_server.languages.language import Language, balance

CursorContext = Literal["rest of line", "statement", "body", "string", "comment"]
_WORD_CHAR = re.compile(r"\w")

# Editors insert these, or they end a statement. When only they follow the cursor, the line counts as free.
_CLOSING = frozenset(")]}>;,:'\"`")
_CHARACTERS_A_TOKEN = 3
"""Large vocabularies have 3 to 4 characters of code in a token. The engine cuts what is too long."""
_MAX_RELATED_CHARACTERS = 48_000
"""Characters of other files. The engine reads them only once, but that first reading should not take seconds."""
_MAX_CHARACTERS = 900_000
"""Characters of a prefix or a suffix. The engine accepts at most a million characters."""
_MAX_REST_CHARACTERS = 1000
"""Characters of the hole's own line after the cursor."""
_SNAP_CHARACTERS = 1024
"""The left edge of the prefix moves down by at most this much to the start of a line."""
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


@attrs.frozen
class Cursor:
    """Where a hole is. `snapshot` has the selected menu item inserted, if there is one, and `offset` is its end.

    Each suggestion begins with `inserted`, that item's text. It replaces `range`, whose text is `replaced`.
    """

    snapshot: Snapshot
    offset: int
    range: types.Range
    inserted: str = ""
    replaced: str = ""

    def without_entry(self, snapshot: Snapshot) -> "Cursor | None":
        """Return the cursor in `snapshot`, which lacks the entry; None if that does not begin with what is typed.

        Its items replace the same text: editors want that while the entry is selected.
        """
        if not self.inserted.startswith(self.replaced):
            return None
        offset = self.offset - len(self.inserted) + len(self.replaced)
        return Cursor(snapshot, offset, self.range, inserted=self.replaced, replaced=self.replaced)

    def item(self, text: str, accepted: types.Command) -> types.InlineCompletionItem:
        """Return the item that inserts `text` after the cursor; the editor runs `accepted` when the user takes it.

        The item always has a range: without one Neovim inserts the text wherever the cursor is by then.
        """
        insert = self.inserted + text
        # Editors drop an item whose text does not begin with what it replaces; the menu's own matching is looser.
        filter_text = None if insert.startswith(self.replaced) else self.replaced + text
        return types.InlineCompletionItem(
            insert_text=insert, filter_text=filter_text, range=self.range, command=accepted
        )


def cursor_of(
    snapshot: Snapshot, params: types.InlineCompletionParams, encoding: types.PositionEncodingKind | str
) -> Cursor:
    """Return the cursor of an inline completion request; positions outside the text are clamped."""
    offset = offset_in(snapshot.source, params.position, encoding)
    selected = params.context.selected_completion_info
    if selected is None:
        position = position_in(snapshot.source, offset, encoding)
        return Cursor(snapshot, offset, types.Range(position, position))
    start = offset_in(snapshot.source, selected.range.start, encoding)
    end = max(start, offset_in(snapshot.source, selected.range.end, encoding))
    return Cursor(
        snapshot.replaced(start, end, selected.text),
        start + len(selected.text),
        selected.range,
        inserted=selected.text,
        replaced=snapshot.text[start:end],
    )


def cursor_at_word(snapshot: Snapshot, position: types.Position, encoding: types.PositionEncodingKind | str) -> Cursor:
    """Return the cursor of a completion request. Its items replace the word before the cursor by a longer text."""
    offset = offset_in(snapshot.source, position, encoding)
    start, first = offset, max(0, offset - MAX_LINE)
    while start > first and (snapshot.text[start - 1].isalnum() or snapshot.text[start - 1] == "_"):
        start -= 1
    word = snapshot.text[start:offset]
    word_range = types.Range(
        position_in(snapshot.source, start, encoding), position_in(snapshot.source, offset, encoding)
    )
    return Cursor(snapshot, offset, word_range, inserted=word, replaced=word)


@attrs.frozen
class ContextBudget:
    """How many characters the model sees before the hole, below the hole's line, and in other files."""

    prefix: int
    suffix: int
    related: int = 0

    @property
    def stride(self) -> int:
        """The steps in which the left edge of the prefix moves, in characters."""
        return self.prefix // 3


NEAR = ContextBudget(48_000, 24_000)
"""The budget for models with a short context. They read less than this, but the memory looks up all of it: so it knows
most files whole."""
_SHORT_CHARACTERS = 9_000
"""What a model with a short context reads, at most."""


def context_budget_of(model: ModelInfo, tokens: int = 0) -> ContextBudget:
    """Return the budget for a model. `tokens` is the user's own limit; 0 means no limit.

    A model with a short context gets NEAR and sees no other files.
    """
    readable = model.reading_tokens or model.context_tokens
    characters = _CHARACTERS_A_TOKEN * (min(tokens, readable) if tokens else readable)
    if characters <= _SHORT_CHARACTERS:
        return NEAR
    related = min(characters // 4, _MAX_RELATED_CHARACTERS)
    own_file = characters - related
    return ContextBudget(min(own_file * 3 // 4, _MAX_CHARACTERS), min(own_file // 4, _MAX_CHARACTERS), related)


@attrs.frozen
class Hole:
    """A place to fill.

    `prefix` and `suffix` are what the model sees, with "\\n" line ends; `suffix` begins with the rest of the line,
    unless that only closes what is open before the cursor. `line_before` and `line_after` are the two sides of the
    hole's own line; of a very long one, what is near. `indent` is the least indentation of the fill's lines: the white
    space before the cursor, or the indentation of an empty body. `offset` counts characters of the document.
    """

    prefix: str
    suffix: str
    extent: Extent
    cursor_context: CursorContext
    offset: int
    line_before: str
    line_after: str
    indent: str

    @property
    def is_before_word(self) -> bool:
        """Whether a word follows the cursor directly: a name that ends the fill would become part of it."""
        return _WORD_CHAR.match(self.line_after) is not None


def cut_hole(snapshot: Snapshot, offset: int, budget: ContextBudget = NEAR, code_above: str = "") -> Hole:
    """Cut the hole at `offset` out of the text, with as much around it as `budget` allows.

    `code_above` comes before the document's own text in the prefix. Code that does not parse, or has no grammar, is cut
    by its lines.
    """
    source = snapshot.source
    line = source.lines.at(offset)
    before = line_before(source, offset).removeprefix("\ufeff")
    after = source.text[offset : min(source.line_end(line), offset + MAX_LINE)]
    extent, cursor_context, indent = _extent(snapshot, offset, before, after)
    prefix, suffix = _prefix_of(source, offset, code_above, budget), _suffix_of(source, offset, budget)
    if _only_closes(before, after, snapshot.language):
        # Editors close brackets and quotes at once. A model that sees this takes the line for complete.
        suffix = suffix.removeprefix(after)
    return Hole(prefix, suffix, extent, cursor_context, offset, before, after, indent)


def _extent(snapshot: Snapshot, offset: int, before: str, after: str) -> tuple[Extent, CursorContext, str]:
    inside = surrounding(snapshot, offset)
    line_is_free = not before.strip() and all(char.isspace() or char in _CLOSING for char in after)
    if inside != "code":
        extent: Extent = "lines" if line_is_free and not after.strip() else "line"
        return extent, inside, indent_of(before)
    if not line_is_free:
        return "line", "rest of line", indent_of(before)
    body = empty_body(snapshot, offset)
    if body is None:
        return "lines", "statement", before
    tab = snapshot.language.indent_width
    # Fewer spaces than the body needs are on their way there, where the header shows how wide a step is.
    is_short = bool(body.header) and body.indent.startswith(before)
    deeper = not is_short and len(before.expandtabs(tab)) > len(body.header.expandtabs(tab))
    return "lines", "body", before if deeper else body.indent


def _only_closes(before: str, after: str, language: Language) -> bool:
    """Return whether `after` has nothing but what closes the brackets and quotes that `before` leaves open."""
    opened = balance(before, language)
    return bool(after.strip()) and (opened.quote + opened.closing()).startswith(after.strip())


def _prefix_of(source: Source, offset: int, code_above: str = "", budget: ContextBudget = NEAR) -> str:
    """Return the text before the hole with "\\n" line ends; `code_above` comes before the document's own text.

    The engine reuses what it has read as long as the beginning stays the same. So the left edge does not follow the
    cursor. It moves in strides, to the start of a line; between two moves, typing only appends.
    """
    text = code_above + source.text if code_above else source.text
    end = len(code_above) + offset
    return normalize_newlines(text[_line_edge(text, end, budget) : end]).removeprefix("\ufeff")


def _suffix_of(source: Source, offset: int, budget: ContextBudget = NEAR) -> str:
    """Return the rest of the hole's line and whole lines below it, with "\\n" line ends.

    The length is measured from the line below, so the suffix keeps its end while the user types in the hole's line.
    """
    line = source.lines.at(offset)
    below = source.line_stop(line)
    rest = source.text[offset:below]
    if len(rest) > _MAX_REST_CHARACTERS:
        return normalize_newlines(rest[:_MAX_REST_CHARACTERS])
    end = min(below + budget.suffix, len(source.text))
    last = source.lines.at(end)
    if end < len(source.text) and source.lines.start(last) > below:
        end = source.lines.start(last)
    return normalize_newlines(source.text[offset:end])


def _line_edge(text: str, offset: int, budget: ContextBudget) -> int:
    edge = left_edge(offset, budget.prefix, budget.stride)
    if edge == 0:
        return 0
    newline = text.find("\n", edge - 1, edge + _SNAP_CHARACTERS)
    return edge if newline < 0 else newline + 1


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
    for node in snapshot.nodes_around(byte - 1, byte):
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
    lines, near = snapshot.source.lines, snapshot.source.lines.at(offset)
    first, last = max(0, near - _MAX_LINES), near + _MAX_LINES
    data, root = snapshot.source.data, snapshot.tree.root_node if snapshot.tree is not None else None
    end = lines.byte_start(last) if last < len(lines) else len(data)
    return Excerpt(data, lines.byte_start(first), end, snapshot.language, root).step()


def line_before(source: Source, offset: int) -> str:
    """Return the text of the line before `offset`; of a very long line only the end, which decides what is shown."""
    return source.text[max(source.lines.start(source.lines.at(offset)), offset - MAX_LINE) : offset]


def indent_of(line: str) -> str:
    """Return the spaces and tabs at the start of `line`."""
    return line[: len(line) - len(line.lstrip(" \t"))]


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
        if last < 0 or skipped == _MAX_LINES:
            break
        byte = source.byte_at(last)
        comments = (node for node in snapshot.nodes_around(byte, byte + 1) if node.type in language.comments)
        node = next(comments, None)
        if node is None:
            break
        offset = source.offset_of_byte(node.start_byte)
    return last


def _header_indent(snapshot: Snapshot, last: int) -> str:
    """Return the indentation of the statement whose header ends at `last`. The header may span several lines."""
    source = snapshot.source
    line = source.lines.at(last)
    byte = source.byte_at(last)
    owners = snapshot.nodes_around(byte, byte + 1)[1:]
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
    language = snapshot.language
    byte = snapshot.source.byte_at(offset)
    node = next((node for node in snapshot.nodes_around(byte, byte) if node.type in language.blocks), None)
    if node is None or not node.start_byte < byte < node.end_byte:
        return False
    return all(child.type in language.comments for child in node.named_children)
