"""Which part of the text around a hole the model sees."""

import attrs

from lsp_server.documents.source import Source

REST_CHARS = 1000
_SNAP_CHARS = 1024


@attrs.frozen
class ContextBudget:
    """How much the model sees, in characters: before the hole, below its line, and of other files."""

    prefix: int
    suffix: int
    related: int = 0

    @property
    def stride(self) -> int:
        """The steps in which the left edge of the prefix moves."""
        return self.prefix // 3


NEAR = ContextBudget(6000, 3000)
"""For models with a short window, which read less than that."""


def prefix_of(source: Source, offset: int, above: str = "", reach: ContextBudget = NEAR) -> str:
    """Return the text before the hole, its line ends as "\\n", with an anchored left edge; `above` goes before it all.

    The engine keeps what it encoded as long as the beginning stays the same. So the edge does not follow the cursor: it
    moves in strides, to a line start, and between two moves typing only appends.
    """
    text = above + source.text if above else source.text
    end = len(above) + offset
    return normalize_newlines(text[_left_edge(text, end, reach) : end]).removeprefix("\ufeff")


def suffix_of(source: Source, offset: int, reach: ContextBudget = NEAR) -> str:
    """Return the rest of the hole's line and the whole lines below it, their line ends as "\\n".

    The size is measured from the line below, so that it does not change while the hole's own line does.
    """
    line = source.lines.at(offset)
    below = source.line_stop(line)
    rest = source.text[offset:below]
    if len(rest) > REST_CHARS:
        return normalize_newlines(rest[:REST_CHARS])
    end = min(below + reach.suffix, len(source.text))
    last = source.lines.at(end)
    if end < len(source.text) and source.lines.start(last) > below:
        end = source.lines.start(last)
    return normalize_newlines(source.text[offset:end])


def _left_edge(text: str, offset: int, reach: ContextBudget) -> int:
    if offset <= reach.prefix:
        return 0
    edge = -(-(offset - reach.prefix) // reach.stride) * reach.stride
    newline = text.find("\n", edge - 1, edge + _SNAP_CHARS)
    return edge if newline < 0 else newline + 1


def normalize_newlines(text: str) -> str:
    """Make the line ends "\\n", which is what models learn from, and replace what UTF-8 cannot carry."""
    return text.replace("\r\n", "\n").encode("utf-8", "replace").decode("utf-8")
