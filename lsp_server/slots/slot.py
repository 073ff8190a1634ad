"""A slot: a place where code is missing by its syntax, and what was put there."""

import functools
import re
from importlib import resources
from typing import Literal

import attrs
import tree_sitter

from lsp_server.documents.store import Snapshot
from lsp_server.documents.text_edit import TextEdit
from lsp_server.refactor.edit.file_edit import FileEdit, Omission, Span, digest_of

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


SlotKind = Literal["stubs", "annotations", "docstrings"]
Shape = Literal["body", "expression", "type", "docstring"]
"""What fills a slot: the statements of a body, an expression, a type, or the text of a docstring."""


@attrs.frozen
class Slot:
    """A place to fill: `before`, the fill and `after` take the place of the characters from `start` to `end`.

    `title` says what is missing, as in "the type of `x`". `in_style` says that the file has the like elsewhere. `known`
    is the text, if the file itself says it, and `why` says how; no model is asked then. `is_sure` holds for most.
    """

    start: int
    end: int
    before: str
    after: str
    shape: Shape
    title: str
    known: str = ""
    why: str = ""
    is_sure: bool = False
    in_style: bool = True

    def opened(self, snapshot: Snapshot) -> tuple[Snapshot, int]:
        """Return the text with a hole in the slot's place, and the offset of the hole."""
        newline = snapshot.source.newline
        before, after = self.before.replace("\n", newline), self.after.replace("\n", newline)
        return snapshot.replaced(self.start, self.end, before + after), self.start + len(before)

    def filled(self, snapshot: Snapshot, text: str) -> TextEdit:
        """Return the edit that fills the slot with `text`."""
        source = snapshot.source
        whole = (self.before + text.replace("\r\n", "\n") + self.after).replace("\n", source.newline)
        return TextEdit(self.start, self.end, whole)


@attrs.frozen
class SlotPlace:
    """A filled slot. `reason` is a phrase. A `doubtful` place is to be asked about."""

    edit: TextEdit
    span: Span
    reason: str
    by_model: bool
    doubtful: bool = False


@attrs.frozen
class SlotEdit:
    """The filled slots of one file in their order, apart from each other, and the slots that were left out.

    `digest` names the text that the edits are for, see `digest_of`.
    """

    path: str
    digest: str
    places: tuple[SlotPlace, ...] = ()
    left_out: tuple[Omission, ...] = ()

    def file_edit(self, *, with_doubtful: bool) -> FileEdit:
        """Return the edits as those of any other refactoring."""
        places = [place for place in self.places if with_doubtful or not place.doubtful]
        return FileEdit(
            self.path,
            self.digest,
            tuple(place.edit for place in places),
            tuple(place.span for place in places),
            self.left_out,
        )


def slot_edit(snapshot: Snapshot, places: list[SlotPlace], left_out: list[Omission]) -> SlotEdit:
    """Return the edit of a snapshot, everything in its order."""
    return SlotEdit(
        snapshot.path,
        digest_of(snapshot.text),
        tuple(sorted(places, key=lambda place: (place.edit.start, place.edit.end))),
        tuple(sorted(left_out, key=lambda omission: omission.span.start)),
    )


def span_of(snapshot: Snapshot, slot: Slot) -> Span:
    """Return where a slot is."""
    return Span(slot.start, slot.end, snapshot.source.lines.at(slot.start))
