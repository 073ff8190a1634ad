"""What the editor tells about its documents and notebooks."""

from typing import TYPE_CHECKING

from lsprotocol import types

if TYPE_CHECKING:
    from lsp_server.server import MidspanServer

# Cells of all kinds and languages, as with files; the settings say which are served.
NOTEBOOKS = types.NotebookDocumentSyncOptions([types.NotebookDocumentFilterWithNotebook("*")])


def opened(ls: "MidspanServer", params: types.DidOpenTextDocumentParams) -> None:
    """Take a document in, and see to it that an engine is there when it is first needed."""
    ls.session.open(params.text_document)
    if ls.session.served(params.text_document.uri) is not None:
        ls.session.link.wake()


def changed(ls: "MidspanServer", params: types.DidChangeTextDocumentParams) -> None:
    """Follow a change; what is under way for the text of before is ended."""
    ls.suggestions.drop(params.text_document.uri)
    ls.session.change(params)


def closed(ls: "MidspanServer", params: types.DidCloseTextDocumentParams) -> None:
    """Forget a document."""
    ls.suggestions.forget(params.text_document.uri)
    ls.session.close(params.text_document.uri)


def notebook_opened(ls: "MidspanServer", params: types.DidOpenNotebookDocumentParams) -> None:
    """Take a notebook in, with its cells."""
    ls.session.notebooks.open(params.notebook_document)
    for document in params.cell_text_documents:
        opened(ls, types.DidOpenTextDocumentParams(document))


def notebook_changed(ls: "MidspanServer", params: types.DidChangeNotebookDocumentParams) -> None:
    """Follow cells that came, went, moved, changed their kind or their text."""
    uri, cells = params.notebook_document.uri, params.change.cells
    if cells is None:
        return
    if cells.structure is not None:
        # A cell that moves is in the change, but is neither opened nor closed.
        ls.session.notebooks.restructure(uri, cells.structure.array)
        for gone in cells.structure.did_close or []:
            closed(ls, types.DidCloseTextDocumentParams(gone))
        for document in cells.structure.did_open or []:
            opened(ls, types.DidOpenTextDocumentParams(document))
    if cells.data:
        ls.session.notebooks.describe(uri, cells.data)
    for text in cells.text_content or []:
        changed(ls, types.DidChangeTextDocumentParams(text.document, text.changes))


def notebook_closed(ls: "MidspanServer", params: types.DidCloseNotebookDocumentParams) -> None:
    """Forget a notebook and its cells."""
    ls.session.notebooks.close(params.notebook_document.uri)
    for document in params.cell_text_documents:
        closed(ls, types.DidCloseTextDocumentParams(document))
