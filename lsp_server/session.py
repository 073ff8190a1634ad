"""One editor's session: its settings, its documents as the editor has them, and its engine. All requests share it."""

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import PurePath

import attrs
from lsprotocol import types

from engine.client.connection import EngineClient
from engine.protocol.messages import ModelInfo, Snippet
from lsp_server.documents.parsing import BackgroundParse
from lsp_server.documents.store import Documents, OpenDocument, Snapshot, is_file, path_of
from lsp_server.engine_link.link import EngineLink
from lsp_server.engine_link.offers import Offers
from lsp_server.engine_link.status import Snooze, StatusBoard, leaves_machine
from lsp_server.exclusion import why_data_unfit, why_secret, why_unfit
from lsp_server.hole.hole import context_budget_of
from lsp_server.hole.related_files import RelatedFiles
from lsp_server.settings import Configuration, Settings
from lsp_server.suggest.pipeline import Plan, plan
from lsp_server.workspace.memory import WorkspaceMemory

_MAGIC = ("%", "!", "?")
# These run the rest of their cell as Python. The cells of other magics are in another language.
_PYTHON_MAGICS = ("%%time", "%%timeit", "%%capture", "%%prun")


class Notebooks:
    """The code cells of each notebook, by the URIs of their documents."""

    def __init__(self) -> None:
        self._cells: dict[str, list[types.NotebookCell]] = {}
        self._notebook_of: dict[str, str] = {}

    def open(self, notebook: types.NotebookDocument) -> None:
        """Keep a notebook."""
        self.close(notebook.uri)
        self._cells[notebook.uri] = list(notebook.cells)
        self._index(notebook.uri, notebook.cells)

    def restructure(self, uri: str, change: types.NotebookCellArrayChange) -> None:
        """Replace `delete_count` cells from `start` by those of the change."""
        cells = self._cells.setdefault(uri, [])
        end = change.start + change.delete_count
        self._drop(cells[change.start : end])
        cells[change.start : end] = change.cells or []
        self._index(uri, change.cells or [])

    def update_cells(self, uri: str, changed: Sequence[types.NotebookCell]) -> None:
        """Note that cells have changed between code and text."""
        by_document = {cell.document: cell for cell in changed}
        self._cells[uri] = [by_document.get(cell.document, cell) for cell in self._cells.get(uri, [])]

    def close(self, uri: str) -> None:
        """Drop a notebook."""
        self._drop(self._cells.pop(uri, []))

    def has(self, uri: str) -> bool:
        """Return whether a document is a cell of a notebook."""
        return uri in self._notebook_of

    def above(self, uri: str) -> list[str]:
        """Return the code cells above a cell, from the top; none for a document that is not a cell."""
        above: list[str] = []
        for cell in self._cells.get(self._notebook_of.get(uri, ""), []):
            if cell.document == uri:
                break
            if cell.kind == types.NotebookCellKind.Code:
                above.append(cell.document)
        return above

    def _index(self, uri: str, cells: Iterable[types.NotebookCell]) -> None:
        for cell in cells:
            self._notebook_of[cell.document] = uri

    def _drop(self, cells: Iterable[types.NotebookCell]) -> None:
        for cell in cells:
            self._notebook_of.pop(cell.document, None)


def as_script(cells: Iterable[str], language: str) -> str:
    """Return the texts of cells as one script, without the lines that only notebooks understand."""
    texts = (_without_magic(cell) if language == "python" else cell for cell in cells)
    return "".join(f"{text.strip()}\n\n" for text in texts if text.strip())


def _without_magic(cell: str) -> str:
    if cell.startswith("%%") and not cell.startswith(_PYTHON_MAGICS):
        return ""
    return "".join(line for line in cell.splitlines(keepends=True) if not line.startswith(_MAGIC))


