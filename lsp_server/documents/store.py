"""The open documents, edited and parsed incrementally, and an editor's positions in them."""

import logging
import re
from collections.abc import Callable, Sequence
from pathlib import PurePath
from typing import Protocol
from urllib.parse import unquote, urlsplit

import attrs
import tree_sitter
from lsprotocol import types

from engine.protocol.rewrite import changed_part
from lsp_server.documents.edits import Deletions, RecentEdit, RecentEdits
from lsp_server.documents.parsing import SourceEdit, SyntaxTree
from lsp_server.documents.source import Source
from lsp_server.languages.language import Language
from lsp_server.languages.registry import language_for

log = logging.getLogger("midspan.documents")

_TRIAL_SECONDS = 0.05
_MAX_DEPTH = 1000
"""Nested nodes. Deeper code is cut by lines."""
Encoding = types.PositionEncodingKind | str
_NEWLINE_ONLY = ("vim", "emacs", "eglot", "helix", "kak")
_HALF = re.compile("[\ud800-\udfff]")


class LineAndCharacter(Protocol):
    """A position as LSP has it, whichever class a message has for it."""

    @property
    def line(self) -> int: ...

    @property
    def character(self) -> int: ...


@attrs.frozen
class OpenDocument:
    """One version of a document. It never changes: a request may await while the document is edited."""

    uri: str
    path: str
    version: int
    language: Language
    source: Source

    @property
    def text(self) -> str:
        return self.source.text

    @property
    def full(self) -> str:
        """The path of the document's file; "" if it has none."""
        return self.path if is_file(self.uri) else ""


@attrs.frozen
class Snapshot(OpenDocument):
    """A version with its syntax tree and its last edits.

    `tree` is None for a language without a grammar, and for a text that took too long to parse.
    """

    tree: tree_sitter.Tree | None
    deletions: Deletions
    edits: RecentEdits = attrs.field(factory=RecentEdits)

    def replaced(self, start: int, end: int, text: str, seconds: float = _TRIAL_SECONDS) -> "Snapshot":
        """Return this version with `text` in place of the characters from `start` to `end`, parsed incrementally.

        It has no tree if that would take more than `seconds`.
        """
        source = self.source.replaced(start, end, text)
        if self.tree is None:
            return attrs.evolve(self, source=source)
        edited = self.tree.copy()
        SourceEdit.between(self.source, source, start, end, start + len(text)).note_in(edited)
        return attrs.evolve(self, source=source, tree=self.language.parse(source.data, edited, seconds))

    def nodes_around(self, start: int, end: int) -> list[tree_sitter.Node]:
        """Return the nodes that contain these bytes, the smallest first, the whole file last; none without a tree.

        None also where they are too many. One way down from the root: `Node.parent` goes that way for each single step,
        which takes seconds where brackets are nested 10,000 times.
        """
        node = self.tree.root_node if self.tree is not None else None
        leaf = node.descendant_for_byte_range(start, end) if node is not None else None
        nodes: list[tree_sitter.Node] = []
        while node is not None and leaf is not None and len(nodes) <= _MAX_DEPTH:
            nodes.append(node)
            if node == leaf:
                return nodes[::-1]
            node = node.child_with_descendant(leaf)
        return []


@attrs.define
class _Document:
    uri: str
    path: str
    version: int
    language: Language
    source: Source
    syntax: SyntaxTree
    deletions: Deletions = attrs.field(factory=Deletions)
    edits: RecentEdits = attrs.field(factory=RecentEdits)
    snapshot: Snapshot | None = None


