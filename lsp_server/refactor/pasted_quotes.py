"""The quotes of pasted strings, as the rest of the file has them."""

from collections import Counter
from collections.abc import Iterator

from lsp_server.refactor.node import Node
from lsp_server.refactor.output import ByteEdit
from lsp_server.refactor.syntax import Syntax

_LANGUAGES = frozenset({"python", "javascript", "typescript", "typescriptreact"})
_FEW = 3
_MOST = 0.9
"""A file has a style if so many of its strings, and more than a few, have the same quotes."""


def quote_edits(syntax: Syntax, start: int, end: int) -> list[ByteEdit]:
    """Return the replacements of quotes between two bytes. Strings with a quote or a backslash stay as they are."""
    if syntax.language.id not in _LANGUAGES:
        return []
    strings = [(node, *_quotes(node, syntax)) for node in _strings(syntax.root)]
    simple = [(node, first, last) for node, first, last in strings if last in ("'", '"')]
    counts = Counter(last for node, _, last in simple if not start <= node.start < end)
    if not counts:
        return []
    style, most = counts.most_common(1)[0]
    if most < _FEW or most < _MOST * counts.total():
        return []
    parts: list[ByteEdit] = []
    for node, first, last in simple:
        inner = syntax.text(node.start + len(first.encode()), node.end - 1)
        is_pasted = start <= node.start and node.end <= end
        if is_pasted and last != style and not set("'\"\\{}") & set(inner):
            parts.append(ByteEdit(node.start, node.start + len(first.encode()), first[:-1] + style))
            parts.append(ByteEdit(node.end - 1, node.end, style))
    return parts


def _strings(root: Node) -> Iterator[Node]:
    return (node for node in root.walk() if node.kind == "string")


def _quotes(node: Node, syntax: Syntax) -> tuple[str, str]:
    """Return what a string begins with, its letters included, and what it ends with."""
    text = syntax.text(node.start, node.end)
    first = next((index for index, char in enumerate(text) if char in "'\"`"), 0)
    is_long = text[first : first + 3] in ("'''", '"""')
    return text[: first + 1], "" if is_long or len(text) < first + 2 else text[-1]
