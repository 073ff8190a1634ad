"""The part of the text around a hole that the model sees."""

from engine.protocol.left_edge import left_edge
from lsp_server.documents.source import Source
from lsp_server.hole.context_budget import NEAR, ContextBudget

_MAX_REST_CHARACTERS = 1000
_SNAP_CHARACTERS = 1024


def prefix_of(source: Source, offset: int, code_above: str = "", budget: ContextBudget = NEAR) -> str:
    """Return the text before the hole with "\\n" line ends; `code_above` comes before the document's own text.

    The engine reuses what it has read as long as the beginning stays the same. So the left edge does not follow the
    cursor: it moves in strides, to the start of a line, and between two moves typing only appends.
    """
    text = code_above + source.text if code_above else source.text
    end = len(code_above) + offset
    return normalize_newlines(text[_line_edge(text, end, budget) : end]).removeprefix("\ufeff")


def suffix_of(source: Source, offset: int, budget: ContextBudget = NEAR) -> str:
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
    """Return `text` with "\\n" line ends, which models learn from, and without what UTF-8 cannot encode."""
    return text.replace("\r\n", "\n").encode("utf-8", "replace").decode("utf-8")
