"""The open documents. Their text is edited and their syntax trees are parsed incrementally."""

import logging
import time
from collections.abc import Sequence
from pathlib import PurePath
from urllib.parse import unquote, urlsplit

import attrs
import tree_sitter
from lsprotocol import types

from lsp_server.documents.changed_part import changed_part
from lsp_server.documents.deletions import Deletions
from lsp_server.documents.recent_edits import RecentEdits
from lsp_server.documents.source import Source, spliced
from lsp_server.languages.language import Language
from lsp_server.languages.registry import language_for

log = logging.getLogger("midspan.documents")

_PARSE_SECONDS = 3.0
_EDIT_SECONDS = 0.5
_TRIAL_SECONDS = 0.05
# A text that took too long to parse is parsed again after this many times that time.
_PATIENCE = 10


@attrs.frozen
class Snapshot:
    """One version of a document. It never changes: a request may await while the document is edited.

    `tree` is None for a language without a grammar, and for a text that took too long to parse.
    """

    uri: str
    path: str
    version: int
    language: Language
    source: Source
    tree: tree_sitter.Tree | None
    deletions: Deletions
    edits: RecentEdits = attrs.field(factory=RecentEdits)

    @property
    def text(self) -> str:
        return self.source.text

    @property
    def full(self) -> str:
        """The path of the document's file; "" if it has none."""
        return self.path if is_file(self.uri) else ""

    def replaced(self, start: int, end: int, text: str) -> "Snapshot":
        """Return this version with `text` in place of the characters from `start` to `end`, parsed incrementally."""
        source = self.source.replaced(start, end, text)
        if self.tree is None:
            return attrs.evolve(self, source=source)
        edited = spliced(self.tree, self.source, source, start, end, start + len(text))
        return attrs.evolve(self, source=source, tree=self.language.parse(source.data, edited, _TRIAL_SECONDS))


@attrs.frozen
class OpenDocument:
    """The current version of a document, unparsed."""

    uri: str
    path: str
    version: int
    language: Language
    text: str

    @property
    def full(self) -> str:
        """The path of the document's file; "" if it has none."""
        return self.path if is_file(self.uri) else ""


@attrs.define
class _Document:
    uri: str
    path: str
    version: int
    language: Language
    source: Source
    deletions: Deletions = attrs.field(factory=Deletions)
    edits: RecentEdits = attrs.field(factory=RecentEdits)
    edited: tree_sitter.Tree | None = None
    """The last parsed tree, with every later edit noted in it. An incremental parse starts from it."""
    snapshot: Snapshot | None = None
    unparsed_until: float = 0.0

    def parse(self) -> tree_sitter.Tree | None:
        """Return the syntax tree, or None without a grammar and after a parse that took too long."""
        began = time.monotonic()
        if self.language.grammar is None or began < self.unparsed_until:
            return None
        seconds = _PARSE_SECONDS if self.edited is None else _EDIT_SECONDS
        tree = self.language.parse(self.source.data, self.edited, seconds)
        took = time.monotonic() - began
        if tree is not None:
            self.edited = tree
        elif took >= seconds:
            self.unparsed_until = began + took + _PATIENCE * took
            log.warning("a %s document took too long to parse; its suggestions go by lines for now", self.language.id)
        return tree