class Documents:
    """The open documents, by URI. A change is cheap; the text is parsed when a snapshot is requested.

    `newline_only` says how the editor counts lines. A snapshot has no tree if that would take more than
    `parse_seconds`. Then `on_unparsed` is called with its URI, and `parse_on` may give later snapshots of the same
    version a tree.
    """

    def __init__(self, parse_seconds: float = 3.0, on_unparsed: Callable[[str], None] = lambda _: None) -> None:
        self._open: dict[str, _Document] = {}
        self.newline_only = False
        self._parse_seconds, self._on_unparsed = parse_seconds, on_unparsed

    def open(self, uri: str, language_id: str, version: int, text: str) -> None:
        """Keep a document, in place of an earlier one with the same URI."""
        path, source = path_of(uri), self.source_of(text)
        language = language_for(language_id, path)
        self._open[uri] = _Document(uri, path, version, language, source, SyntaxTree(language, source))

    def change(
        self, uri: str, version: int, changes: Sequence[types.TextDocumentContentChangeEvent], encoding: Encoding
    ) -> None:
        """Apply `changes` in order. A change of a document that is not open is logged and ignored."""
        document = self._open.get(uri)
        if document is None:
            log.warning("change of a document that is not open; ignored")
            return
        for change in changes:
            if isinstance(change, types.TextDocumentContentChangePartial):
                _edit(document, change.range, change.text, encoding)
            else:
                old = document.source.text
                start, end, new_end = changed_part(old, change.text)
                document.deletions = document.deletions.edited(old, start, end, change.text[start:new_end])
                document.edits = document.edits.changed(old, start, end, change.text, new_end)
                document.source = self.source_of(change.text)
                document.syntax.replace(document.source)
        document.version = version
        document.snapshot = None

    def source_of(self, text: str) -> Source:
        """Return the source of a text, with lines as the editor counts them."""
        return Source.of(text, self.newline_only)

    def close(self, uri: str) -> None:
        """Drop a document."""
        self._open.pop(uri, None)

    def all(self) -> list[OpenDocument]:
        """Return the current version of every open document, without parsing any."""
        return [_unparsed(document) for document in list(self._open.values())]  # threads ask too

    def find(self, uri: str) -> OpenDocument | None:
        """Return the current version of a document without parsing it; None when it is not open."""
        document = self._open.get(uri)
        return _unparsed(document) if document is not None else None

    def newest_edit(self, uri: str) -> RecentEdit | None:
        """Return the newest edit of a document without parsing it; None without one."""
        document = self._open.get(uri)
        return document.edits.newest if document is not None else None

    def snapshot(self, uri: str) -> Snapshot | None:
        """Return the current version of a document, parsed; None when it is not open."""
        document = self._open.get(uri)
        if document is None:
            return None
        if document.snapshot is None:
            document.snapshot = Snapshot(
                uri,
                document.path,
                document.version,
                document.language,
                document.source,
                document.syntax.parse(self._parse_seconds),
                document.deletions,
                document.edits,
            )
            if document.snapshot.tree is None and document.syntax.may_go_on:
                self._on_unparsed(uri)
        return document.snapshot

    def is_current(self, version: OpenDocument) -> bool:
        """Return whether a document still has this version's text. An editor may use a version's number twice."""
        document = self._open.get(version.uri)
        return document is not None and document.source is version.source

    def parse_on(self, uri: str, seconds: float) -> bool:
        """Parse a document for at most `seconds` more. Return whether it may have a tree after more of that."""
        document = self._open.get(uri)
        if document is None:
            return False
        tree = document.syntax.parse(seconds)
        if tree is not None and document.snapshot is not None and document.snapshot.tree is None:
            document.snapshot = attrs.evolve(document.snapshot, tree=tree)
        return document.syntax.may_go_on


def counts_newlines_only(editor: str) -> bool:
    """Return whether a lone "\\r" ends no line in an editor of this name, against LSP.

    Editors that are not listed follow LSP or change such line ends when they open a file.
    """
    return any(name in editor.lower() for name in _NEWLINE_ONLY)


def _unparsed(document: _Document) -> OpenDocument:
    return OpenDocument(document.uri, document.path, document.version, document.language, document.source)


def is_file(uri: str) -> bool:
    """Tell whether a URI names a file. An editor shows old versions of a file with a scheme of its own."""
    return uri.startswith("file:")


