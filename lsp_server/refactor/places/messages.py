"""Texts that an edit brings: one that names what is around its example is not meant where that is not."""

import re
from collections.abc import Iterable, Iterator, Sequence

from lsp_server.refactor.code.grammar import is_name, is_statement
from lsp_server.refactor.code.node import Node
from lsp_server.refactor.places.surroundings import function_around
from lsp_server.refactor.rules.pattern import Leaf, Pattern, Text, items

_WORD = re.compile(r"[A-Z]?[a-z]{2,}|[A-Z]{3,}")
_PLAIN = frozenset(
    {"and", "are", "can", "cannot", "could", "err", "error", "failed", "for", "from", "get", "has", "have", "into"}
    | {"nil", "not", "null", "set", "the", "was", "with"}
)


def named_around(pattern: Sequence[Pattern], template: Sequence[Pattern], old: Node) -> frozenset[str]:
    """Return the words of the texts that only the template has, and that names around the example `old` have too."""
    known = words(text for text, _ in _texts(pattern))
    return (words(text for text, is_text in _texts(template) if is_text) - known) & words_around(old)


def words_around(node: Node) -> frozenset[str]:
    """Return the words of the names in a node's statement, in the one around that and right before it, and of the
    function's name."""
    function = function_around(node)
    name = function.child("name") if function is not None else None
    tops = [one for one in (node, *node.ancestors()) if is_statement(one) and function_around(one) is function][:2]
    top = tops[-1] if tops else node
    siblings = top.parent.parts if top.parent is not None else [top]
    before = [one for one in siblings if one.end <= top.start][-1:]
    leaves = [leaf for one in (*before, top) for leaf in one.leaves() if is_name(leaf) and leaf.start < node.end]
    return words(leaf.text for leaf in (*leaves, *(name.leaves() if name is not None else ())))


def words(texts: Iterable[str]) -> frozenset[str]:
    """Return the words of names and texts, in small letters: "read", "all" of `readAll`, but no plain ones."""
    return frozenset(word.lower() for text in texts for word in _WORD.findall(text)) - _PLAIN


def _texts(patterns: Sequence[Pattern]) -> Iterator[tuple[str, bool]]:
    """Yield the texts of code, each with whether it is in quotes."""
    for item in items(patterns):
        if isinstance(item, Leaf):
            yield item.text, "string" in item.kind
        elif isinstance(item, Text):
            yield from ((part, True) for part in item.parts if isinstance(part, str))
