"""The hole at a cursor: how much text around it the model sees, what kind of code it is in, how far a fill may go."""

from typing import Literal

import attrs

from engine.protocol.left_edge import left_edge
from engine.protocol.messages import Extent, ModelInfo
from lsp_server.documents.source import Source
from lsp_server.documents.store import Snapshot
from lsp_server.hole.scope import MAX_LINE, empty_body, indent_of, line_before, surrounding
from lsp_server.languages.language import Language, balance

CursorContext = Literal["rest of line", "statement", "body", "string", "comment"]

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


NEAR = ContextBudget(6000, 3000)
"""The budget for models with a short context, which read even less than this."""


def context_budget_of(model: ModelInfo, tokens: int = 0) -> ContextBudget:
    """Return the budget for a model. `tokens` is the user's own limit; 0 means no limit.

    A model with a short context gets NEAR and sees no other files.
    """
    readable = model.reading_tokens or model.context_tokens
    characters = _CHARACTERS_A_TOKEN * (min(tokens, readable) if tokens else readable)
    if characters <= NEAR.prefix + NEAR.suffix:
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
    deeper = len(before.expandtabs(tab)) > len(body.header.expandtabs(tab))
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


def normalize_newlines(text: str) -> str:
    """Return `text` with "\\n" line ends, on which models are trained, and "?" for what UTF-8 cannot encode."""
    return text.replace("\r\n", "\n").encode("utf-8", "replace").decode("utf-8")
