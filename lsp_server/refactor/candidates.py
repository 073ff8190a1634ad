"""Whether a parsed file may have a place, found without a look at all of its nodes."""

import functools
from collections.abc import Sequence

import tree_sitter

from lsp_server.languages.language import Language
from lsp_server.refactor.conversion import SAME_KIND
from lsp_server.refactor.matching import match_at
from lsp_server.refactor.pattern import Branch, Leaf, Pattern, items
from lsp_server.refactor.syntax import node_of


def may_have_place(pattern: Sequence[Pattern], tree: tree_sitter.Tree, data: bytes, language: Language) -> bool:
    """Return whether the first node of a pattern fits anywhere in a file."""
    first = pattern[0]
    if not isinstance(first, Branch | Leaf):
        return True
    query = _query(tree.language, first.kind)
    if query is None:
        return False
    leaf = next(items((first,)))
    start = leaf.text.encode() if isinstance(leaf, Leaf) and leaf.text.isidentifier() else b""
    needed = [item.text.encode() for item in items((first,)) if isinstance(item, Leaf) and item.text.isidentifier()]
    for raw in tree_sitter.QueryCursor(query).captures(tree.root_node).get("node", ()):
        if not data.startswith(start, raw.start_byte):
            continue
        text = data[raw.start_byte : raw.end_byte]
        if all(part in text for part in needed) and match_at(first, node_of(raw, data, language)) is not None:
            return True
    return False


@functools.cache
def _query(language: tree_sitter.Language, kind: str) -> tree_sitter.Query | None:
    """Return the query of all nodes of a kind; None if the grammar has no such nodes."""
    kinds = [kind, *(other for other, same in SAME_KIND.items() if same == kind)]
    known = [one for one in kinds if language.id_for_node_kind(one, True)]
    return tree_sitter.Query(language, " ".join(f"({one}) @node" for one in known)) if known else None