# All kinds of notebooks and all languages of cells, as with files; the settings decide which are served.
NOTEBOOKS = types.NotebookDocumentSyncOptions([types.NotebookDocumentFilterWithNotebook("*")])
PARSE_PATIENCE_S = 3.0
"""Longest wait for the syntax tree of a long file when the user asked."""
SHORT_PATIENCE_S = 0.04
"""A suggestion waits so long for the syntax tree, then it goes by the lines around the cursor."""


OUT_OF_STEP = "is not here as your editor has it, because a change could not be read; close it and open it again"


@attrs.frozen
class _Opened:
    """What is known of a document besides its text.

    `language_id` is the editor's. `real_path` is where the links in its path lead: a link to a secret file is a secret
    too. `unfit` says why the document is not kept.
    """

    language_id: str
    real_path: str
    unfit: str | None = None


@attrs.define
class Session:
    """`encoding` is how the editor counts columns. `window` has the other open files, for a model with room for them.

    The functions in `on_open`, `on_change` and `on_close` are called with the URI of a document after it was opened,
    changed or closed.
    """

    configuration: Configuration
    documents: Documents
    parsing: BackgroundParse
    board: StatusBoard
    link: EngineLink
    offers: Offers
    memory: WorkspaceMemory
    notebooks: Notebooks = attrs.field(factory=Notebooks)
    window: RelatedFiles | None = None
    snooze: Snooze = attrs.field(init=False)
    encoding: types.PositionEncodingKind | str = types.PositionEncodingKind.Utf16
    on_open: list[Callable[[str], None]] = attrs.field(factory=list)
    on_change: list[Callable[[str], None]] = attrs.field(factory=list)
    on_close: list[Callable[[str], None]] = attrs.field(factory=list)
    _opened: dict[str, _Opened] = attrs.field(factory=dict)

    def __attrs_post_init__(self) -> None:
        self.snooze = Snooze(self.board)
        self.on_open.append(self.memory.opened)
        self.on_change.append(self.memory.changed)
        self.on_close.append(self.memory.closed)
        self.link.on_connect(self._give_window)

    def open(self, document: types.TextDocumentItem) -> None:
        """Keep a document. One that is too large or binary is neither kept nor parsed until it is opened again."""
        if document.uri in self._opened:  # nobody closed it: what is known is of another text
            self._forget(document.uri)
        path = path_of(document.uri)
        real, unfit = os.path.realpath(path) if is_file(document.uri) else path, why_unfit(document.text)
        self._opened[document.uri] = _Opened(document.language_id, real, unfit)
        if unfit is None:
            self.documents.open(document.uri, document.language_id, document.version, document.text)
            if self.window is not None:
                self.window.recent.see(document.uri)

    def opened(self, params: types.DidOpenTextDocumentParams) -> None:
        """Keep a document, and start the engine so that it is ready when it is first needed."""
        uri = params.text_document.uri
        self.open(params.text_document)
        if self.served(uri) is not None:
            self.link.wake()
        for follow in self.on_open:
            follow(uri)

    def changed(self, params: types.DidChangeTextDocumentParams) -> None:
        """Apply the editor's changes to a document."""
        document = params.text_document
        if self.why_unfit(document.uri) is None:
            self.documents.change(document.uri, document.version, params.content_changes, self.encoding)
            if self.window is not None:
                self.window.changed(document.uri, params.content_changes)
        for follow in self.on_change:
            follow(document.uri)

    def lost(self, uri: str) -> bool:
        """Leave a document alone until it is opened again: its text is not the editor's. Return whether that is new."""
        if self.why_unfit(uri) is not None:
            return False
        self._forget(uri)
        self._opened[uri] = _Opened("", path_of(uri), OUT_OF_STEP)
        return True

    def saved(self, params: types.DidSaveTextDocumentParams) -> None:
        """Have the memory learn the saved text."""
        self.memory.saved(params.text_document.uri)

    def closed(self, params: types.DidCloseTextDocumentParams) -> None:
        """Drop a document."""
        self._forget(params.text_document.uri)

    def notebook_opened(self, params: types.DidOpenNotebookDocumentParams) -> None:
        """Keep a notebook and its cells."""
        self.notebooks.open(params.notebook_document)
        for document in params.cell_text_documents:
            self.opened(types.DidOpenTextDocumentParams(document))

    def notebook_changed(self, params: types.DidChangeNotebookDocumentParams) -> None:
        """Apply changes of cells: added, removed, moved, of another kind, or with another text."""
        uri, cells = params.notebook_document.uri, params.change.cells
        if cells is None:
            return
        if cells.structure is not None:
            # A moved cell is in the change, but is neither opened nor closed.
            self.notebooks.restructure(uri, cells.structure.array)
            for identifier in cells.structure.did_close or []:
                self.closed(types.DidCloseTextDocumentParams(identifier))
            for document in cells.structure.did_open or []:
                self.opened(types.DidOpenTextDocumentParams(document))
        if cells.data:
            self.notebooks.update_cells(uri, cells.data)
        for text in cells.text_content or []:
            self.changed(types.DidChangeTextDocumentParams(text.document, text.changes))

    def notebook_closed(self, params: types.DidCloseNotebookDocumentParams) -> None:
        """Drop a notebook and its cells."""
        self.notebooks.close(params.notebook_document.uri)
        for document in params.cell_text_documents:
            self.closed(types.DidCloseTextDocumentParams(document))

    def _forget(self, uri: str) -> None:
        self._opened.pop(uri, None)
        if self.window is not None:
            self.window.forget(uri)
        self.documents.close(uri)
        for follow in self.on_close:
            follow(uri)

    def served(self, uri: str) -> Snapshot | None:
        """Return the current snapshot of a document, or None when the settings allow no suggestions for it."""
        return self.documents.snapshot(uri) if self.why_not_served(uri) is None else None

    @property
    def is_automatic(self) -> bool:
        """Whether anything is suggested that the user did not ask for."""
        return self.why_only_asked is None

    @property
    def why_only_asked(self) -> str | None:
        """Why nothing is suggested that the user did not ask for, as a phrase; None if it is."""
        if not self.configuration.settings.automatic:
            return "midspan.automatic is off"
        return "the snooze is on" if self.snooze.holds() else None

    async def parsed(self, uri: str, seconds: float = SHORT_PATIENCE_S) -> Snapshot | None:
        """Return what `served` does, with its tree if that is there within `seconds`; None if the text changed then."""
        snapshot = self.served(uri)
        if snapshot is None or snapshot.tree is not None or snapshot.language.grammar is None:
            self.board.note(self._left_alone(uri) if snapshot is None else "")
            return snapshot
        await self.settle(uri, seconds)
        later = self.served(uri)
        if later is None or not self.documents.is_current(snapshot):
            return None
        by_lines = f"{PurePath(later.path).name} takes too long to parse: suggestions go by its lines."
        self.board.note("" if later.tree is not None else by_lines)
        return later

    async def settle(self, uri: str, seconds: float) -> None:
        """Wait until a document has its tree, or will have none; for `seconds` at the latest."""
        self.documents.snapshot(uri)  # which begins the parse
        await self.parsing.wait(uri, seconds)

    def why_not_served(self, uri: str) -> str | None:
        """Return why there are no suggestions for a document, as a sentence without its end; None if there are."""
        if not self.configuration.is_on():
            return "suggestions are switched off; the command midspan.toggle switches them on"
        if (unfit := self.why_unfit(uri)) is not None:
            return f"this file is left alone: it {unfit}"
        document = self.documents.find(uri)
        if document is None:
            return "this file is not known to the server; open it again"
        # Both the editor's language id and ours switch it off: ours for javascriptreact is javascript.
        for language in (self._opened[uri].language_id, document.language.id):
            if not self.configuration.is_on(language):
                return f"suggestions are switched off for {language}; midspan.languages says so, or midspan.toggle did"
        excluded = self.why_excluded(document)
        return f"this file is left alone: it {excluded}" if excluded is not None else None

    def _left_alone(self, uri: str) -> str:
        """Return a sentence about a document that the model must not see; "" for any other."""
        document = self.documents.find(uri)
        reason = self.why_unfit(uri) or (self.why_excluded(document) if document is not None else None)
        return f"{PurePath(path_of(uri)).name} is left alone: it {reason}." if reason else ""

    def why_unfit(self, uri: str) -> str | None:
        """Return why an open document is not kept, or None."""
        opened = self._opened.get(uri)
        return opened.unfit if opened is not None else None

    def why_excluded(self, document: OpenDocument) -> str | None:
        """Return why the model must not see a document, or None."""
        exclude = self.configuration.settings.exclude
        opened = self._opened.get(document.uri)
        real = opened.real_path if opened is not None else document.path
        return why_secret(document.path, exclude) or why_secret(real, exclude) or why_data_unfit(document.source.data)

    def plan(self, snapshot: Snapshot, offset: int, model: ModelInfo, settings: Settings, candidates: int = 1) -> Plan:
        """Return the plan for a hole, with what the session knows besides the document: its folders and other files.

        With the first plan for a document of a workspace folder the memory begins to learn that folder.
        """
        self.memory.begin(snapshot.path, model)
        return self.plan_unasked(snapshot, offset, model, settings, candidates)

    def plan_unasked(
        self, snapshot: Snapshot, offset: int, model: ModelInfo, settings: Settings, candidates: int = 1
    ) -> Plan:
        """Return what `plan` does, for a hole that nobody has asked for yet: the memory does not begin to learn."""
        return plan(
            snapshot,
            offset,
            model,
            settings,
            path=self._model_path(snapshot),
            code_above=self._cells_above(snapshot),
            snippets=self._related_snippets(snapshot, model, settings),
            candidates=candidates,
            workspace=self.memory.workspace_of(snapshot.path, model),
        )

    def _give_window(self, client: EngineClient) -> None:
        """Follow which lines are edited, from now on, if the model has room for other files. Most have none."""
        if context_budget_of(client.welcome.model).related and self.window is None:
            self.window = RelatedFiles(self.documents)

    def may_read_others(self, model: ModelInfo) -> bool:
        """Return whether a model may read other files than the one that the user is in."""
        allowed = self.configuration.settings.related_files
        return allowed == "always" or (allowed == "local" and not leaves_machine(model))

    def _related_snippets(self, snapshot: Snapshot, model: ModelInfo, settings: Settings) -> Sequence[Snippet]:
        room = context_budget_of(model, settings.context_tokens).related
        if not room or self.window is None or not self.may_read_others(model):
            return []
        return self.window.around(snapshot, room, self._related_path)

    def _related_path(self, other: OpenDocument) -> str | None:
        """Return another file's path as the model sees it; None for a secret file or a cell of a notebook."""
        if self.notebooks.has(other.uri) or self.why_excluded(other) is not None:
            return None
        return self._model_path(other)

    def _cells_above(self, snapshot: Snapshot) -> str:
        """Return the code above a cell of a notebook as one script; "" for any other document."""
        cells = (self.documents.find(uri) for uri in self.notebooks.above(snapshot.uri))
        own = (cell.text for cell in cells if cell is not None and cell.language is snapshot.language)
        return as_script(own, snapshot.language.id)

    def _model_path(self, document: OpenDocument) -> str:
        """Return the path inside the workspace folder, as in the repositories that models learn from.

        A notebook gets the name of a script: models learn from scripts, and from hardly any notebook.
        """
        # The memory knows the file by this path too.
        place = self.memory.folders.place_of(document.path)
        file = PurePath(place.path if place is not None else document.path)
        if self.notebooks.has(document.uri) and file.name and document.language.extensions:
            file = file.with_suffix(document.language.extensions[0])
        if place is not None:
            return file.as_posix()
        for folder in self.memory.folders.names:
            if file.is_relative_to(folder):
                return file.relative_to(folder).as_posix()
        return file.name
