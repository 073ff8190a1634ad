"""The queries that find slots: queries/LANGUAGE/KIND.scm, in the language of tree-sitter's queries.

A node that a query captures as @exempt has no slots inside; @exempt.empty no empty bodies. Names that begin with "_"
are for predicates.
"""

import functools
import re
from importlib import resources
from typing import Literal

import tree_sitter

from lsp_server.documents.store import Snapshot

_SAME = {"typescriptreact": "typescript"}
"""Languages with the queries of another one."""

Captures = dict[str, list[tree_sitter.Node]]


def has_query(language: str, name: str) -> bool:
    """Return whether slots of this kind are known in a language."""
    return _text(_SAME.get(language, language), name) is not None


def matches(snapshot: Snapshot, name: str) -> list[Captures]:
    """Return the captures of each match of a query, in the order of the text; none without a tree or a query."""
    tree = snapshot.tree
    if tree is None:
        return []
    query = _query(snapshot.language.id, name, tree.language)
    if query is None:
        return []
    holds = _Predicates(snapshot.source.data)
    return [captures for _, captures in tree_sitter.QueryCursor(query).matches(tree.root_node, holds)]


def is_inside(node: tree_sitter.Node, others: list[tree_sitter.Node]) -> bool:
    """Return whether a node is one of the others, or inside one."""
    return any(other.start_byte <= node.start_byte and node.end_byte <= other.end_byte for other in others)


def text_of(node: tree_sitter.Node | None, data: bytes) -> str:
    """Return the text of a node of the parsed `data`, "" for none. Node.text takes a hundred times as long."""
    return data[node.start_byte : node.end_byte].decode("utf-8", "replace") if node is not None else ""


@functools.cache
def _text(folder: str, name: str) -> str | None:
    file = resources.files("lsp_server.slots").joinpath("queries", folder, f"{name}.scm")
    return file.read_text("utf-8") if file.is_file() else None


class _Predicates:
    """Evaluates the predicates of a query on the text. py-tree-sitter's own read it again by the parser's callback.

    That takes a hundred times as long, and what they read is never freed.
    """

    def __init__(self, data: bytes) -> None:
        self._data = data

    def __call__(
        self,
        predicate: str,
        args: list[tuple[str, Literal["capture", "string"]]],
        pattern_index: int,
        captures: Captures,
    ) -> bool:
        texts = [text_of(node, self._data) for node in captures.get(args[0][0], ())]
        values = [value for value, _ in args[1:]]
        if predicate == "text-match?":
            return all(re.search(values[0], text) for text in texts)
        if predicate == "text-not-match?":
            return not any(re.search(values[0], text) for text in texts)
        assert predicate in ("text-eq?", "text-any-of?"), predicate
        return all(text in values for text in texts)


@functools.cache
def _query(language: str, name: str, grammar: tree_sitter.Language) -> tree_sitter.Query | None:
    text = _text(_SAME.get(language, language), name)
    return tree_sitter.Query(grammar, text.replace("(#", "(#text-")) if text is not None else None