class Documents:
    """The open documents, by URI. A change is cheap; the text is parsed when a snapshot is requested."""

    def __init__(self) -> None:
        self._open: dict[str, _Document] = {}

    def open(self, uri: str, language_id: str, version: int, text: str) -> None:
        """Keep a document, in place of an earlier one with the same URI."""
        path = path_of(uri)
        self._open[uri] = _Document(uri, path, version, language_for(language_id, path), Source.of(text))

    def change(
        self,
        uri: str,
        version: int,
        changes: Sequence[types.TextDocumentContentChangeEvent],
        encoding: types.PositionEncodingKind | str,
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
                document.deletions = document.deletions.replaced(old, change.text, start)
                document.edits = document.edits.changed(old, start, end, change.text, new_end)
                document.source = Source.of(change.text)
                document.edited = None
        document.version = version
        document.snapshot = None

    def close(self, uri: str) -> None:
        """Drop a document."""
        self._open.pop(uri, None)

    def text(self, uri: str, language: Language) -> str | None:
        """Return the current text without parsing it; None when it is not open, or in another language."""
        document = self._open.get(uri)
        return document.source.text if document is not None and document.language is language else None

    def all(self) -> list[OpenDocument]:
        """Return the current version of every open document, without parsing any."""
        return [
            OpenDocument(document.uri, document.path, document.version, document.language, document.source.text)
            for document in self._open.values()
        ]

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
                document.parse(),
                document.deletions,
                document.edits,
            )
        return document.snapshot


def offset_at(snapshot: Snapshot, position: types.Position, encoding: types.PositionEncodingKind | str) -> int:
    """Return the index of `position` in the text. A position past the end of a line or the text is clamped to it."""
    return _offset(snapshot.source, position, encoding)


def position_at(snapshot: Snapshot, offset: int, encoding: types.PositionEncodingKind | str) -> types.Position:
    """Return the position of `offset`. It is clamped to the text and, between "\\r" and "\\n", to the line's end."""
    return position_in(snapshot.source, offset, encoding)


def position_in(source: Source, offset: int, encoding: types.PositionEncodingKind | str) -> types.Position:
    """Return the position of `offset` in a text, as position_at does."""
    offset = min(max(offset, 0), len(source.text))
    line = source.lines.at(offset)
    before = source.text[source.lines.start(line) : min(offset, source.line_end(line))]
    return types.Position(line, _units(before, encoding))


def is_file(uri: str) -> bool:
    """Tell whether a URI names a file. An editor shows old versions of a file with a scheme of its own."""
    return uri.startswith("file:")


def path_of(uri: str) -> str:
    """Return the path of a URI with the host's separators; of `untitled:` and the like, the text after the colon."""
    parts = urlsplit(uri)
    path = unquote(parts.path)
    if parts.netloc and parts.scheme == "file":
        path = f"//{parts.netloc}{path}"
    if len(path) > 2 and path[0] == "/" and path[2] == ":" and path[1].isalpha():
        path = path[1:]
    return str(PurePath(path)) if path else ""


def _edit(document: _Document, replaced: types.Range, text: str, encoding: types.PositionEncodingKind | str) -> None:
    old = document.source
    start, end = sorted((_offset(old, replaced.start, encoding), _offset(old, replaced.end, encoding)))
    new = old.replaced(start, end, text)
    if document.edited is not None:
        document.edited = spliced(document.edited, old, new, start, end, start + len(text))
    document.deletions = document.deletions.edited(old.text, start, end, text)
    document.edits = document.edits.changed(old.text, start, end, new.text, start + len(text))
    document.source = new


def _offset(source: Source, position: types.Position, encoding: types.PositionEncodingKind | str) -> int:
    if position.line >= len(source.lines):
        return len(source.text)
    start = source.lines.start(position.line)
    line = source.line_text(position.line)
    if line.isascii() or encoding == types.PositionEncodingKind.Utf32:
        return start + min(position.character, len(line))
    units = 0
    for index, char in enumerate(line):
        units += _units(char, encoding)
        if units > position.character:
            return start + index
    return start + len(line)


def _units(text: str, encoding: types.PositionEncodingKind | str) -> int:
    """Return the length of `text` in the code units of `encoding`."""
    if text.isascii() or encoding == types.PositionEncodingKind.Utf32:
        return len(text)
    if encoding == types.PositionEncodingKind.Utf8:
        return len(text.encode("utf-8", "surrogatepass"))
    return len(text) + sum(char > "\uffff" for char in text)
