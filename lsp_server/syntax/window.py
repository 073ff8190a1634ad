"""Which part of the text around a hole the model sees."""

from lsp_server.source import Source

PREFIX_CHARS = 6000
SUFFIX_CHARS = 3000
REST_CHARS = 1000
STRIDE = 2048
_SNAP_CHARS = 1024


def prefix_of(source: Source, offset: int, above: str = "") -> str:
    """Return the text before the hole, its line ends as "\\n", with an anchored left edge; `above` goes before it all.

    The engine keeps what it encoded as long as the beginning stays the same. So the edge does not follow the cursor: it
    moves in strides, to a line start, and between two moves typing only appends.
    """
    text = above + source.text if above else source.text
    end = len(above) + offset
    return _plain(text[_left_edge(text, end) : end]).removeprefix("\ufeff")


def suffix_of(source: Source, offset: int) -> str:
    """Return the rest of the hole's line and the whole lines below it, their line ends as "\\n".

    The size is measured from the line below, so that it does not change while the hole's own line does.
    """
    line = source.lines.at(offset)
    below = source.line_stop(line)
    rest = source.text[offset:below]
    if len(rest) > REST_CHARS:
        return _plain(rest[:REST_CHARS])
    end = min(below + SUFFIX_CHARS, len(source.text))
    last = source.lines.at(end)
    if end < len(source.text) and source.lines.start(last) > below:
        end = source.lines.start(last)
    return _plain(source.text[offset:end])


def _left_edge(text: str, offset: int) -> int:
    if offset <= PREFIX_CHARS:
        return 0
    edge = -(-(offset - PREFIX_CHARS) // STRIDE) * STRIDE
    newline = text.find("\n", edge - 1, edge + _SNAP_CHARS)
    return edge if newline < 0 else newline + 1


def _plain(text: str) -> str:
    """Make the line ends "\\n", which is what models learn from, and replace what UTF-8 cannot carry."""
    return text.replace("\r\n", "\n").encode("utf-8", "replace").decode("utf-8")
