"""Cells of a notebook, through a real server: each gets suggestions, and the model reads the cells above it."""

from typing import Any

import pytest
import pytest_asyncio
from lsprotocol import types
from support.lsp_editor import Editor

from lsp_server.session import as_script

NOTEBOOK = "file:///project/report.ipynb"
CODE, TEXT = types.NotebookCellKind.Code, types.NotebookCellKind.Markup
CAPABLE = types.NotebookDocumentClientCapabilities(types.NotebookDocumentSyncClientCapabilities())


@pytest_asyncio.fixture
async def editor(editor: Editor, settings: dict[str, Any]) -> Editor:
    answer = await editor.start(settings, notebook_document=CAPABLE)
    assert answer.capabilities.notebook_document_sync is not None, "the server wants notebooks"
    return editor


def cell_uri(number: int) -> str:
    return f"vscode-notebook-cell:/project/report.ipynb#W{number}"


def document(number: int, text: str, language: str = "python") -> types.TextDocumentItem:
    return types.TextDocumentItem(cell_uri(number), language, 0, text)


def open_notebook(editor: Editor, *cells: str, language: str = "python") -> None:
    """Open a notebook of these code cells; the cursor is at the end of the last one."""
    notebook = types.NotebookDocument(
        NOTEBOOK, "jupyter-notebook", 0, [types.NotebookCell(CODE, cell_uri(number)) for number in range(len(cells))]
    )
    documents = [document(number, text, language) for number, text in enumerate(cells)]
    editor.client.notebook_document_did_open(types.DidOpenNotebookDocumentParams(notebook, documents))
    put_cursor(editor, len(cells) - 1, cells[-1])


def put_cursor(editor: Editor, number: int, text: str) -> None:
    editor.uri, editor.text, editor.offset, editor.version = cell_uri(number), text, len(text), 0


def change_cells(editor: Editor, changes: types.NotebookDocumentCellChanges) -> None:
    notebook = types.VersionedNotebookDocumentIdentifier(1, NOTEBOOK)
    event = types.NotebookDocumentChangeEvent(cells=changes)
    editor.client.notebook_document_did_change(types.DidChangeNotebookDocumentParams(notebook, event))


async def tokens_seen(editor: Editor) -> int:
    """Return how many tokens the model reads for a hole at the cursor."""
    return int((await editor.fill()).contextTokens)


async def tokens_seen_alone(editor: Editor) -> int:
    """Return how many tokens the model reads in a notebook with a single cell."""
    open_notebook(editor, "price = ")
    return await tokens_seen(editor)


async def test_a_cell_gets_suggestions_that_follow_its_changes(editor: Editor) -> None:
    open_notebook(editor, "To do:\n", "- ", language="plaintext")
    await editor.until("ready")
    for char in "abcdefghijklmnopqrstuvwxyz" * 4:
        if items := await editor.suggest():
            break
        here = editor.position()
        editor.text, editor.offset, editor.version = editor.text + char, editor.offset + 1, editor.version + 1
        changes = [types.TextDocumentContentChangePartial(types.Range(here, here), char)]
        cell = types.VersionedTextDocumentIdentifier(editor.version, editor.uri)
        text = [types.NotebookDocumentCellContentChanges(cell, changes)]
        change_cells(editor, types.NotebookDocumentCellChanges(text_content=text))

    assert [item.range for item in items] == [types.Range(editor.position(), editor.position())]


async def test_the_code_above_is_read_before_the_cell(editor: Editor) -> None:
    without = await tokens_seen_alone(editor)
    open_notebook(editor, "rate = 1.19\nnet = 100\n", "price = ")

    assert await tokens_seen(editor) > without


async def test_text_cells_other_languages_and_cells_below_are_not_read(editor: Editor) -> None:
    without = await tokens_seen_alone(editor)
    open_notebook(editor, "# Prices\n\nAll of them.\n", "select 1", "price = ", "below = 1\n")
    cells = [types.NotebookCell(TEXT, cell_uri(0)), types.NotebookCell(CODE, cell_uri(1))]
    change_cells(editor, types.NotebookDocumentCellChanges(data=cells))
    change_cells(
        editor,
        types.NotebookDocumentCellChanges(
            structure=types.NotebookDocumentCellChangeStructure(
                types.NotebookCellArrayChange(1, 1, [types.NotebookCell(CODE, cell_uri(7))]),
                did_open=[document(7, "select 1", "sql")],
                did_close=[types.TextDocumentIdentifier(cell_uri(1))],
            )
        ),
    )
    put_cursor(editor, 2, "price = ")

    assert await tokens_seen(editor) == without


async def test_a_cell_that_moved_below_is_no_longer_read(editor: Editor) -> None:
    open_notebook(editor, "rate = 1.19\n", "price = ")
    both = await tokens_seen(editor)
    for array in (
        types.NotebookCellArrayChange(0, 1),
        types.NotebookCellArrayChange(1, 0, [types.NotebookCell(CODE, cell_uri(0))]),
    ):
        structure = types.NotebookDocumentCellChangeStructure(array)
        change_cells(editor, types.NotebookDocumentCellChanges(structure=structure))

    assert await tokens_seen(editor) < both


async def test_a_closed_notebook_is_forgotten(editor: Editor) -> None:
    open_notebook(editor, "rate = 1.19\n", "price = ")
    closed = [types.TextDocumentIdentifier(cell_uri(number)) for number in range(2)]
    params = types.DidCloseNotebookDocumentParams(types.NotebookDocumentIdentifier(NOTEBOOK), closed)
    editor.client.notebook_document_did_close(params)

    assert await editor.suggest() == []
    assert await tokens_seen_alone(editor)


@pytest.mark.parametrize("start", [5, 4_000_000])
async def test_an_impossible_change_breaks_nothing(editor: Editor, start: int) -> None:
    open_notebook(editor, "price = ")
    array = types.NotebookCellArrayChange(start, 9, [types.NotebookCell(CODE, cell_uri(9))])
    change_cells(
        editor,
        types.NotebookDocumentCellChanges(structure=types.NotebookDocumentCellChangeStructure(array)),
    )

    assert await tokens_seen(editor)


def test_cells_become_a_script_without_the_lines_of_notebooks() -> None:
    cells = ["import os\n", "%matplotlib inline\n!pip install x\na = 1\n", "%%bash\nls\n", "%%time\nb = 2\n", "  \n"]

    assert as_script(cells, "python") == "import os\n\na = 1\n\nb = 2\n\n"
    assert as_script(["%%sh\n"], "ruby") == "%%sh\n\n"
