"""What the parts of one editor session share."""

from pathlib import PurePath

import attrs
from lsprotocol import types

from engine.protocol import Fill
from lsp_server.configuration import Configuration
from lsp_server.documents import Documents, Snapshot
from lsp_server.engine_link import EngineLink
from lsp_server.exclusion import why_secret, why_unfit
from lsp_server.notebooks import Notebooks, as_script
from lsp_server.offers import Offers
from lsp_server.status import StatusBoard
from lsp_server.syntax.hole import Hole
from lsp_server.syntax.window import prefix_of


@attrs.define
class Session:
    """`encoding` is how the editor counts columns; `folders` are the paths of its workspace folders."""

    configuration: Configuration
    documents: Documents
    board: StatusBoard
    link: EngineLink
    offers: Offers
    notebooks: Notebooks = attrs.field(factory=Notebooks)
    encoding: types.PositionEncodingKind | str = types.PositionEncodingKind.Utf16
    folders: list[str] = attrs.field(factory=list)
    _language_ids: dict[str, str] = attrs.field(factory=dict)
    _unfit: dict[str, str] = attrs.field(factory=dict)

    def open(self, document: types.TextDocumentItem) -> None:
        """Take a document in; one that is too large or binary is neither kept nor parsed, until it is opened anew."""
        self.close(document.uri)
        self._language_ids[document.uri] = document.language_id
        if (why := why_unfit(document.text)) is not None:
            self._unfit[document.uri] = why
        else:
            self.documents.open(document.uri, document.language_id, document.version, document.text)

    def change(self, params: types.DidChangeTextDocumentParams) -> None:
        """Follow the editor's changes of a document."""
        document = params.text_document
        if document.uri not in self._unfit:
            self.documents.change(document.uri, document.version, params.content_changes, self.encoding)

    def close(self, uri: str) -> None:
        """Forget a document."""
        self._language_ids.pop(uri, None)
        self._unfit.pop(uri, None)
        self.documents.close(uri)

    def served(self, uri: str) -> Snapshot | None:
        """Return the document as it is now if suggestions are wanted for it, and allowed."""
        # Both the editor's name of the language and ours switch it off: ours for javascriptreact is javascript.
        if uri in self._unfit or not self.configuration.is_on(self._language_ids.get(uri)):
            return None
        snapshot = self.documents.snapshot(uri)
        if snapshot is None or not self.configuration.is_on(snapshot.language.id):
            return None
        return snapshot if self.why_excluded(snapshot) is None else None

    def why_unfit(self, uri: str) -> str | None:
        """Return why an open document was not taken in, or None."""
        return self._unfit.get(uri)

    def why_excluded(self, snapshot: Snapshot) -> str | None:
        """Return why a document is not shown to the model, or None."""
        return why_secret(snapshot.path, self.configuration.settings.exclude) or why_unfit(snapshot.text)

    def plan_fill(self, snapshot: Snapshot, hole: Hole, candidates: int = 1) -> Fill:
        """Return what is asked of the engine for a hole, by the settings."""
        settings = self.configuration.settings
        return Fill(
            id=0,
            prefix=self._prefix(snapshot, hole),
            suffix=hole.suffix,
            path=self._shown_path(snapshot),
            language=snapshot.language.id,
            extent=hole.extent,
            budget_ms=float(settings.budget_ms),
            max_tokens=settings.max_tokens,
            rule=settings.rule,
            candidates=candidates,
        )

    def _prefix(self, snapshot: Snapshot, hole: Hole) -> str:
        texts = (self.documents.text(cell, snapshot.language) for cell in self.notebooks.above(snapshot.uri))
        above = as_script((text for text in texts if text is not None), snapshot.language.id)
        return prefix_of(snapshot.source, hole.offset, above) if above else hole.prefix

    def _shown_path(self, snapshot: Snapshot) -> str:
        """The path as the model sees it: inside its workspace folder, as in the repositories that it learned from.

        A notebook passes for a script, as its cells do: models learn from those, and from hardly any notebook.
        """
        file = PurePath(snapshot.path)
        if self.notebooks.has(snapshot.uri) and file.name and snapshot.language.extensions:
            file = file.with_suffix(snapshot.language.extensions[0])
        for folder in self.folders:
            if file.is_relative_to(folder):
                return file.relative_to(folder).as_posix()
        return file.name
