"""What the parts of one editor session share."""

from pathlib import PurePath

import attrs
from lsprotocol import types

from engine.protocol.messages import Fill, ModelInfo, Snippet
from lsp_server.configuration import Configuration
from lsp_server.documents.exclusion import why_secret, why_unfit
from lsp_server.documents.notebooks import Notebooks, as_script
from lsp_server.documents.store import Documents, Opened, Snapshot
from lsp_server.engine_link.link import EngineLink
from lsp_server.engine_link.status import StatusBoard, leaves_machine
from lsp_server.hole.context_budget import context_budget_of
from lsp_server.hole.hole import Hole, cut_hole
from lsp_server.hole.related_files import RelatedFiles
from lsp_server.hole.window import ContextBudget, prefix_of
from lsp_server.offers import Offers


@attrs.define
class Session:
    """`encoding` is how the editor counts columns; `folders` are the paths of its workspace folders."""

    configuration: Configuration
    documents: Documents
    board: StatusBoard
    link: EngineLink
    offers: Offers
    notebooks: Notebooks = attrs.field(factory=Notebooks)
    related: RelatedFiles = attrs.field(init=False)
    encoding: types.PositionEncodingKind | str = types.PositionEncodingKind.Utf16
    folders: list[str] = attrs.field(factory=list)
    _language_ids: dict[str, str] = attrs.field(factory=dict)
    _unfit: dict[str, str] = attrs.field(factory=dict)

    def __attrs_post_init__(self) -> None:
        self.related = RelatedFiles(self.documents)

    def open(self, document: types.TextDocumentItem) -> None:
        """Take a document in; one that is too large or binary is neither kept nor parsed, until it is opened anew."""
        self.close(document.uri)
        self._language_ids[document.uri] = document.language_id
        if (why := why_unfit(document.text)) is not None:
            self._unfit[document.uri] = why
        else:
            self.documents.open(document.uri, document.language_id, document.version, document.text)
            self.related.recent.see(document.uri)

    def change(self, params: types.DidChangeTextDocumentParams) -> None:
        """Follow the editor's changes of a document."""
        document = params.text_document
        if document.uri not in self._unfit:
            self.documents.change(document.uri, document.version, params.content_changes, self.encoding)
            for change in params.content_changes:
                if isinstance(change, types.TextDocumentContentChangePartial):
                    first, last = change.range.start.line, change.range.end.line
                    self.related.recent.note(document.uri, first, last - first, change.text.count("\n"))

    def close(self, uri: str) -> None:
        """Forget a document."""
        self._language_ids.pop(uri, None)
        self._unfit.pop(uri, None)
        self.related.forget(uri)
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

    def why_excluded(self, document: Snapshot | Opened) -> str | None:
        """Return why a document is not shown to the model, or None."""
        return why_secret(document.path, self.configuration.settings.exclude) or why_unfit(document.text)

    def cut(self, snapshot: Snapshot, offset: int, model: ModelInfo) -> Hole:
        """Cut the hole at `offset`, with as much around it as the model reads."""
        return cut_hole(snapshot, offset, self._reach(model))

    def plan_fill(
        self, snapshot: Snapshot, hole: Hole, model: ModelInfo, candidates: int = 1, min_line_probability: float = 0.0
    ) -> Fill:
        """Return what is asked of the engine for a hole, by the settings and by what the model has room for.

        `min_line_probability` is how likely right a first line must be to be of any use.
        """
        settings, reach = self.configuration.settings, self._reach(model)
        return Fill(
            id=0,
            prefix=self._prefix(snapshot, hole, reach),
            suffix=hole.suffix,
            path=self._shown_path(snapshot),
            language=snapshot.language.id,
            snippets=self._related(snapshot, reach, model),
            extent=hole.extent,
            budget_ms=float(settings.budget_ms),
            max_tokens=settings.max_tokens,
            min_line_probability=min_line_probability,
            rule=settings.rule,
            candidates=candidates,
        )

    def _reach(self, model: ModelInfo) -> ContextBudget:
        return context_budget_of(model, self.configuration.settings.context_tokens)

    def _related(self, snapshot: Snapshot, reach: ContextBudget, model: ModelInfo) -> list[Snippet]:
        wanted = self.configuration.settings.related_files
        if not reach.related or wanted == "never" or (wanted == "local" and leaves_machine(model)):
            return []
        return self.related.around(snapshot, reach.related, self._related_path)

    def _related_path(self, other: Opened) -> str | None:
        """Return how the model is to know another file; None for one that it must not see, or is no file by itself."""
        if self.notebooks.has(other.uri) or self.why_excluded(other) is not None:
            return None
        return self._shown_path(other)

    def _prefix(self, snapshot: Snapshot, hole: Hole, reach: ContextBudget) -> str:
        texts = (self.documents.text(cell, snapshot.language) for cell in self.notebooks.above(snapshot.uri))
        above = as_script((text for text in texts if text is not None), snapshot.language.id)
        return prefix_of(snapshot.source, hole.offset, above, reach) if above else hole.prefix

    def _shown_path(self, snapshot: Snapshot | Opened) -> str:
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
