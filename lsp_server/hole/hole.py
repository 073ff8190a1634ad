"""The hole at a cursor: the text around it, what kind of code it is in, and how far a fill may go."""

from typing import Literal

import attrs

from engine.protocol.messages import Extent
from lsp_server.documents.store import Snapshot
from lsp_server.hole.context_budget import NEAR, ContextBudget
from lsp_server.hole.scope import empty_body, indent_of, surrounding
from lsp_server.hole.window import prefix_of, suffix_of

CursorContext = Literal["rest of line", "statement", "body", "string", "comment"]

# Editors insert these, or they end a statement. When only they follow the cursor, the line counts as free.
_CLOSING = frozenset(")]}>;,:'\"`")


@attrs.frozen
class Hole:
    """A place to fill.

    `prefix` and `suffix` are what the model sees, with "\\n" line ends; `suffix` begins with the rest of the line.
    `line_before` and `line_after` are the two sides of the hole's own line. `indent` is the least indentation of the
    fill's lines: the white space before the cursor, or the indentation of an empty body. `offset` counts characters of
    the document.
    """

    prefix: str
    suffix: str
    extent: Extent
    cursor_context: CursorContext
    offset: int
    line_before: str
    line_after: str
    indent: str


def cut_hole(snapshot: Snapshot, offset: int, budget: ContextBudget = NEAR, code_above: str = "") -> Hole:
    """Cut the hole at `offset` out of the text, with as much around it as `budget` allows.

    `code_above` comes before the document's own text in the prefix. Code that does not parse, or has no grammar, is cut
    by its lines.
    """
    source = snapshot.source
    line = source.lines.at(offset)
    before = source.text[source.lines.start(line) : offset].removeprefix("\ufeff")
    after = source.text[offset : source.line_end(line)]
    extent, cursor_context, indent = _extent(snapshot, offset, before, after)
    prefix, suffix = prefix_of(source, offset, code_above, budget), suffix_of(source, offset, budget)
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
    deeper = len(before.expandtabs(tab)) > len(body.header.expandtabs(tab))
    return "lines", "body", before if deeper else body.indent