def path_of(uri: str) -> str:
    """Return the path of a URI with the host's separators; of `untitled:` and the like, the text after the colon.

    No system takes a NUL in a path, so another character is in its place. "" is the path of what is no URI.
    """
    try:
        parts = urlsplit(uri)
    except ValueError:
        return ""
    path = unquote(parts.path).replace("\0", "\ufffd")
    if parts.scheme == "file" and parts.netloc.lower() not in ("", "localhost"):
        path = f"//{parts.netloc}{path}"
    if len(path) > 2 and path[0] == "/" and path[2] == ":" and path[1].isalpha():
        path = path[1:]
    return str(PurePath(path)) if path else ""


def _edit(document: _Document, replaced: types.Range, text: str, encoding: Encoding) -> None:
    old = document.source
    start, end = sorted((offset_in(old, replaced.start, encoding), offset_in(old, replaced.end, encoding)))
    start, end, text = with_halves_joined(old.text, start, end, text)
    new = old.replaced(start, end, text)
    document.syntax.edit(new, SourceEdit.between(old, new, start, end, start + len(text)))
    document.deletions = document.deletions.edited(old.text, start, end, text)
    document.edits = document.edits.changed(old.text, start, end, new.text, start + len(text))
    document.source = new


def offset_in(source: Source, position: LineAndCharacter, encoding: Encoding) -> int:
    """Return the index of `position` in the text. A position past the end of a line or the text is clamped to it.

    A position inside a character means its start.
    """
    if position.line >= len(source.lines):
        return len(source.text)
    start, end = source.lines.start(position.line), source.last_column(position.line)
    if encoding == types.PositionEncodingKind.Utf8:
        byte = source.lines.byte_start(position.line) + position.character
        return min(source.offset_of_byte(byte), end) if byte < len(source.data) else end
    if not source.is_wide or encoding == types.PositionEncodingKind.Utf32:
        return min(start + position.character, end)
    return _offset_of_unit(source.text, start, end, position.character)


def position_in(source: Source, offset: int, encoding: Encoding) -> types.Position:
    """Return the position of `offset`. It is clamped to the text and, between "\\r" and "\\n", to the line's end."""
    offset = min(max(offset, 0), len(source.text))
    line = source.lines.at(offset)
    start, offset = source.lines.start(line), min(offset, source.last_column(line))
    if encoding == types.PositionEncodingKind.Utf8:
        return types.Position(line, source.byte_at(offset) - source.lines.byte_start(line))
    if not source.is_wide or encoding == types.PositionEncodingKind.Utf32:
        return types.Position(line, offset - start)
    return types.Position(line, _utf16_length(source.text[start:offset]))


def _offset_of_unit(text: str, start: int, end: int, unit: int) -> int:
    """Return the last offset from `start` to `end` that at most `unit` units of UTF-16 lie before.

    Bisection: each step counts the half that is left, in C. A loop over characters takes half a second in a line of
    two million.
    """
    low, high = start, min(end, start + unit)
    while low < high:
        middle = (low + high + 1) // 2
        units = _utf16_length(text[low:middle])
        if units <= unit:
            low, unit = middle, unit - units
        else:
            high = middle - 1
    return low


def _utf16_length(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def with_halves_joined(old: str, start: int, end: int, text: str) -> tuple[int, int, str]:
    """Return an edit of `old[start:end]` to `text`, widened where a half meets its other one at a border.

    Two halves of a character (surrogates) that come in two edits become one, as in an editor that counts UTF-16.
    """
    before, after = old[max(start - 1, 0) : start], old[end : end + 1]
    if _is_high(before) and _is_low(text[:1] or after):
        start, text = start - 1, before + text
    if _is_high(text[-1:]) and _is_low(after):
        end, text = end + 1, text + after
    if _HALF.search(text):
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    return start, end, text


def _is_high(half: str) -> bool:
    return "\ud800" <= half <= "\udbff"


def _is_low(half: str) -> bool:
    return "\udc00" <= half <= "\udfff"
