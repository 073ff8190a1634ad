"""The editor's notifications about its documents and notebooks."""

from lsprotocol import types

from lsp_server.requests.late_edits import LateEdits
from lsp_server.requests.read_ahead import ReadAhead
from lsp_server.requests.session import Session
from lsp_server.requests.suggestions import Suggestions

# All kinds of notebooks and all languages of cells, as with files; the settings decide which are served.
NOTEBOOKS = types.NotebookDocumentSyncOptions([types.NotebookDocumentFilterWithNotebook("*")])


class DocumentSync:
    """Keeps the session's documents as the editor has them, and cancels suggestions for text that changed."""

    def __init__(self, session: Session, suggestions: Suggestions, reading: ReadAhead, edits: LateEdits) -> None:
        self._session = session
        self._suggestions = suggestions
        self._reading = reading
        self._edits = edits

    def opened(self, params: types.DidOpenTextDocumentParams) -> None:
        """Keep a document, and start the engine so that it is ready when it is first needed."""
        self._session.open(params.text_document)
        if self._session.served(params.text_document.uri) is not None:
            self._session.link.wake()
            self._reading.opened(params.text_document.uri)
        self._session.memory.opened(params.text_document.uri)

    def changed(self, params: types.DidChangeTextDocumentParams) -> None:
        """Apply a change, and cancel the requests for the text before it."""
        self._reading.stop()
        self._suggestions.cancel(params.text_document.uri)
        self._session.change(params)
        self._edits.changed(params.text_document.uri)
        self._session.memory.changed(params.text_document.uri)

    def saved(self, params: types.DidSaveTextDocumentParams) -> None:
        """Have the memory learn the saved text."""
        self._session.memory.saved(params.text_document.uri)

    def closed(self, params: types.DidCloseTextDocumentParams) -> None:
        """Drop a document."""
        self._suggestions.forget(params.text_document.uri)
        self._reading.closed(params.text_document.uri)
        self._edits.closed(params.text_document.uri)
        self._session.close(params.text_document.uri)
        self._session.memory.closed(params.text_document.uri)

    def notebook_opened(self, params: types.DidOpenNotebookDocumentParams) -> None:
        """Keep a notebook and its cells."""
        self._session.notebooks.open(params.notebook_document)
        for document in params.cell_text_documents:
            self.opened(types.DidOpenTextDocumentParams(document))

    def notebook_changed(self, params: types.DidChangeNotebookDocumentParams) -> None:
        """Apply changes of cells: added, removed, moved, of another kind, or with another text."""
        uri, cells = params.notebook_document.uri, params.change.cells
        if cells is None:
            return
        if cells.structure is not None:
            # A moved cell is in the change, but is neither opened nor closed.
            self._session.notebooks.restructure(uri, cells.structure.array)
            for identifier in cells.structure.did_close or []:
                self.closed(types.DidCloseTextDocumentParams(identifier))
            for document in cells.structure.did_open or []:
                self.opened(types.DidOpenTextDocumentParams(document))
        if cells.data:
            self._session.notebooks.update_cells(uri, cells.data)
        for text in cells.text_content or []:
            self.changed(types.DidChangeTextDocumentParams(text.document, text.changes))

    def notebook_closed(self, params: types.DidCloseNotebookDocumentParams) -> None:
        """Drop a notebook and its cells."""
        self._session.notebooks.close(params.notebook_document.uri)
        for document in params.cell_text_documents:
            self.closed(types.DidCloseTextDocumentParams(document))
